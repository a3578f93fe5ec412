"""Stories told through the command: a run that fails, is killed, is refused, and is resumed by its name."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from typing import Any

import pytest

from agentrewind.run_store import RunStore
from harness_adapters.scripted import ScriptedAnswer, ScriptedRequest
from tests.crash.run_story import SHELL, SMALL, SUBMIT
from tests.e2e.laws import check_laws
from tests.e2e.stage import Stage
from tests.e2e.steps import back, look, marked, story, submit, work

pytestmark = pytest.mark.slow

RUN = ("run", "--harness", "mini-swe-agent", "--model", "openai/scripted", "--task", "do it", "--json")


def command(stage: Stage, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", "from agentrewind.cli import main; main()", *arguments],
        env={**stage.environment, "AGENTREWIND_HOME": str(stage.home)},
        cwd=stage.base,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def ended(process: subprocess.Popen[str]) -> tuple[int, dict[str, Any], str]:
    """The exit code, the one document on standard output if there is one, and standard error."""
    stdout, stderr = process.communicate(timeout=120)
    return process.returncode, json.loads(stdout) if stdout else {}, stderr


def test_a_failed_run_is_resumed_by_its_name(stage: Stage) -> None:
    trouble = [401]

    def refused_once(_request: ScriptedRequest) -> ScriptedAnswer:
        return ScriptedAnswer(status=trouble.pop()) if trouble else work("c", "echo c > c")

    stage.policy = story(
        work("a", "echo a > a"),
        work("b", "rm a; echo b > b"),
        look(),
        back("b", "NOTE_A"),
        NOTE_A=[refused_once, submit()],
    )
    check = "test -f c || { echo 'criterion: C'; exit 1; }"
    code, said, stderr = ended(command(stage, *RUN, "--workspace", "ws", "--check", check))
    assert (code, said["state"], said["rewinds"]) == (1, "error", 1), stderr
    assert f"agentrewind run --resume {said['run_id']}" in stderr
    assert "AuthenticationError" in stderr
    code, said, stderr = ended(command(stage, "run", "--resume", said["run_id"], "--json"))
    assert (code, said["state"], said["accepted"], said["submissions"]) == (0, "accepted", True, 1), stderr
    assert stage.marks == ["a", "b", "c"]
    check_laws(stage, live_calls=7)
    code, _, stderr = ended(command(stage, "run", "--resume", said["run_id"], "--json"))
    assert code == 2
    assert "nothing to resume" in stderr


def test_a_killed_run_is_in_nobodys_way(stage: Stage) -> None:
    arguments = ("run", "--harness", SMALL, "--model", "m", "--task", "x", "--json", "--workspace", "ws")
    refused: list[tuple[int, dict[str, Any], str]] = []

    def policy(request: ScriptedRequest) -> ScriptedAnswer:
        if request.turn == 0:
            return ScriptedAnswer("say-a", [(SHELL[SMALL], {"command": marked("a")})])
        if first.poll() is None:
            refused.append(ended(command(stage, *arguments)))
            os.kill(first.pid, signal.SIGKILL)
            time.sleep(0.2)
        return ScriptedAnswer("say-end", [(SHELL[SMALL], {"command": SUBMIT[SMALL]})])

    stage.policy = policy
    first = command(stage, *arguments)
    code, _, _ = ended(first)
    assert code == -signal.SIGKILL
    (run,) = RunStore(stage.home).runs()
    assert refused[0][0] == 5
    assert run.run_id in refused[0][2]
    code, said, stderr = ended(command(stage, "run", "--resume", run.run_id[:12], "--json"))
    assert (code, said["run_id"], said["state"]) == (0, run.run_id, "accepted"), stderr
    assert "took over" in stderr
    assert stage.marks == ["a"]
