"""Whole runs of LangChain under the supervisor: settings, parallel calls killed, divergence, the example."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from agentrewind.records import ToolNode
from agentrewind.replaying import replay_run
from harness_adapters.scripted import ScriptedAnswer
from tests.adapters.examples import run_example
from tests.e2e.laws import check_laws
from tests.e2e.stage import Stage
from tests.e2e.steps import back, look, marked, results, shell, story, work

pytest.importorskip("langchain")
pytest.importorskip("langchain_openai")

pytestmark = pytest.mark.slow


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    with Stage(base=tmp_path, policy=story()) as made:
        yield made


def end(say: str = "end") -> ScriptedAnswer:
    return ScriptedAnswer(f"say-{say}")


def test_settings_choose_how_the_graph_runs(stage: Stage) -> None:
    stage.policy = story(
        work("one", "echo one > one.txt"),
        ScriptedAnswer("say-two", [shell(marked("left", "rm one.txt")), shell(marked("right"))]),
        look(),
        back("two", "NOTE_A"),
        NOTE_A=[end("first"), work("three", "touch ready"), end("second")],
    )
    ended = stage.start(
        harness="langchain",
        settings={"config": ["mode=astream", "checkpointer=true", "instructions=Be a test."]},
        check="test -e ready",
    )
    assert (ended.code, ended.result["state"], ended.result["rewinds"]) == (0, "accepted", 1), ended
    check_laws(stage)
    assert all(request.stream for request in stage.server.requests)
    assert str(stage.server.requests[0].messages[0]["content"]).startswith("Be a test.")
    found = replay_run(stage.run, home=stage.home, environment=stage.environment)
    assert (found.divergence, found.state) == (None, "accepted")


@pytest.mark.parametrize("mode", ["invoke", "ainvoke"])
def test_a_kill_among_parallel_calls_repeats_none_of_them(stage: Stage, mode: str) -> None:
    stage.policy = story(
        ScriptedAnswer(
            "say-three",
            [
                shell(marked("quick")),
                shell(marked("killed", "sleep 0.7; kill -9 $PPID")),
                shell(marked("long", "sleep 30; touch late")),
            ],
        ),
        work("after"),
        end(),
    )
    killed = stage.start(harness="langchain", settings={"mode": mode})
    assert killed.result["state"] == "error"
    ended = stage.resume()
    assert (ended.code, ended.result["state"]) == (0, "accepted"), ended
    assert sorted(stage.marks[:3]) == ["killed", "long", "quick"]
    assert stage.marks[3:] == ["after"]
    assert not (stage.root / "late").exists()
    quick, second, third, _ = results(stage.server.requests[-1])
    assert "did-quick" in quick
    assert "interrupted" in second
    assert "interrupted" in third
    assert [node.interrupted for node in stage.timeline.path() if isinstance(node, ToolNode)].count(True) == 2


@pytest.mark.parametrize("mode", ["invoke", "ainvoke"])
def test_a_divergence_ends_the_process_in_every_path(stage: Stage, mode: str) -> None:
    """Awaited, LangChain turns what is no Exception into an AttributeError; the latch ends it still."""
    refused = ScriptedAnswer(None, status=400, body={"error": {"message": "not now"}})
    stage.policy = story(work("one"), refused)
    harness = "tests.adapters.wandering:Wandering"
    assert stage.start(harness=harness, settings={"mode": mode}).result["state"] == "error"
    requests = len(stage.server.requests)
    other = stage.resume(agent_environment={"TOLD": "You are another."})
    assert other.code == 3, other
    assert "You are another." in other.result["detail"]
    assert (len(stage.server.requests), stage.marks) == (requests, ["one"])


def test_a_model_of_no_key_at_all_can_be_replayed(stage: Stage) -> None:
    stage.policy = story(work("one"), end())
    assert stage.start(harness="langchain").code == 0
    environment = {name: value for name, value in stage.environment.items() if name != "OPENAI_API_KEY"}
    found = replay_run(stage.run, home=stage.home, environment=environment)
    assert (found.divergence, found.state, found.served) == (None, "accepted", 3)


def test_the_example_goes_back(tmp_path: Path) -> None:
    policy = story(
        work("one", "echo 1 > kept"),
        work("two", "rm kept"),
        look(),
        back("two", "NOTE_A"),
        NOTE_A=[work("three", "cat kept"), end()],
    )
    result = run_example("langchain_agent.py", tmp_path, policy)
    assert result.rewinds == 1
    assert result.marks == ["one", "two", "three"]
    assert (result.workspace / "kept").read_text() == "1\n"
