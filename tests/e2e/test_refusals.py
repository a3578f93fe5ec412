"""Stories of runs that must not begin, or must not begin yet."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from agentrewind.run_store import RunStore
from harness_adapters.scripted import ScriptedAnswer, ScriptedRequest
from tests.e2e.laws import check_laws
from tests.e2e.stage import Stage, finish
from tests.e2e.steps import story, submit, work


@pytest.mark.parametrize("place", ["missing", "file", "/", "home", "above home", "above store", "in store"])
def test_no_such_workspace(stage: Stage, place: str) -> None:
    (stage.base / "file").touch()
    stage.home.mkdir()
    roots = {
        "missing": stage.base / "nowhere",
        "file": stage.base / "file",
        "/": Path("/"),
        "home": stage.user_home,
        "above home": stage.base,
        "above store": stage.root,
        "in store": stage.home,
    }
    home = stage.root / "store" if place == "above store" else stage.home
    ended = stage.start(root=roots[place], home=home)
    assert ended.code in (2, 5), ended
    assert ended.code == (2 if place in ("missing", "file") else 5)
    assert "workspace" in ended.error[1]
    assert str(roots[place]) in ended.error[1]
    assert RunStore(home).runs() == ()
    assert stage.arrivals == []


def test_unknown_harness_and_unknown_run(stage: Stage) -> None:
    ended = stage.start(harness="nothing")
    assert ended.code == 2
    assert "mini-swe-agent" in ended.error[1]
    assert RunStore(stage.home).runs() == ()
    unknown = finish(stage.launch(run_id="20200101-000000-abcdef"))
    assert unknown.code == 2
    assert "20200101-000000-abcdef" in unknown.error[1]


def test_a_second_run_waits_for_the_first_and_a_dead_owner_is_followed(stage: Stage) -> None:
    inside = stage.root / "inside"
    inside.mkdir()

    def meanwhile(_request: ScriptedRequest) -> ScriptedAnswer:
        for root in (stage.root, inside):
            second = stage.start(root=root)
            assert second.code == 5, second
            assert second.error[0] == "WorkspaceBusyError"
            assert owner in second.error[1], second.error
        os.kill(first.pid, signal.SIGKILL)
        time.sleep(0.2)
        return work("never")

    steps = story(work("a"), meanwhile, submit())

    def policy(request: ScriptedRequest) -> ScriptedAnswer:
        return steps(request) if first.poll() is None else after(request)

    after = story(work("a"), work("b"), submit())
    stage.policy = policy
    first = stage.launch(task="x")
    while not RunStore(stage.home).runs():
        time.sleep(0.05)
    owner = stage.run.run_id
    killed = finish(first)
    assert killed.code == -signal.SIGKILL
    ended = stage.resume()
    assert (ended.code, ended.result["state"]) == (0, "accepted"), ended
    assert any("took over" in each and owner in each for each in ended.told), ended.told
    assert stage.marks == ["a", "b"]
    check_laws(stage, live_calls=4)
