"""A run killed anywhere and resumed: nothing finished is lost, nothing runs twice, all is as if undisturbed.

The small agent is killed at its system calls, a sample of them by default and each one with AGENTREWIND_SOAK
set; mini-SWE-agent at the lines of its log.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import random
import signal
import subprocess
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from agentrewind.records import LlmNode, RewindAsked, RewindDone, SafetySnapshot, Started, ToolNode
from agentrewind.run_store import RunStore
from tests.crash.run_story import MINI, SMALL, agents, jobs, play, undisturbed_files, wait_for_the_dead
from tests.e2e.laws import check_laws
from tests.e2e.stage import REPOSITORY, Ended, Manifest, Stage, finish
from tests.workspace.disk import differences, manifest

SEED = int(os.environ.get("AGENTREWIND_SEED", "20261130"))
SOAK = bool(os.environ.get("AGENTREWIND_SOAK"))


@dataclass(frozen=True, kw_only=True)
class Kill:
    """Which process dies at which of its calls: the supervisor, or the n-th agent process."""

    who: str
    process: int
    call: int
    half: bool

    def order(self, stage: Stage) -> dict[str, str]:
        return killer(stage, process=self.process, call=self.call, half=self.half, both=self.who == "both")


def killer(
    stage: Stage, *, process: int, call: int, half: bool = False, both: bool = False
) -> dict[str, str]:
    """What a process's environment needs for it to be counted, and killed."""
    counts = stage.base / "counts"
    counts.mkdir(exist_ok=True)
    order = {
        "starts": str(stage.base / "starts"),
        "process": process,
        "call": call,
        "half": half,
        "with_parent": both,
        "counts": str(counts),
    }
    path = os.pathsep.join([str(REPOSITORY / "tests" / "crash" / "run_killer"), str(REPOSITORY)])
    return {"KILLER": json.dumps(order), "PYTHONPATH": path}


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("kills")


def _launched(stage: Stage, who: str, environment: dict[str, str]) -> Ended:
    if who == "supervisor":
        return finish(stage.launch(task="x", harness=SMALL, supervisor_environment=environment))
    return finish(stage.launch(task="x", harness=SMALL, agent_environment=environment))


@functools.cache
def all_kills(base: Path) -> tuple[Kill, ...]:
    """Every kill there is, from what an undisturbed run does."""
    found: list[Kill] = []
    for who in ("supervisor", "agent"):
        with play(base / f"counted-{who}") as stage:
            environment = killer(stage, process=0, call=0)
            ended = _launched(stage, who, environment)
            assert ended.code == 0, ended
            counts = {int(path.name): int(path.read_text()) for path in (stage.base / "counts").iterdir()}
        assert sorted(counts) == ([1] if who == "supervisor" else [1, 2]), "the killer was not in place"
        found += [
            Kill(who=each, process=process, call=call, half=half)
            for process, calls in counts.items()
            for call in range(1, calls + 1)
            for each in ((who,) if who == "supervisor" else (who, "both"))
            for half in (False, True)
        ]
    return tuple(found)


def sample(base: Path) -> list[Kill]:
    """All of them, or for each process and way to die a few: spread over its life, chosen by the seed."""
    kills = all_kills(base)
    if SOAK:
        return list(kills)
    chance = random.Random(SEED)
    chosen: list[Kill] = []
    for who, process in sorted({(each.who, each.process) for each in kills}):
        mine = [each for each in kills if (each.who, each.process) == (who, process)]
        parts = 5 if who == "supervisor" else 3
        chosen += [
            chance.choice(mine[len(mine) * part // parts : len(mine) * (part + 1) // parts])
            for part in range(parts)
        ]
    return chosen


@pytest.mark.slow
@pytest.mark.timeout(0 if SOAK else 300)
@pytest.mark.parametrize("worker", range(4))
def test_killed_at_its_writes_a_run_comes_out_as_if_undisturbed(base: Path, worker: int) -> None:
    expected = undisturbed_files(SMALL)
    for number, kill in enumerate(sample(base)):
        if number % 4 == worker:
            print(f"seed {SEED}, kill {number}: {kill}")
            with play(base / f"kill-{number}") as stage:
                _kill_and_resume(stage, kill, expected)


def _kill_and_resume(stage: Stage, kill: Kill, expected: Manifest) -> None:
    first = _launched(stage, kill.who, kill.order(stage))
    # one run needs a call more than another, so the last of them may never come
    assert first.code in (1 if kill.who == "agent" else -signal.SIGKILL, 0), first
    wait_for_the_dead(stage)
    if not RunStore(stage.home).runs():
        assert stage.arrivals == []
        return
    _resume_and_check(stage, expected)


def _resume_and_check(stage: Stage, expected: Manifest) -> None:
    kept = _finished(stage)
    again = stage.resume() if not _is_over(stage) else None
    timeline = stage.timeline
    assert timeline.state() == "accepted", again
    assert kept <= _finished(stage)
    assert differences(manifest(stage.root, times=False), expected) == []
    assert len(jobs(stage)) == 1
    assert not [pid for pid in jobs(stage) if _state(pid) == "T"]
    _check_interrupted(stage)
    _check_one_rewind(stage)
    begun = [event for number in timeline.segments for event in timeline.events(number)]
    begun_llm = [event for event in begun if isinstance(event, Started) and event.tool_name is None]
    requests = len(stage.server.requests)
    assert requests <= len(begun_llm)
    check_laws(stage, live_calls=requests)


def _is_over(stage: Stage) -> bool:
    """Killed after its last word was written: there is nothing to resume."""
    timeline = stage.timeline
    return timeline.state() == "accepted" and timeline.pending_rewind() is None


def _check_interrupted(stage: Stage) -> None:
    nodes = [node for node in stage.timeline.nodes.values() if isinstance(node, ToolNode)]
    assert len({node.tool_call_id for node in nodes}) == len(nodes)
    assert sum(node.interrupted for node in nodes) <= 1
    for mark in stage.marks:
        assert stage.marks.count(mark) == 1
        if mark.endswith("+"):
            assert any(node.interrupted for node in nodes)


def _check_one_rewind(stage: Stage) -> None:
    timeline = stage.timeline
    events = [event for number in timeline.segments for event in timeline.events(number)]
    assert timeline.segments == (0, 1)
    assert sum(isinstance(event, RewindAsked) for event in events) == 1
    assert sum(isinstance(event, RewindDone) for event in events) == 1
    assert sum(isinstance(event, SafetySnapshot) for event in events) == 1


def _finished(stage: Stage) -> set[str]:
    """Nodes in the log; with every result that a request has told of, each must be there already."""
    nodes = stage.timeline.nodes
    ids = {node.tool_call_id for node in nodes.values() if isinstance(node, ToolNode)}
    told = {
        str(message["tool_call_id"])
        for each in stage.arrivals
        for message in each.request.messages
        if message["role"] == "tool"
    }
    assert told <= ids
    answered = sum(isinstance(node, LlmNode) for node in nodes.values())
    assert answered >= len(stage.arrivals) - 1
    return set(nodes)


def _state(pid: int) -> str:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    return "gone"


@pytest.mark.slow
@pytest.mark.timeout(0 if SOAK else 300)
@pytest.mark.parametrize("who", ["agent", "supervisor", "both"])
def test_mini_swe_agent_killed_at_a_line_of_its_log(base: Path, who: str) -> None:
    expected = undisturbed_files(MINI)
    chance = random.Random(f"{SEED}{who}")
    lines = range(2, 60) if SOAK else [chance.randrange(2, 60)]
    for line in lines:
        print(f"seed {SEED}, {who} dies at line {line}")
        with play(base / f"mini-{who}-{line}", MINI) as stage:
            ended = _killed_at_line(stage, who, line)
            if ended.code != 0:
                wait_for_the_dead(stage)
                _resume_and_check(stage, expected)


def _killed_at_line(stage: Stage, who: str, line: int) -> Ended:
    supervisor = stage.launch(task="x", harness=MINI)
    killing = threading.Thread(target=_watch_and_kill, args=(stage, supervisor, who, line))
    killing.start()
    try:
        return finish(supervisor)
    finally:
        killing.join()


def _watch_and_kill(stage: Stage, supervisor: subprocess.Popen[bytes], who: str, line: int) -> None:
    while supervisor.poll() is None:
        written = sum(path.read_bytes().count(b"\n") for path in stage.home.glob("runs/*/segment-*.jsonl"))
        if written >= line:
            victims = agents(stage)
            for pid in [supervisor.pid] * (who != "agent") + victims * (who != "supervisor"):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            return
        time.sleep(0.001)
