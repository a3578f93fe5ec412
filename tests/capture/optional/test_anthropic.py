"""The anthropic SDK under the layer: recorded once, replayed as the SDK's own, memory in the user's turn."""

from __future__ import annotations

import functools
import gc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agentrewind.errors import UsageError
from agentrewind.rewind.signal import StopSignal
from harness_adapters.scripted import ScriptedAnswer, ScriptedRequest, from_steps
from tests.capture.clients import ANSWER, KEY, SCHEMA, without_ids
from tests.capture.joined import Joined, attempt, joined, later, remember, run_of, told

anthropic: Any = pytest.importorskip("anthropic")

REQUEST: dict[str, Any] = {
    "model": "m",
    "max_tokens": 100,
    "system": "You work.",
    "messages": [{"role": "user", "content": "go"}],
    "tools": [{"name": "bash", "input_schema": SCHEMA}],
}


def client(run: Joined) -> Any:
    return anthropic.Anthropic(base_url=run.model.base_url.removesuffix("/v1"), api_key=KEY, max_retries=0)


def create(run: Joined) -> Any:
    answer = client(run).messages.create(**REQUEST)
    return (type(answer), answer.model_dump())


def stream_events(run: Joined) -> Any:
    stream = client(run).messages.create(**REQUEST, stream=True)
    kinds = list(dict.fromkeys(event.type for event in stream))
    return (type(stream), kinds)


def stream_helper(run: Joined) -> Any:
    with client(run).messages.stream(**REQUEST) as stream:
        text = "".join(stream.text_stream)
        return (type(stream).__name__, text, stream.get_final_message().model_dump())


def raw(run: Joined) -> Any:
    answer = client(run).messages.with_raw_response.create(**REQUEST)
    return (type(answer), answer.status_code, answer.parse().model_dump())


def streaming_body(run: Joined) -> Any:
    with client(run).messages.with_streaming_response.create(**REQUEST) as answer:
        return (type(answer), answer.parse().model_dump())


def beta(run: Joined) -> Any:
    return client(run).beta.messages.create(**REQUEST).model_dump()


def with_middleware(run: Joined) -> Any:
    """What a middleware makes of an answer it makes of a recorded one too."""
    seen: list[int] = []

    def watch(request: Any, call_next: Any) -> Any:
        response = call_next(request)
        seen.append(response.status_code)
        return response

    made = anthropic.Anthropic(
        base_url=run.model.base_url.removesuffix("/v1"), api_key=KEY, max_retries=0, middleware=[watch]
    )
    return (made.messages.create(**REQUEST).model_dump(), seen)


async def acreate(made: Any) -> Any:
    return (await made.messages.create(**REQUEST)).model_dump()


async def astream_helper(made: Any) -> Any:
    async with made.messages.stream(**REQUEST) as stream:
        text = "".join([piece async for piece in stream.text_stream])
        return (text, (await stream.get_final_message()).model_dump())


def asynchronous(code: Callable[[Any], Any]) -> Callable[[Joined], Any]:
    def harness(run: Joined) -> Any:
        async def go() -> Any:
            url = run.model.base_url.removesuffix("/v1")
            async with anthropic.AsyncAnthropic(base_url=url, api_key=KEY, max_retries=0) as made:
                return await code(made)

        return later(go)()

    return harness


ALL = [
    create,
    stream_events,
    stream_helper,
    raw,
    streaming_body,
    beta,
    with_middleware,
    asynchronous(acreate),
    asynchronous(astream_helper),
]


@pytest.mark.parametrize("code", ALL)
def test_each_variant_is_the_same_thrice(tmp_path: Path, code: Callable[[Joined], Any]) -> None:
    with run_of(tmp_path, lambda request: ANSWER) as run:
        bare, live = code(run), run.live(lambda: code(run))
        (node,) = run.nodes
        assert node.client == "anthropic.messages"
        assert node.output is not None
        assert node.output["content"] == ANSWER.content
        calls = node.output["tool_calls"]
        assert isinstance(calls, list)
        assert [call["function"]["name"] for call in calls] == ["bash", "bash"]  # type: ignore[index, call-overload]
        again = run.replay(lambda: code(run))
        assert without_ids(live) == without_ids(bare)
        assert again == live


def test_a_record_does_not_tell_whether_it_was_streamed(tmp_path: Path) -> None:
    outputs = []
    for number, (one, other) in enumerate([(create, stream_helper), (stream_helper, create)]):
        with run_of(tmp_path / str(number), lambda request: ANSWER) as run:
            run.live(functools.partial(one, run))
            run.replay(functools.partial(other, run))
            outputs.append((run.nodes[0].output, run.nodes[0].input_id, run.nodes[0].parameters))
    assert outputs[0] == outputs[1]


@pytest.mark.parametrize("status", [400, 401, 429, 500])
def test_http_errors_are_the_same_thrice(tmp_path: Path, status: int) -> None:
    def policy(request: ScriptedRequest) -> ScriptedAnswer:
        return ScriptedAnswer(content="fine") if request.told("after") else ScriptedAnswer(status=status)

    def code() -> Any:
        failed = attempt(lambda: client(run).messages.create(**REQUEST))
        after = [{"role": "user", "content": "after"}]
        answer = client(run).messages.create(**{**REQUEST, "messages": after})
        return told(failed), answer.content[0].text

    with run_of(tmp_path, policy) as run:
        bare, live = code(), run.live(code)
        assert live == bare
        assert [node.error is None for node in run.nodes] == [False, True]
        assert run.replay(code) == live


@pytest.mark.parametrize("how", ["break", "leave"])
def test_a_stream_that_does_not_reach_its_end_is_an_attempt(tmp_path: Path, how: str) -> None:
    cut = 4 if how == "break" else None

    def policy(request: ScriptedRequest) -> ScriptedAnswer:
        if request.told("after"):
            return ScriptedAnswer(content="fine")
        return ScriptedAnswer(content=ANSWER.content, cut_after=cut)

    def code() -> Any:
        seen: list[Any] = []
        stream = client(run).messages.create(**REQUEST, stream=True)
        error: Any = None
        try:
            for event in stream:
                if event.type != "ping":
                    seen.append(event.model_dump())
                if how == "leave" and len(seen) == 2:
                    break
        except Exception as broken:  # noqa: BLE001 - the exception is the result
            error = (type(broken), str(broken))
        stream.close()
        del stream
        gc.collect()
        after = [{"role": "user", "content": "after"}]
        return seen, error, client(run).messages.create(**{**REQUEST, "messages": after}).content[0].text

    with run_of(tmp_path, policy) as run:
        live = run.live(code)
        assert (live[1] is None) is (how == "leave")
        assert len(run.attempts) == 1
        assert [node.error is None for node in run.nodes] == [False, True]
        assert run.replay(code) == live


def loop(run: Joined) -> Any:
    """A harness that marks its last turn for the provider's cache, as many do."""
    turns: list[Any] = [{"role": "user", "content": "go"}]
    while True:
        *before, last = turns
        blocks = (
            [{"type": "text", "text": last["content"]}]
            if isinstance(last["content"], str)
            else last["content"]
        )
        marked = [*blocks[:-1], {**blocks[-1], "cache_control": {"type": "ephemeral"}}]
        sent = [*before, {**last, "content": marked}] if len(turns) > 1 else turns
        answer = client(run).messages.create(**{**REQUEST, "messages": sent})
        turns.append({"role": "assistant", "content": [block.to_dict() for block in answer.content]})
        uses = [block for block in answer.content if block.type == "tool_use"]
        if not uses:
            return answer.content[0].text
        turns.append(
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": use.id, "content": "a file"} for use in uses
                ],
            }
        )


def test_a_loop_is_replayed_and_remembers(tmp_path: Path) -> None:
    """The scripted model refuses turns that do not alternate, and results that do not follow their calls."""
    steps = [ANSWER, ScriptedAnswer(content=None, tool_calls=[("bash", {})]), ScriptedAnswer(content="done")]
    with run_of(tmp_path, from_steps(steps)) as run:
        assert run.live(lambda: loop(run)) == "done"
        assert run.replay(lambda: loop(run)) == "done"
        conversation = run.nodes[0].conversation
        assert {node.conversation for node in run.nodes} == {conversation}
    with run_of(tmp_path / "second", from_steps(steps)) as run:
        with run.stage.live() as layer, joined(layer):
            remember(layer, index=2, anchor={"role": "user", "content": "go"}, conversation=conversation)
            assert loop(run) == "done"
        for request in run.model.requests:
            first = request.raw["messages"][0]["content"]
            assert [block["text"] for block in first] == ["go", "MEMORY: try the other way"]
            assert str(request.raw).count("MEMORY") == 1
            assert request.raw["system"] == "You work."


def test_what_cannot_be_recorded_is_refused(tmp_path: Path) -> None:
    with run_of(tmp_path, lambda request: ANSWER) as run:
        with run.stage.live() as layer, joined(layer), pytest.raises(StopSignal):
            client(run).messages.batches.create(requests=[])
        assert isinstance(layer.latch.error, UsageError)
        assert not run.model.requests
