"""Whole runs of Qwen-Agent under the supervisor, with tools in the prompt, and the example."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from agentrewind.replaying import replay_run
from harness_adapters.scripted import ScriptedAnswer
from tests.adapters.examples import run_example
from tests.adapters.tagged import in_tags, with_calls
from tests.e2e.laws import check_laws
from tests.e2e.stage import Stage
from tests.e2e.steps import back, look, marked, results, shell, story, work

pytest.importorskip("qwen_agent")

pytestmark = pytest.mark.slow


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    with Stage(base=tmp_path, policy=story()) as made:
        yield made


def end(say: str = "end") -> ScriptedAnswer:
    return ScriptedAnswer(f"say-{say}")


@pytest.mark.parametrize("agent", ["fncall", "assistant"])
def test_tools_in_the_prompt(stage: Stage, agent: str) -> None:
    stage.policy = in_tags(
        story(
            work("one", "echo one > one.txt"),
            ScriptedAnswer("say-two", [shell(marked("left", "rm one.txt")), shell(marked("right"))]),
            look(),
            back("two", "NOTE_A"),
            NOTE_A=[end("first"), work("three", "touch ready"), end("second")],
        )
    )
    ended = stage.start(
        harness="qwen-agent",
        settings={"agent": agent, "config": ["tools=prompt", 'generate_cfg={"temperature": 0.5}']},
        check="test -e ready",
    )
    assert (ended.code, ended.result["state"], ended.result["rewinds"]) == (0, "accepted", 1), ended
    assert stage.marks == ["one", "left", "right", "three"]
    check_laws(stage)
    assert not any(request.tools for request in stage.server.requests)
    assert stage.server.requests[0].raw["temperature"] == 0.5
    assert sorted(path.name for path in stage.root.iterdir()) == ["one.txt", "ready"]
    found = replay_run(stage.run, home=stage.home, environment=stage.environment)
    assert (found.divergence, found.state) == (None, "accepted")


def test_a_call_in_the_prompt_that_was_killed_is_told_and_not_repeated(stage: Stage) -> None:
    stage.policy = in_tags(
        story(
            ScriptedAnswer(
                "say-two",
                [shell(marked("first")), shell(marked("killed", "kill -9 $PPID")), shell(marked("last"))],
            ),
            work("after"),
            end(),
        )
    )
    killed = stage.start(harness="qwen-agent", settings={"tools": "prompt"})
    assert killed.result["state"] == "error"
    ended = stage.resume()
    assert (ended.code, ended.result["state"]) == (0, "accepted"), ended
    assert stage.marks == ["first", "killed", "last", "after"]
    told = results(with_calls(stage.server.requests[-1]))
    assert "did-first" in told[0]
    assert "interrupted" in told[1]
    assert "did-last" in told[2]


def test_the_example_goes_back(tmp_path: Path) -> None:
    policy = story(
        work("one", "echo 1 > kept"),
        work("two", "rm kept"),
        look(),
        back("two", "NOTE_A"),
        NOTE_A=[work("three", "cat kept"), end()],
    )
    result = run_example("qwen_agent_loop.py", tmp_path, in_tags(policy))
    assert result.rewinds == 1
    assert result.marks == ["one", "two", "three"]
    assert (result.workspace / "kept").read_text() == "1\n"
