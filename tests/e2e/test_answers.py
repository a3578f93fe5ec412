"""Stories of a model and of tools that talk nonsense: the log holds, a rewind still works."""

from __future__ import annotations

import pytest

from agentrewind.records import ToolNode
from harness_adapters.scripted import ScriptedAnswer
from tests.e2e.laws import check_laws
from tests.e2e.stage import Stage
from tests.e2e.steps import back, look, shell, story, submit, work

pytestmark = pytest.mark.slow


def test_calls_that_cannot_be_read_do_not_break_a_rewind(stage: Stage) -> None:
    stage.policy = story(
        work("a", "echo a > a"),
        ScriptedAnswer("say-broken", [("bash", '{"command": "echo never >> $SIDE')]),
        ScriptedAnswer("say-unknown", [("browser", {"url": "x"})]),
        ScriptedAnswer("say-list", [("bash", "[1]")]),
        work("b", "echo b > b"),
        ScriptedAnswer("", []),
        ScriptedAnswer(None, [shell("echo null >> $SIDE")]),
        work("c", "rm a b"),
        look(),
        back("c", "NOTE_A"),
        NOTE_A=[work("d"), ScriptedAnswer("say-nothing", []), submit()],
    )
    ended = stage.start(settings={"config": ["agent.max_consecutive_format_errors=0"]})
    assert (ended.code, ended.result["rewinds"]) == (0, 1), ended.result
    assert stage.marks == ["a", "b", "null", "c", "d"]
    assert sorted(path.name for path in stage.root.iterdir()) == ["a", "b"]
    check_laws(stage)


def test_output_that_is_no_text_and_commands_that_fail(stage: Stage) -> None:
    stage.policy = story(
        work("a", r"printf '\377\376\000\001\033[31m'"),
        work("b", "exit 3"),
        ScriptedAnswer("say-half", [("bash", r'{"command": "echo half \ud83d; touch half"}')]),
        ScriptedAnswer("say-nul", [("bash", {"command": "echo nul\0; touch nul"})]),
        work("c", "head -c 300000 /dev/urandom | base64"),
        work("d", "kill -9 $$"),
        work("e", "sleep 30"),
        look(),
        back("e", "NOTE_A"),
        NOTE_A=[work("f"), submit()],
    )
    ended = stage.start(settings={"config": ["environment.timeout=1"]})
    assert (ended.code, ended.result["rewinds"]) == (0, 1), ended.result
    assert stage.marks == ["a", "b", "c", "d", "e", "f"]
    codes = [
        node.output["returncode"]
        for node in stage.timeline.nodes.values()
        if isinstance(node, ToolNode) and isinstance(node.output, dict) and "returncode" in node.output
    ]
    assert codes[:2] == [0, 3]
    assert codes[5:7] == [-9, -1]
    check_laws(stage)
