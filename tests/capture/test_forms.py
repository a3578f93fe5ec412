"""The laws of the APIs' forms: joining undoes streaming, however it was cut, and lowering undoes lifting."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from agentrewind.capture import chat_form, messages_form, responses_form
from agentrewind.capture.merging import merge
from agentrewind.capture.sse import DONE, Splitter, is_done, read_event, write_event
from agentrewind.records import JsonObject
from tests.core.conversations import texts, values

ids = st.uuids().map(lambda each: f"call_{each.hex[:6]}")
usage = st.fixed_dictionaries({"prompt_tokens": st.integers(0, 9), "total_tokens": st.integers(0, 9)})
functions = st.fixed_dictionaries({"name": st.sampled_from(["bash", "read"]), "arguments": texts})
tool_calls = st.lists(
    st.fixed_dictionaries({"id": ids, "type": st.just("function"), "function": functions}),
    min_size=1,
    max_size=3,
)
chat_messages = st.fixed_dictionaries(
    {"role": st.just("assistant"), "content": st.none() | texts},
    optional={
        "tool_calls": tool_calls,
        "reasoning_content": texts.filter(bool),
        "refusal": texts.filter(bool),
    },
)
choices = st.fixed_dictionaries(
    {
        "message": chat_messages,
        "finish_reason": st.sampled_from(["stop", "tool_calls", "length"]),
        "logprobs": st.none(),
    }
)
completions = st.builds(
    lambda found, counted: {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [{"index": index, **each} for index, each in enumerate(found)],
        "usage": counted,
    },
    st.lists(choices, min_size=1, max_size=2),
    usage,
)


def joined_chat(chunks: list[JsonObject], number: int) -> JsonObject:
    joiner = chat_form.ChatJoiner(choices=number, usage=True)
    for place, chunk in enumerate(chunks):
        assert not joiner.complete, f"complete before chunk {place}"
        joiner.add(chunk)
    assert joiner.whole
    assert joiner.complete
    return joiner.answer()


@given(completions)
def test_joined_chunks_are_the_completion(completion: dict[str, Any]) -> None:
    chunks = chat_form.chunks(completion, usage=True)
    assert joined_chat(chunks, len(completion["choices"])) == completion


def cut(text: str, places: list[int]) -> list[str]:
    ends = sorted({min(place, len(text)) for place in places} | {len(text)})
    return [text[start:end] for start, end in zip([0, *ends], ends, strict=False)]


@given(completions, st.lists(st.integers(0, 8), max_size=3), st.booleans())
def test_it_does_not_matter_how_a_stream_was_cut(
    completion: dict[str, Any], places: list[int], repeats: bool
) -> None:
    """Texts in any pieces; some servers say the id and the name of a call with every piece."""
    chunks: list[JsonObject] = []
    for chunk in chat_form.chunks(completion, usage=True):
        found: Any = chunk["choices"]
        delta = found[0]["delta"] if found else {}
        content, calls = delta.get("content"), delta.get("tool_calls")
        if isinstance(content, str):
            pieces = [{**delta, "content": piece} for piece in cut(content, places)]
        elif calls:
            (one,) = calls
            kept = {**one["function"]} if repeats else {}
            named = {key: one[key] for key in ("id", "type")} if repeats else {}
            first, *rest = cut(one["function"]["arguments"], places)
            begun = {**one, "function": {**one["function"], "arguments": first}}
            pieces = [{"tool_calls": [begun]}]
            for piece in rest:
                more = {"index": one["index"], **named, "function": {**kept, "arguments": piece}}
                pieces.append({"tool_calls": [more]})
        else:
            pieces = [delta]
        if found:
            chunks += [{**chunk, "choices": [{**found[0], "delta": piece}]} for piece in pieces]
        else:
            chunks.append(chunk)
    assert joined_chat(chunks, len(completion["choices"])) == completion


def test_calls_without_an_index_are_told_apart_by_their_ids() -> None:
    joiner = chat_form.ChatJoiner()
    for call_id, piece in [("a", '{"x"'), (None, ": 1}"), ("b", "{}"), ("b", " ")]:
        call: JsonObject = {"id": call_id, "function": {"name": "bash", "arguments": piece}}
        joiner.add({"choices": [{"index": 0, "delta": {"tool_calls": [call]}}]})
    answer: Any = joiner.answer()
    calls = answer["choices"][0]["message"]["tool_calls"]
    assert [(call["id"], call["function"]["arguments"]) for call in calls] == [
        ("a", '{"x": 1}'),
        ("b", "{} "),
    ]
    assert not joiner.whole


def test_an_error_in_a_stream_is_no_answer() -> None:
    joiner = chat_form.ChatJoiner()
    joiner.add({"choices": [{"index": 0, "delta": {"content": "x"}, "finish_reason": "stop"}]})
    joiner.add({"error": {"message": "overloaded"}})
    assert not joiner.whole


def test_pieces_with_an_index_find_their_item() -> None:
    known: JsonObject = {}
    merge(known, {"details": [{"index": 0, "type": "text", "text": "a"}]})
    merge(known, {"details": [{"index": 0, "type": "text", "text": "b"}, {"index": 1, "text": "c"}]})
    assert known == {"details": [{"index": 0, "type": "text", "text": "ab"}, {"index": 1, "text": "c"}]}


@given(st.dictionaries(texts, values, max_size=3) | completions)
def test_lowering_undoes_lifting(body: dict[str, Any]) -> None:
    for form in (chat_form, responses_form, messages_form):
        assert form.lower(form.lift(body)) == body


def test_nulls_and_what_was_never_said_are_two_things() -> None:
    said: list[JsonObject] = [
        {},
        {"content": None},
        {"tool_calls": None},
        {"tool_calls": []},
        {"content": "x"},
    ]
    for message in said:
        body: JsonObject = {"choices": [{"message": {**message}}]}
        assert chat_form.lower(chat_form.lift(body)) == body


def test_records_of_the_first_version_are_read() -> None:
    """There the lifted fields were taken out of the answer without a trace."""
    old: JsonObject = {
        "content": "x",
        "tool_calls": None,
        "usage": {"total_tokens": 1},
        "response": {"choices": [{"message": {"role": "assistant"}}]},
    }
    assert chat_form.lower(old) == {
        "choices": [{"message": {"role": "assistant", "content": "x"}}],
        "usage": {"total_tokens": 1},
    }


# --- responses ---

output_texts = st.fixed_dictionaries(
    {"type": st.just("output_text"), "text": texts, "annotations": st.just([]), "logprobs": st.just([])}
)
refusals = st.fixed_dictionaries({"type": st.just("refusal"), "refusal": texts})
items = st.one_of(
    st.fixed_dictionaries(
        {
            "id": ids,
            "type": st.just("message"),
            "role": st.just("assistant"),
            "status": st.just("completed"),
            "content": st.lists(output_texts | refusals, max_size=2),
        }
    ),
    st.fixed_dictionaries(
        {"id": ids, "type": st.just("function_call"), "call_id": ids, "name": texts, "arguments": texts}
    ),
    st.fixed_dictionaries(
        {"id": ids, "type": st.just("custom_tool_call"), "call_id": ids, "name": texts, "input": texts}
    ),
    st.fixed_dictionaries(
        {
            "id": ids,
            "type": st.just("reasoning"),
            "encrypted_content": texts,
            "summary": st.lists(
                st.fixed_dictionaries({"type": st.just("summary_text"), "text": texts}), max_size=2
            ),
        }
    ),
    st.fixed_dictionaries({"id": ids, "type": st.just("web_search_call"), "action": values}),
)
responses = st.fixed_dictionaries(
    {
        "id": st.just("resp_1"),
        "object": st.just("response"),
        "status": st.sampled_from(["completed", "incomplete", "failed"]),
        "output": st.lists(items, max_size=3),
        "usage": usage,
    }
)


@given(responses)
def test_joined_events_are_the_response(response: dict[str, Any]) -> None:
    events = responses_form.events(response)
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    joiner = responses_form.ResponsesJoiner()
    for event in events:
        assert not joiner.complete
        joiner.add(event)
    assert joiner.complete
    assert joiner.answer() == response
    assert events[-1]["type"] == f"response.{response['status']}"


@given(responses)
def test_the_pieces_of_a_response_say_all_of_it(response: dict[str, Any]) -> None:
    events: Any = responses_form.events(response)
    said = {
        kind: "".join(event["delta"] for event in events if event["type"] == f"response.{kind}.delta")
        for kind in ("output_text", "refusal", "function_call_arguments", "custom_tool_call_input")
    }
    output = response["output"]
    parts = [part for item in output if item["type"] == "message" for part in item["content"]]
    assert said["output_text"] == "".join(part.get("text", "") for part in parts)
    assert said["refusal"] == "".join(part.get("refusal", "") for part in parts)
    assert said["function_call_arguments"] == "".join(item.get("arguments", "") for item in output)
    assert said["custom_tool_call_input"] == "".join(item.get("input", "") for item in output)
    begun = [event["item"] for event in events if event["type"] == "response.output_item.added"]
    assert [item["id"] for item in begun] == [item["id"] for item in output]


def test_a_response_that_ends_without_its_output_gets_the_items_that_were_told() -> None:
    joiner = responses_form.ResponsesJoiner()
    joiner.add({"type": "response.output_item.done", "item": {"type": "function_call"}})
    joiner.add({"type": "response.completed", "response": {"id": "r", "output": []}})
    assert joiner.answer() == {"id": "r", "output": [{"type": "function_call"}]}


# --- messages ---

blocks = st.one_of(
    st.fixed_dictionaries({"type": st.just("text"), "text": texts}),
    st.fixed_dictionaries(
        {
            "type": st.just("text"),
            "text": texts,
            "citations": st.lists(st.fixed_dictionaries({"cited_text": texts}), min_size=1, max_size=2),
        }
    ),
    st.fixed_dictionaries({"type": st.just("thinking"), "thinking": texts, "signature": texts.filter(bool)}),
    st.fixed_dictionaries({"type": st.just("redacted_thinking"), "data": texts}),
    st.fixed_dictionaries(
        {
            "type": st.just("tool_use"),
            "id": ids,
            "name": texts,
            "input": st.dictionaries(texts, st.none() | texts | st.integers(), max_size=2),
        }
    ),
)
anthropic_messages = st.fixed_dictionaries(
    {
        "id": st.just("msg_1"),
        "type": st.just("message"),
        "role": st.just("assistant"),
        "content": st.lists(blocks, max_size=3),
        "stop_reason": st.sampled_from(["end_turn", "tool_use"]),
        "stop_sequence": st.none(),
        "usage": usage,
    }
)


@given(anthropic_messages)
def test_joined_events_are_the_message(message: dict[str, Any]) -> None:
    joiner = messages_form.MessagesJoiner()
    for event in messages_form.events(message):
        assert not joiner.complete
        joiner.add(event)
    assert joiner.complete
    assert joiner.answer() == message


def test_marks_for_the_cache_are_no_part_of_what_is_compared() -> None:
    mark: JsonObject = {"cache_control": {"type": "ephemeral"}}
    text: JsonObject = {"type": "text", "text": "x"}
    result: JsonObject = {"type": "tool_result", "tool_use_id": "c", "content": [text]}
    plain: JsonObject = {"system": [text], "messages": [{"role": "user", "content": [result, text]}]}
    marked: JsonObject = {
        "system": [{**text, **mark}],
        "messages": [
            {"role": "user", "content": [{**result, "content": [{**text, **mark}]}, {**text, **mark}]}
        ],
    }
    assert messages_form.turns(marked) == messages_form.turns(plain)
    assert messages_form.turns(plain)[1] is plain["messages"][0]  # type: ignore[index]
    assert "cache_control" in str(messages_form.sent_turns(marked))


def test_an_input_that_was_cut_off_is_kept_as_it_came() -> None:
    joiner = messages_form.MessagesJoiner()
    begun: list[JsonObject] = [
        {"type": "message_start", "message": {"id": "m", "content": []}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "tool_use", "input": {}}},
        {
            "type": "content_block_delta",
            "index": 0,
            "delta": {"type": "input_json_delta", "partial_json": '{"path": "/a'},
        },
        {"type": "message_stop"},
    ]
    for event in begun:
        joiner.add(event)
    answer = joiner.answer()
    again: Any = messages_form.events(answer)
    deltas = [event["delta"] for event in again if event["type"] == "content_block_delta"]
    assert deltas == [{"type": "input_json_delta", "partial_json": '{"path": "/a'}]
    calls: Any = messages_form.lift(answer)["tool_calls"]
    assert calls[0]["function"]["arguments"] == '{"path": "/a'


# --- server-sent events ---


@given(
    st.lists(st.dictionaries(texts, values, max_size=2), max_size=4),
    st.sampled_from([b"\n", b"\r\n"]),
    st.lists(st.integers(0, 300), max_size=6),
)
def test_events_come_out_as_they_went_in(events: list[JsonObject], newline: bytes, places: list[int]) -> None:
    plain = [json.loads(json.dumps(event)) for event in events]
    sent = b"".join(write_event(event, named=bool(places)) for event in plain) + b": a comment\n\n" + DONE
    sent = sent.replace(b"\n", newline)
    splitter = Splitter()
    ends = sorted({min(place, len(sent)) for place in places} | {len(sent)})
    pieces: list[bytes] = []
    for start, end in zip([0, *ends], ends, strict=False):
        pieces += splitter.feed(sent[start:end])
    assert b"".join([*pieces, splitter.rest()]) == sent
    assert [found for piece in pieces if (found := read_event(piece)) is not None] == plain
    assert [is_done(piece) for piece in pieces] == [False] * (len(pieces) - 1) + [True]


def test_what_has_arrived_can_be_looked_at_before_it_is_taken() -> None:
    splitter = Splitter()
    taken = splitter.feed(b"data: 1\n\ndata: 2\n\ndata: 3\n\ndata:")
    assert next(taken) == b"data: 1\n\n"
    assert splitter.ahead() == [b"data: 2\n\n", b"data: 3\n\n"]
    assert list(taken) == [b"data: 2\n\n", b"data: 3\n\n"]
    assert splitter.rest() == b"data:"
