"""litellm's responses, sync and async, streamed or not: recorded once and replayed as its own objects."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from agentrewind.errors import UsageError
from agentrewind.rewind.signal import StopSignal
from harness_adapters.scripted import ScriptedAnswer, from_steps
from tests.capture.clients import ANSWER, FLAT_TOOLS, KEY, without_ids
from tests.capture.joined import Joined, joined, later, remember, run_of
from tests.capture.test_edited_answers import EDIT, SAID, fork, recorded

pytestmark = pytest.mark.filterwarnings("ignore")  # litellm's own


@pytest.fixture(scope="module")
def litellm() -> Iterator[Any]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LITELLM_LOCAL_MODEL_COST_MAP", "True")
        import litellm as package

        patch.setattr(package, "suppress_debug_info", True)
        yield package


def arguments(run: Joined, **more: Any) -> dict[str, Any]:
    return {
        "model": "openai/gpt-4o",  # a name that litellm knows, so that it streams for real
        "input": "go",
        "instructions": "You work.",
        "tools": FLAT_TOOLS,
        "api_base": run.model.base_url,
        "api_key": KEY,
        **more,
    }


def whole(litellm: Any, run: Joined) -> Callable[[], Any]:
    def harness() -> Any:
        answer = litellm.responses(**arguments(run))
        return (type(answer), answer.model_dump(mode="json", warnings=False))

    return harness


def awhole(litellm: Any, run: Joined) -> Callable[[], Any]:
    async def harness() -> Any:
        answer = await litellm.aresponses(**arguments(run))
        return (type(answer), answer.model_dump(mode="json", warnings=False))

    return later(harness)


def streamed(litellm: Any, run: Joined) -> Callable[[], Any]:
    def harness() -> Any:
        stream = litellm.responses(**arguments(run, stream=True))
        return told(stream, list(stream))

    return harness


def astreamed(litellm: Any, run: Joined) -> Callable[[], Any]:
    async def harness() -> Any:
        stream = await litellm.aresponses(**arguments(run, stream=True))
        return told(stream, [event async for event in stream])

    return later(harness)


def without_response_ids(seen: Any) -> str:
    """litellm packs the provider's id and its own knowledge of the provider into one."""
    return re.sub(r"resp_[A-Za-z0-9+/=]+", "resp_n", without_ids(seen))


def told(stream: Any, events: list[Any]) -> Any:
    kinds = list(dict.fromkeys(str(event.type) for event in events))
    text = "".join(event.delta for event in events if event.type == "response.output_text.delta")
    dump = events[-1].response.model_dump(mode="json", warnings=False)
    dump.pop("usage")  # litellm's own bookkeeping rewrites it while the harness reads
    return (type(stream).__name__, [type(event) for event in events[-1:]], kinds, text, dump)


@pytest.mark.parametrize("make", [whole, awhole, streamed, astreamed])
def test_an_answer_is_the_same_thrice(
    litellm: Any, tmp_path: Path, make: Callable[..., Callable[[], Any]]
) -> None:
    with run_of(tmp_path, lambda request: ANSWER) as run:
        harness = make(litellm, run)
        bare, live = run.bare(harness), run.live(harness)
        assert without_response_ids(live) == without_response_ids(bare)
        (node,) = run.nodes
        assert node.output is not None
        assert node.output["content"] == ANSWER.content
        assert [call["id"] for call in node.output["tool_calls"]] == ["call_3", "call_4"]  # type: ignore[union-attr, index, call-overload]
        assert run.replay(harness) == live
        assert [message["role"] for message in run.model.requests[-1].messages] == ["system", "user"]


def test_a_record_answers_both(litellm: Any, tmp_path: Path) -> None:
    for number, (one, other) in enumerate([(whole, streamed), (streamed, whole), (awhole, astreamed)]):
        with run_of(tmp_path / str(number), lambda request: ANSWER) as run:
            run.live(one(litellm, run))
            run.replay(other(litellm, run))


def test_a_loop_is_replayed_and_remembers(litellm: Any, tmp_path: Path) -> None:
    """The harness passes litellm's own items back, as many do."""
    steps = [
        ScriptedAnswer(
            content="I look.", tool_calls=[("bash", {"command": "ls"}), ("bash", {"command": "pwd"})]
        ),
        ScriptedAnswer(content="done"),
    ]

    def loop(run: Joined) -> Any:
        items: list[Any] = [{"role": "user", "content": "go"}]
        while True:
            answer = litellm.responses(**arguments(run, input=items))
            items += answer.output
            calls = [item for item in answer.output if item.type == "function_call"]
            if not calls:
                return answer.output[0].content[0].text
            items += [
                {"type": "function_call_output", "call_id": call.call_id, "output": "a file"}
                for call in calls
            ]

    with run_of(tmp_path, from_steps(steps)) as run:
        assert run.live(lambda: loop(run)) == "done"
        assert run.replay(lambda: loop(run)) == "done"
        conversation = run.nodes[1].conversation
    with run_of(tmp_path / "second", from_steps(steps)) as run:
        with run.stage.live() as layer, joined(layer):
            remember(layer, index=2, anchor={"role": "user", "content": "go"}, conversation=conversation)
            assert loop(run) == "done"
        roles = [[message["role"] for message in request.messages] for request in run.model.requests]
        assert roles == [
            ["system", "user", "system"],
            ["system", "user", "system", "assistant", "tool", "tool"],
        ]


def test_a_conversation_that_the_provider_keeps_is_refused(litellm: Any, tmp_path: Path) -> None:
    with run_of(tmp_path, lambda request: ANSWER) as run:
        with run.stage.live() as layer, joined(layer), pytest.raises(StopSignal):
            litellm.responses(**arguments(run, previous_response_id="resp_1"))
        assert isinstance(layer.latch.error, UsageError)
        assert not run.model.requests


def test_an_edited_answer_is_litellms_own_object(litellm: Any, tmp_path: Path) -> None:
    with recorded(tmp_path, lambda run: whole(litellm, run)()) as run:
        made = fork(run, EDIT)
        kind, answer = made.replay(whole(litellm, made))
    assert kind.__name__ == "ResponsesAPIResponse"
    message, *calls = answer["output"]
    assert [part["text"] for part in message["content"]] == [SAID]
    assert [(call["type"], call["name"]) for call in calls] == [("function_call", "bash")] * 2
