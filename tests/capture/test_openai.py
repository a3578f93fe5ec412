"""The openai SDK under the layer: every variant of a call is recorded once, and replayed as the SDK's own."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import openai
import pytest
from pydantic import BaseModel

from agentrewind.errors import DivergenceError, UsageError
from agentrewind.rewind.signal import StopSignal
from harness_adapters.scripted import ScriptedAnswer, ScriptedRequest, from_steps
from tests.capture.clients import ANSWER, FLAT_TOOLS, KEY, MESSAGES, TOOLS, without_ids
from tests.capture.joined import Joined, attempt, joined, later, remember, run_of, told


class Sum(BaseModel):
    total: int


CHAT: dict[str, Any] = {"model": "m", "messages": MESSAGES, "tools": TOOLS}
ITEMS: dict[str, Any] = {"model": "m", "input": "go", "instructions": "You work.", "tools": FLAT_TOOLS}


@contextmanager
def client(run: Joined) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=run.model.base_url, api_key=KEY, max_retries=0) as made:
        yield made


@asynccontextmanager
async def aclient(run: Joined) -> AsyncIterator[openai.AsyncOpenAI]:
    async with openai.AsyncOpenAI(base_url=run.model.base_url, api_key=KEY, max_retries=0) as made:
        yield made


def joined_chunks(chunks: list[Any]) -> Any:
    """What a harness adds up from chunks."""
    from openai.lib.streaming.chat import ChatCompletionStreamState

    state: Any = ChatCompletionStreamState()
    for chunk in chunks:
        state.handle_chunk(chunk)
    return (type(chunks[0]), state.get_final_completion().model_dump())


def chat_create(c: openai.OpenAI) -> Any:
    answer = c.chat.completions.create(**CHAT)
    return (type(answer), answer.model_dump(), answer._request_id)


def chat_stream(c: openai.OpenAI) -> Any:
    with c.chat.completions.create(**CHAT, stream=True) as stream:
        assert type(stream) is openai.Stream
        return joined_chunks(list(stream))


def chat_stream_usage(c: openai.OpenAI) -> Any:
    stream = c.chat.completions.create(**CHAT, stream=True, stream_options={"include_usage": True})
    chunks = list(stream)
    return (joined_chunks(chunks), chunks[-1].model_dump())


def chat_stream_helper(c: openai.OpenAI) -> Any:
    with c.chat.completions.stream(**CHAT) as stream:
        kinds = [event.type for event in stream if event.type.endswith("done")]
        return (kinds, stream.get_final_completion().model_dump())


def chat_raw(c: openai.OpenAI) -> Any:
    raw = c.chat.completions.with_raw_response.create(**CHAT)
    return (type(raw), raw.status_code, raw.parse().model_dump())


def chat_raw_stream(c: openai.OpenAI) -> Any:
    raw = c.chat.completions.with_raw_response.create(**CHAT, stream=True)
    return (type(raw), joined_chunks(list(raw.parse())))


def chat_streaming_body(c: openai.OpenAI) -> Any:
    with c.chat.completions.with_streaming_response.create(**CHAT) as response:
        return (type(response), response.parse().model_dump())


def chat_posted(c: openai.OpenAI) -> Any:
    return c.post("/chat/completions", body=CHAT, cast_to=object)


def responses_create(c: openai.OpenAI) -> Any:
    answer = c.responses.create(**ITEMS)
    return (type(answer), answer.model_dump(), answer.output_text)


def responses_stream(c: openai.OpenAI) -> Any:
    with c.responses.create(**ITEMS, stream=True) as stream:
        events: list[Any] = list(stream)
    deltas = "".join(event.delta for event in events if event.type == "response.output_text.delta")
    kinds = list(dict.fromkeys(event.type for event in events))
    return (deltas, kinds, events[-1].response.model_dump())


def responses_helper(c: openai.OpenAI) -> Any:
    with c.responses.stream(**ITEMS) as stream:
        kinds = list(dict.fromkeys(event.type for event in stream))
        return (kinds, stream.get_final_response().model_dump())


def responses_parse(c: openai.OpenAI) -> Any:
    answer: Any = c.responses.parse(**ITEMS)
    return (type(answer), answer.model_dump())


def responses_raw(c: openai.OpenAI) -> Any:
    raw = c.responses.with_raw_response.create(**ITEMS)
    return (type(raw), raw.parse().model_dump())


SYNC = [
    chat_create,
    chat_stream,
    chat_stream_usage,
    chat_stream_helper,
    chat_raw,
    chat_raw_stream,
    chat_streaming_body,
    chat_posted,
    responses_create,
    responses_stream,
    responses_helper,
    responses_parse,
    responses_raw,
]


async def achat_create(c: openai.AsyncOpenAI) -> Any:
    answer = await c.chat.completions.create(**CHAT)
    return (type(answer), answer.model_dump())


async def achat_stream(c: openai.AsyncOpenAI) -> Any:
    async with await c.chat.completions.create(**CHAT, stream=True) as stream:
        assert type(stream) is openai.AsyncStream
        return joined_chunks([chunk async for chunk in stream])


async def achat_stream_helper(c: openai.AsyncOpenAI) -> Any:
    async with c.chat.completions.stream(**CHAT) as stream:
        kinds = [event.type async for event in stream if event.type.endswith("done")]
        return (kinds, (await stream.get_final_completion()).model_dump())


async def achat_raw(c: openai.AsyncOpenAI) -> Any:
    raw = await c.chat.completions.with_raw_response.create(**CHAT)
    return (type(raw), raw.parse().model_dump())


async def achat_streaming_body(c: openai.AsyncOpenAI) -> Any:
    async with c.chat.completions.with_streaming_response.create(**CHAT) as response:
        return (type(response), (await response.parse()).model_dump())


async def aresponses_create(c: openai.AsyncOpenAI) -> Any:
    return (await c.responses.create(**ITEMS)).model_dump()


async def aresponses_helper(c: openai.AsyncOpenAI) -> Any:
    async with c.responses.stream(**ITEMS) as stream:
        kinds = list(dict.fromkeys([event.type async for event in stream]))
        return (kinds, (await stream.get_final_response()).model_dump())


ASYNC = [
    achat_create,
    achat_stream,
    achat_stream_helper,
    achat_raw,
    achat_streaming_body,
    aresponses_create,
    aresponses_helper,
]


def with_client(run: Joined, code: Callable[[openai.OpenAI], Any]) -> Callable[[], Any]:
    def harness() -> Any:
        with client(run) as made:
            return code(made)

    return harness


def with_aclient(run: Joined, code: Callable[[openai.AsyncOpenAI], Any]) -> Callable[[], Any]:
    async def harness() -> Any:
        async with aclient(run) as made:
            return await code(made)

    return later(harness)


def same_thrice(run: Joined, harness: Callable[[], Any]) -> None:
    """Without the layer, with it, and from the log the harness sees the same; one node holds it."""
    bare = attempt(harness)
    live = run.live(lambda: attempt(harness))
    (node,) = run.nodes
    assert node.output is not None
    assert node.output["content"] == ANSWER.content
    calls = node.output["tool_calls"]
    assert isinstance(calls, list)
    assert len(calls) == 2
    served = run.replay(lambda: attempt(harness))
    assert without_ids(bare) == without_ids(live)
    assert served == live


@pytest.mark.parametrize("code", SYNC)
def test_each_variant_is_the_same_thrice(tmp_path: Path, code: Callable[[openai.OpenAI], Any]) -> None:
    with run_of(tmp_path, lambda request: ANSWER) as run:
        same_thrice(run, with_client(run, code))


@pytest.mark.parametrize("code", ASYNC)
def test_each_async_variant_is_the_same_thrice(
    tmp_path: Path, code: Callable[[openai.AsyncOpenAI], Any]
) -> None:
    with run_of(tmp_path, lambda request: ANSWER) as run:
        same_thrice(run, with_aclient(run, code))


def test_a_record_does_not_tell_whether_it_was_streamed(tmp_path: Path) -> None:
    """One mode's record answers the other; chat and responses."""
    outputs: list[Any] = []
    for number, code in enumerate((chat_create, chat_stream_usage, responses_create, responses_stream)):
        with run_of(tmp_path / str(number), lambda request: ANSWER) as run:
            run.live(with_client(run, code))
            outputs.append(run.nodes[0])
            other = [chat_stream_usage, chat_create, responses_stream, responses_create][number]
            run.replay(with_client(run, other))
    for one, other_node in ((outputs[0], outputs[1]), (outputs[2], outputs[3])):
        assert one.output == other_node.output
        assert (one.input_id, one.parameters) == (other_node.input_id, other_node.parameters)


def test_parsed_answers_stay_parsed(tmp_path: Path) -> None:
    def code(c: openai.OpenAI) -> Any:
        parsed = c.chat.completions.parse(model="m", messages=MESSAGES, response_format=Sum)
        return (parsed.choices[0].message.parsed, parsed.model_dump(warnings=False))

    with run_of(tmp_path, lambda request: ScriptedAnswer(content='{"total": 3}')) as run:
        live = run.live(with_client(run, code))
        assert live[0] == Sum(total=3)
        assert run.replay(with_client(run, code)) == live
        assert "response_format" in run.nodes[0].parameters


def test_what_the_sdk_makes_of_an_answer_is_made_again(tmp_path: Path) -> None:
    """An answer that cannot be parsed was given all the same: a node, and the same exception on replay."""

    def code(c: openai.OpenAI) -> Any:
        return c.chat.completions.parse(model="m", messages=MESSAGES, response_format=Sum)

    with run_of(tmp_path, lambda request: ScriptedAnswer(content="no json")) as run:
        live = run.live(lambda: attempt(with_client(run, code)))
        assert isinstance(live, ValueError)
        assert len(run.nodes) == 1
        assert not run.attempts
        again = run.replay(lambda: attempt(with_client(run, code)))
        assert (type(again), str(again)) == (type(live), str(live))


@pytest.mark.parametrize("status", [400, 401, 404, 429, 500])
def test_http_errors_are_the_same_thrice(tmp_path: Path, status: int) -> None:
    answers = [ScriptedAnswer(status=status), ANSWER]

    def policy(request: ScriptedRequest) -> ScriptedAnswer:
        return answers[0] if "more" not in str(request.raw) else answers[1]

    def code(c: openai.OpenAI) -> Any:
        failed = attempt(lambda: c.chat.completions.create(**CHAT))
        more = [*MESSAGES, {"role": "user", "content": "more"}]
        return (told(failed), c.chat.completions.create(model="m", messages=more).choices[0].message.content)

    with run_of(tmp_path, policy) as run:
        harness = with_client(run, code)
        bare, live = run.bare(harness), run.live(harness)
        assert live == bare
        assert [node.error is None for node in run.nodes] == [False, True]
        assert run.replay(harness) == live


def test_retries_of_the_sdk_are_one_call(tmp_path: Path) -> None:
    steps = iter([ScriptedAnswer(status=500), ScriptedAnswer(status=500), ANSWER])

    def code() -> Any:
        with openai.OpenAI(base_url=run.model.base_url, api_key=KEY, max_retries=2) as c:
            return c.chat.completions.create(**CHAT).model_dump()

    with run_of(tmp_path, lambda request: next(steps)) as run:
        live = run.live(code)
        assert len(run.model.requests) == 3
        assert len(run.nodes) == 1
        assert not run.attempts
        assert run.replay(code) == live


def test_retries_of_the_harness_are_attempts_of_one_node(tmp_path: Path) -> None:
    steps = iter([ScriptedAnswer(status=429), ANSWER])

    def code(c: openai.OpenAI) -> Any:
        while isinstance(answer := attempt(lambda: c.chat.completions.create(**CHAT)), openai.RateLimitError):
            continue
        assert not isinstance(answer, BaseException)
        return answer.model_dump()

    with run_of(tmp_path, lambda request: next(steps)) as run:
        live = run.live(with_client(run, code))
        (node,) = run.nodes
        assert node.metadata.attempts == 2
        assert run.replay(with_client(run, code)) == live


def test_connection_errors_and_timeouts_are_the_same_thrice(tmp_path: Path) -> None:
    def policy(request: ScriptedRequest) -> ScriptedAnswer:
        slow = "slow" in str(request.raw)
        return ScriptedAnswer(content="late", delay=5.0 if slow else 0.0)

    def code(c: openai.OpenAI) -> Any:
        slow: list[Any] = [{"role": "user", "content": "slow"}]
        timed_out = attempt(lambda: c.chat.completions.create(model="m", messages=slow, timeout=0.2))
        away = c.with_options(base_url="http://127.0.0.1:9/v1")
        refused = attempt(lambda: away.chat.completions.create(**CHAT))
        last = c.chat.completions.create(model="m", messages=[{"role": "user", "content": "quick"}])
        return [(type(e), str(e)) for e in (timed_out, refused)], last.choices[0].message.content

    with run_of(tmp_path, policy) as run:
        harness = with_client(run, code)
        live = run.live(harness)
        assert [kind for kind, _ in live[0]] == [openai.APITimeoutError, openai.APIConnectionError]
        assert run.replay(harness) == live


def read_all(c: openai.OpenAI, **more: Any) -> Any:
    """The chunks that a harness gets, and what ended the stream."""
    seen: list[Any] = []
    try:
        for chunk in c.chat.completions.create(**{**CHAT, **more}, stream=True):
            seen.append(chunk.model_dump())
    except openai.OpenAIError as error:
        return (seen, type(error), str(error))
    return (seen, None, None)


@pytest.mark.parametrize("cleanly", [False, True])
def test_a_stream_that_ends_half_way_is_an_attempt(tmp_path: Path, cleanly: bool) -> None:
    """Where the harness goes on with something else, replay breaks in the same place in the same way."""

    def policy(request: ScriptedRequest) -> ScriptedAnswer:
        if "after" in str(request.raw):
            return ScriptedAnswer(content="fine")
        return ScriptedAnswer(content=ANSWER.content, cut_after=2, cut_cleanly=cleanly)

    def code(c: openai.OpenAI) -> Any:
        broken = read_all(c)
        later_messages = [*MESSAGES, {"role": "user", "content": "after"}]
        return broken, read_all(c, messages=later_messages)[0][1]["choices"][0]["delta"]["content"]

    with run_of(tmp_path, policy) as run:
        harness = with_client(run, code)
        bare, live = run.bare(harness), run.live(harness)
        assert len(live[0][0]) == 2
        assert without_ids(live) == without_ids(bare)
        assert (live[0][1] is None) is cleanly
        assert [node.error is None for node in run.nodes] == [False, True]
        assert len(run.attempts) == 1
        assert run.replay(harness) == live


def test_a_broken_stream_that_is_asked_again_is_one_node(tmp_path: Path) -> None:
    steps = iter([ScriptedAnswer(content=ANSWER.content, cut_after=2), ScriptedAnswer(content="fine")])

    def code(c: openai.OpenAI) -> Any:
        while (read := read_all(c))[1] is not None:
            continue
        return "".join(chunk["choices"][0]["delta"].get("content") or "" for chunk in read[0])

    with run_of(tmp_path, lambda request: next(steps)) as run:
        assert run.live(with_client(run, code)) == "fine"
        (node,) = run.nodes
        assert node.metadata.attempts == 2
        assert run.replay(with_client(run, code)) == "fine"


@pytest.mark.parametrize("how", ["close", "drop", "never"])
def test_a_stream_that_is_left_is_an_attempt(tmp_path: Path, how: str) -> None:
    def policy(request: ScriptedRequest) -> ScriptedAnswer:
        return ScriptedAnswer(content="fine" if "after" in str(request.raw) else ANSWER.content)

    def code(c: openai.OpenAI) -> Any:
        stream = c.chat.completions.create(**CHAT, stream=True)
        first = next(stream).model_dump() if how != "never" else None
        if how == "close":
            stream.close()
        del stream
        gc.collect()
        after: list[Any] = [*MESSAGES, {"role": "user", "content": "after"}]
        return first, c.chat.completions.create(model="m", messages=after).choices[0].message.content

    with run_of(tmp_path, policy) as run:
        live = run.live(with_client(run, code))
        assert len(run.attempts) == 1
        assert [node.error is None for node in run.nodes] == [False, True]
        assert run.replay(with_client(run, code)) == live


def test_reading_on_where_the_harness_had_stopped_is_a_divergence(tmp_path: Path) -> None:
    def code(c: openai.OpenAI, chunks: int) -> Any:
        stream = c.chat.completions.create(**CHAT, stream=True)
        for _ in range(chunks):
            next(stream)
        stream.close()
        after: list[Any] = [*MESSAGES, {"role": "user", "content": "after"}]
        return c.chat.completions.create(model="m", messages=after)

    with run_of(tmp_path, lambda request: ScriptedAnswer(content=ANSWER.content)) as run:
        run.live(with_client(run, lambda c: code(c, 1)))
        layer = run.stage.replay()
        with joined(layer), pytest.raises(StopSignal):
            with_client(run, lambda c: code(c, 2))()
        assert isinstance(layer.latch.error, DivergenceError)


def test_an_answer_whose_end_was_seen_is_whole_though_nobody_reads_on(tmp_path: Path) -> None:
    """Many harnesses stop at the finish reason; the answer is complete by then, and its tools run next."""

    def code(c: openai.OpenAI) -> Any:
        stream = c.chat.completions.create(**CHAT, stream=True)
        for chunk in stream:
            if chunk.choices[0].finish_reason:
                break
        return stream, len(run.nodes)

    with run_of(tmp_path, lambda request: ANSWER) as run:
        assert run.live(with_client(run, code))[1] == 1


def test_chunks_reach_the_harness_while_the_model_talks(tmp_path: Path) -> None:
    def code(c: openai.OpenAI) -> Any:
        stream = c.chat.completions.create(**CHAT, stream=True)
        next(stream)
        began = time.monotonic()
        list(stream)
        return time.monotonic() - began

    with run_of(tmp_path, lambda request: ScriptedAnswer(content="a" * 100, gap=0.05)) as run:
        assert run.live(with_client(run, code)) > 0.2


def test_streams_side_by_side_are_told_apart(tmp_path: Path) -> None:
    async def code(c: openai.AsyncOpenAI) -> Any:
        async def one(name: str) -> str:
            messages: list[Any] = [{"role": "user", "content": name}]
            stream = await c.chat.completions.create(model="m", messages=messages, stream=True)
            return "".join([chunk.choices[0].delta.content or "" async for chunk in stream])

        return await asyncio.gather(*(one(f"agent {n}") for n in range(4)))

    def policy(request: ScriptedRequest) -> ScriptedAnswer:
        return ScriptedAnswer(content=f"hello {request.messages[0]['content']}" * 4, gap=0.01)

    with run_of(tmp_path, policy) as run:
        live = run.live(with_aclient(run, code))
        assert [text[:13] for text in live] == [f"hello agent {n}" for n in range(4)]
        assert len(run.nodes) == 4
        assert run.replay(with_aclient(run, code)) == live


def test_the_key_is_nowhere_in_the_run(tmp_path: Path) -> None:
    leak = ScriptedAnswer(status=401, body={"error": {"message": f"bad key plain-{KEY[3:]} or {KEY}"}})
    secret = "plainlookingcredential"
    answers = iter([leak, ScriptedAnswer(status=401, body={"error": {"message": secret}}), ANSWER])

    def code() -> Any:
        with openai.OpenAI(
            base_url=run.model.base_url, api_key=secret, max_retries=0, default_headers={"X-Auth": KEY}
        ) as c:
            for _ in range(2):
                attempt(lambda: c.chat.completions.create(**CHAT))
            return c.chat.completions.create(**CHAT, extra_headers={"X-Other-Key": KEY}).id

    with run_of(tmp_path, lambda request: next(answers)) as run:
        run.live(code)
        kept = run.stage.bytes_on_disk
        assert KEY.encode() not in kept
        assert secret.encode() not in kept
        assert len(run.attempts) == 2


def test_a_conversation_that_the_provider_keeps_is_refused(tmp_path: Path) -> None:
    with run_of(tmp_path, lambda request: ANSWER) as run, run.stage.live() as layer, joined(layer):
        with client(run) as c, pytest.raises(StopSignal):
            c.responses.create(model="m", input="go", previous_response_id="resp_1")
        assert isinstance(layer.latch.error, UsageError)
        assert "previous_response_id" in str(layer.latch.error)
        assert not run.model.requests


def test_calls_that_cannot_be_recorded_are_refused(tmp_path: Path) -> None:
    def connect(c: openai.OpenAI) -> Any:
        return c.realtime.connect(model="m")

    def complete(c: openai.OpenAI) -> Any:
        return c.completions.create(model="m", prompt="go")

    for number, code in enumerate((connect, complete)):
        with run_of(tmp_path / str(number), lambda request: ANSWER) as run:
            with run.stage.live() as layer, joined(layer), client(run) as c, pytest.raises(StopSignal):
                code(c)
            assert isinstance(layer.latch.error, UsageError)
            assert not run.model.requests


def test_a_loop_with_tools_is_replayed_and_remembers(tmp_path: Path) -> None:
    """With a rewind memory: it is sent once, after its anchor, and is in no record."""
    steps = [
        ScriptedAnswer(content=None, tool_calls=[("bash", {"command": "ls"})]),
        ScriptedAnswer(content="done"),
    ]

    def code(c: openai.OpenAI) -> Any:
        messages = list(MESSAGES)
        while True:
            message = c.chat.completions.create(model="m", messages=messages, tools=TOOLS).choices[0].message
            messages.append(message)
            for call in message.tool_calls or ():
                messages.append({"role": "tool", "tool_call_id": call.id, "content": "a file"})
            if not message.tool_calls:
                return message.content

    with run_of(tmp_path, from_steps(steps)) as run:
        assert run.live(with_client(run, code)) == "done"
        assert run.replay(with_client(run, code)) == "done"
        first = run.nodes[0]
    with run_of(tmp_path / "second", from_steps(steps)) as run:
        with run.stage.live() as layer, joined(layer):
            remember(layer, index=2, anchor=MESSAGES[1], conversation=first.conversation)
            assert with_client(run, code)() == "done"
        roles = [[message["role"] for message in request.messages] for request in run.model.requests]
        assert roles == [
            ["system", "user", "system"],
            ["system", "user", "system", "assistant", "tool"],
        ]
        assert b"MEMORY" not in run.stage.bytes_on_disk


def test_responses_remember_outside_of_pairs(tmp_path: Path) -> None:
    steps = [
        ScriptedAnswer(content=None, tool_calls=[("bash", {"command": "ls"})]),
        ScriptedAnswer(content="done"),
    ]

    def code(c: openai.OpenAI) -> Any:
        items: list[Any] = [{"role": "user", "content": "go"}]
        while True:
            answer = c.responses.create(model="m", instructions="You work.", input=items, tools=FLAT_TOOLS)
            items += answer.output
            calls = [item for item in answer.output if item.type == "function_call"]
            if not calls:
                return answer.output_text
            items += [
                {"type": "function_call_output", "call_id": call.call_id, "output": "a file"}
                for call in calls
            ]

    with run_of(tmp_path, from_steps(steps)) as run:
        assert run.live(with_client(run, code)) == "done"
        assert run.replay(with_client(run, code)) == "done"
        conversation = run.nodes[0].conversation
        assert run.nodes[1].conversation == conversation
        for request in run.model.requests:
            assert request.refusal is None
    with run_of(tmp_path / "second", from_steps(steps)) as run:
        with run.stage.live() as layer, joined(layer):
            remember(
                layer,
                index=2,
                anchor={"role": "user", "content": "go"},
                conversation=conversation,
                role="user",
            )
            assert with_client(run, code)() == "done"
        roles = [[message["role"] for message in request.messages] for request in run.model.requests]
        assert roles == [["system", "user", "user"], ["system", "user", "user", "assistant", "tool"]]
        assert [request.raw.get("instructions") for request in run.model.requests] == ["You work."] * 2
