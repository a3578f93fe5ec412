"""mini-SWE-agent's three litellm model classes: what each makes of the two tools, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness_adapters.scripted import ScriptedAnswer, ScriptedRequest
from tests.adapters import code_steps
from tests.adapters.code_steps import story
from tests.contracts.dialects import VARIANTS
from tests.e2e import steps
from tests.e2e.laws import check_laws
from tests.e2e.stage import Stage
from tests.e2e.steps import CANDIDATES, COMMIT, marked, shell

pytest.importorskip("minisweagent")

pytestmark = pytest.mark.slow

TEXT = VARIANTS["mini-swe-agent, text"]


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    with Stage(base=tmp_path, policy=story()) as made:
        yield made


def block(action: str) -> ScriptedAnswer:
    return ScriptedAnswer(f"say-block\n\n```mswea_bash_command\n{action}\n```")


def told_last(stage: Stage) -> str:
    return code_steps.told(stage.server.requests[-1])[-1]


def test_in_text_a_note_may_have_lines_and_what_is_no_json_is_told(stage: Stage) -> None:
    say = TEXT.dialect.say

    def lines(request: ScriptedRequest) -> ScriptedAnswer:
        uid = TEXT.dialect.uid_of(request, "one")
        return block(f'{COMMIT} {{"record_uid": "{uid}",\n"memory_summary": "NOTE_A:\n- one\n- two"}}')

    def after(request: ScriptedRequest) -> ScriptedAnswer:
        assert "no JSON object" in told_last(stage)
        return block(CANDIDATES)

    stage.policy = story(
        say("one", [shell(marked("one", "echo one > one.txt"))]),
        block(f"{COMMIT} --record_uid rec_000001"),
        after,
        block(f"true && {CANDIDATES} {{}}"),
        say("look", [(CANDIDATES, {"reason": "why"})]),
        lines,
        NOTE_A=[TEXT.dialect.submit("end")],
    )
    ended = stage.start(harness=TEXT.harness, settings=TEXT.settings)
    assert (ended.code, ended.result["state"], ended.result["rewinds"]) == (0, "accepted", 1), ended
    assert not list(stage.root.iterdir())
    looked = json.loads(_answer_to(stage, CANDIDATES))
    assert looked["candidates"][0]["record_uid"]
    assert "127" in _answer_to(stage, f"true && {CANDIDATES}"), "within a command they are no commands"
    check_laws(stage)


def _answer_to(stage: Stage, action: str) -> str:
    """What the agent was told after the last answer that began its command like this."""
    for request in reversed(stage.server.requests):
        for asked, told in zip(request.messages, request.messages[1:], strict=False):
            if f"```mswea_bash_command\n{action}" in str(asked.get("content")):
                return str(told["content"])
    raise AssertionError(f"nothing was answered to {action}")


@pytest.mark.parametrize(
    ("model_class", "named"),
    [
        ("deterministic", "litellm_textbased"),
        ("tests.adapters.test_mini_swe_agent.Own", "litellm_textbased"),
        ("no_such_class", "Unknown model class"),
    ],
)
def test_a_class_that_asks_in_another_way_is_refused(stage: Stage, model_class: str, named: str) -> None:
    config = [f"model.model_class={model_class}", "model.outputs=[]"]
    ended = stage.start(harness="mini-swe-agent", settings={"config": config})
    assert named in str(ended.said[-1]), ended
    assert not stage.server.requests


def __getattr__(name: str) -> type:
    if name != "Own":
        raise AttributeError(name)
    from minisweagent.models.litellm_model import LitellmModel

    class Own(LitellmModel):  # type: ignore[misc]
        def _query(self, messages: object, **kwargs: object) -> object:
            raise AssertionError("never asked")

    return Own


def test_calls_beside_each_other_in_responses_keep_their_order_and_a_broken_one_is_told(stage: Stage) -> None:
    variant = VARIANTS["mini-swe-agent, Responses API"]
    say = variant.dialect.say
    stage.policy = steps.story(
        say("one", [shell(marked("one")), (CANDIDATES, {"reason": "why"}), shell(marked("two"))]),
        ScriptedAnswer("say-broken", [("bash", '{"command": '), (CANDIDATES, {"reason": "why"})]),
        variant.dialect.submit("end"),
    )
    ended = stage.start(harness=variant.harness, settings=variant.settings)
    assert (ended.code, ended.result["state"]) == (0, "accepted"), ended
    assert stage.marks == ["one", "two"]
    results = [each for each in stage.server.requests[1].messages if each["role"] == "tool"]
    expected = ("did-one", "candidates", "did-two")
    assert [word in str(each) for word, each in zip(expected, results, strict=True)] == [True] * 3
    assert "Error parsing tool call arguments" in str(stage.server.requests[2].messages[-1])
