"""Attempts as forks of a warm parent give the same run as new interpreters, or it is said why not."""

from __future__ import annotations

import os
import signal
import time
from datetime import datetime
from pathlib import Path

import pytest

from agentrewind.processes import marked
from agentrewind.records import LlmNode, RewindAsked, Started
from harness_adapters.scripted import ScriptedAnswer, ScriptedRequest
from tests.e2e.laws import check_laws
from tests.e2e.stage import REPOSITORY, Stage
from tests.e2e.steps import back, look, story, submit, work


def going_back(stage: Stage) -> None:
    stage.policy = story(
        work("a", "echo a > a"),
        work("b", "rm a; (sleep 300 > /dev/null 2>&1 &)"),
        look(),
        back("b", "NOTE_A"),
        NOTE_A=[work("c", "cat a"), submit()],
    )


def at(moment: str) -> float:
    return datetime.fromisoformat(moment).timestamp()


def test_a_warm_run_is_the_same_run(stage: Stage) -> None:
    going_back(stage)
    stage.extra["DRIVE_START"] = "warm"
    ended = stage.start()
    assert (ended.code, ended.result["state"], ended.result["rewinds"]) == (0, "accepted", 1), ended
    assert ended.told == []
    assert stage.marks == ["a", "b", "c"]
    check_laws(stage)
    asked = next(each for each in stage.timeline.events(0) if isinstance(each, RewindAsked))
    first = next(each for each in stage.timeline.events(1) if isinstance(each, Started))
    # importing the harness alone takes seconds: the bound tells a fork from a new interpreter
    assert at(first.at) - at(asked.at) < 2.5
    kept = [event for event in stage.timeline.events(1) if isinstance(event, Started)]
    assert all(event.processes == () for event in kept), "the warm parent is no job of the agent"
    assert marked(stage.timeline.header.run_id) == []


def test_a_harness_that_leaves_a_thread_is_started_anew_each_time(stage: Stage, tmp_path: Path) -> None:
    module = tmp_path / "threaded_adapter.py"
    module.write_text(
        "import threading\n"
        "threading.Thread(target=threading.Event().wait, daemon=True).start()\n"
        "from harness_adapters.mini_swe_agent import MiniSweAgent as Adapter\n"
    )
    going_back(stage)
    path = f"{tmp_path}{os.pathsep}{REPOSITORY}"
    stage.extra.update(DRIVE_START="warm", PYTHONPATH=path)
    ended = stage.start(harness="threaded_adapter:Adapter", supervisor_environment={"PYTHONPATH": path})
    assert (ended.code, ended.result["rewinds"]) == (0, 1), ended
    assert len(ended.told) == 1
    assert "2 threads" in ended.told[0]
    check_laws(stage)


@pytest.mark.parametrize("victim", ["parent", "supervisor"])
def test_killed_while_warm_it_goes_on(stage: Stage, victim: str) -> None:
    killed: list[int] = []

    def kill(request: ScriptedRequest) -> ScriptedAnswer:
        if not killed:
            run_id = stage.timeline.header.run_id
            parents = [each.pid for each in marked(run_id) if "agentrewind.warm" in each.command]
            status = Path(f"/proc/{min(parents)}/stat").read_text().rsplit(")", 1)[1].split()
            killed.append(min(parents) if victim == "parent" else int(status[1]))
            os.kill(killed[0], signal.SIGKILL)
            time.sleep(0.5)
            assert marked(run_id) == []
        return work("b", "true")

    stage.policy = story(work("a", "echo a > a"), kill, submit())
    stage.extra["DRIVE_START"] = "warm"
    first = stage.start()
    assert first.code != 0
    second = stage.resume()
    assert (second.code, second.result["state"]) == (0, "accepted"), second
    assert stage.marks == ["a", "b"]
    assert len([node for node in stage.timeline.path() if isinstance(node, LlmNode)]) == 3
