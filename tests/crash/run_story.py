"""A story with a rewind for runs that are disturbed, and what of it is alive.

Its effects in the workspace may be repeated; each mark that it leaves outside stands for one run.
"""

from __future__ import annotations

import contextlib
import functools
import os
import signal
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentrewind.layer import INTERRUPTED
from harness_adapters.scripted import Policy, ScriptedAnswer, ScriptedRequest
from harness_adapters.scripted_request import calls_of
from tests.e2e.laws import check_laws
from tests.e2e.stage import Manifest, Stage
from tests.e2e.steps import commit, marked, uid_of
from tests.workspace.disk import manifest

SMALL = "tests.crash.run_agent:SmallAgent"
MINI = "mini-swe-agent"
SUBMIT = {SMALL: "echo submit", MINI: "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"}
SHELL = {SMALL: "sh", MINI: "bash"}
NOTE = "NOTE_TO_SELF"
JOB = "(setsid sleep 86399 >/dev/null 2>&1 &)"


@dataclass(frozen=True)
class Todo:
    """A call of the story; all its effects in the workspace may be repeated, its mark may not."""

    mark: str
    command: str


BEFORE = (
    (Todo("a", "mkdir -p d/e && echo a > d/e/a && chmod 640 d/e/a && ln -sfn a link"),),
    (Todo("job", JOB),),
    (Todo("b", "echo b > b"), Todo("c", "echo c > c")),
    (Todo("bad", f"rm -rf d b; echo bad > c; {JOB}"),),
    (Todo("look", ""),),
    (Todo("back", ""),),
)
AFTER = ((Todo("e", "echo e >> d/e/a.new; mv -f d/e/a.new d/e/b"),), (Todo("submit", ""),))


class Story:
    """The script: what was interrupted is done again under another mark, then the story goes on."""

    def __init__(self, harness: str) -> None:
        self.harness = harness

    def __call__(self, request: ScriptedRequest) -> ScriptedAnswer:
        start = _memory_place(request)
        todo = list(BEFORE if start is None else AFTER)
        again: tuple[Todo, ...] = ()
        for message in request.messages[start or 0 :]:
            if message["role"] == "assistant":
                done = again or todo.pop(0)
                again = tuple(
                    Todo(each.mark + "+", each.command)
                    for each, call in zip(done, calls_of(message), strict=True)
                    if INTERRUPTED in (request.result(call.call_id) or "")
                )
        calls = [self._call(each, request) for each in again or todo[0]]
        return ScriptedAnswer(f"say-{(again or todo[0])[0].mark}", calls)

    def _call(self, todo: Todo, request: ScriptedRequest) -> tuple[str, dict[str, Any]]:
        match todo.mark.rstrip("+"):
            case "look":
                return "backtrack_candidates", {"reason": todo.mark}
            case "back":
                return commit(uid_of(request, "bad"), NOTE)
            case "submit":
                return SHELL[self.harness], {"command": SUBMIT[self.harness]}
            case _:
                return SHELL[self.harness], {"command": marked(todo.mark, todo.command)}


def _memory_place(request: ScriptedRequest) -> int | None:
    for index, message in enumerate(request.messages):
        if message["role"] == "system" and NOTE in str(message["content"]):
            return index
    return None


@contextlib.contextmanager
def play(base: Path, harness: str = SMALL, *, policy: Policy | None = None) -> Iterator[Stage]:
    """A stage for the story; whatever was started from it is ended afterwards."""
    base.mkdir(exist_ok=True)
    with Stage(base=base, policy=policy or Story(harness)) as stage:
        stage.write("first", "there from the start\n")
        try:
            yield stage
        finally:
            for pid in jobs(stage):
                os.kill(pid, signal.SIGKILL)


@functools.cache
def undisturbed_files(harness: str) -> Manifest:
    """The workspace, times apart, after the whole story."""
    with tempfile.TemporaryDirectory() as base, play(Path(base) / "stage", harness) as stage:
        ended = stage.start(harness=harness)
        assert ended.code == 0, ended
        assert stage.marks == ["a", "job", "b", "c", "bad", "e"]
        assert len(jobs(stage)) == 1
        check_laws(stage)
        return manifest(stage.root, times=False)


def processes(stage: Stage) -> list[int]:
    """Everything alive that was started from this stage, found without the package."""
    wanted = f"SIDE={stage.side}".encode()
    found: list[int] = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                if wanted in (entry / "environ").read_bytes().split(b"\0"):
                    found.append(int(entry.name))
    return found


def jobs(stage: Stage) -> list[int]:
    """The jobs of the story that are alive."""
    return [pid for pid in processes(stage) if b"86399" in command_of(pid) and b"sh" not in command_of(pid)]


def agents(stage: Stage) -> list[int]:
    """The run's own processes below the supervisor."""
    return [pid for pid in processes(stage) if b"-m\0agentrewind." in command_of(pid)]


def wait_for_the_dead(stage: Stage) -> None:
    """An agent process whose supervisor was killed is gone a moment later."""
    for _ in range(1000):
        if not agents(stage):
            return
        time.sleep(0.02)
    raise AssertionError("the agent process has outlived its supervisor")


def command_of(pid: int) -> bytes:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    return b""
