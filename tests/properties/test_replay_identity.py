"""Laws of input ids: what counts and what does not, and a cache that changes nothing."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict

from agentrewind.difference import first_difference
from agentrewind.identity import Conversations, Request, canonical_bytes, tool_input_id
from agentrewind.records import Json, JsonObject, RecordUid
from tests.core.conversations import edits, messages, other_number, reordered, texts, tools, values

lists = st.lists(messages, max_size=6)


def cold(model: str, asked: Sequence[object], offered: Json) -> Request:
    return Conversations().identify(model=model, messages=asked, tools=offered)


@given(texts, lists, tools)
def test_the_order_of_keys_is_no_part_of_a_request(
    model: str, asked: list[JsonObject], offered: Json
) -> None:
    turned = [each for each in map(reordered, asked) if isinstance(each, dict)]
    assert cold(model, asked, offered).input_id == cold(model, turned, reordered(offered)).input_id


@given(texts, lists, tools, texts, lists, tools)
def test_two_requests_are_the_same_only_if_model_messages_and_tools_are(
    model: str, asked: list[JsonObject], offered: Json, model2: str, asked2: list[JsonObject], offered2: Json
) -> None:
    one, other = cold(model, asked, offered), cold(model2, asked2, offered2)
    whole = canonical_bytes([model, [*asked], offered])
    whole2 = canonical_bytes([model2, [*asked2], offered2])
    assert (one.input_id == other.input_id) == (whole == whole2)


@given(st.data(), texts, lists.filter(bool), tools)
def test_a_change_of_one_message_changes_the_request(
    data: st.DataObject, model: str, asked: list[JsonObject], offered: Json
) -> None:
    place = data.draw(st.integers(0, len(asked) - 1))
    changed = [
        *asked[:place],
        {**asked[place], "content": str(asked[place]["content"]) + "!"},
        *asked[place + 1 :],
    ]
    assert cold(model, asked, offered).input_id != cold(model, changed, offered).input_id
    assert cold(model, asked, offered).input_id != cold(model, asked[:-1], offered).input_id
    assert cold(model, asked, offered).input_id != cold(model + "!", asked, offered).input_id
    assert cold(model, asked, offered).input_id != cold(model, asked, [offered]).input_id


@given(st.data(), tools)
def test_a_request_is_the_same_whatever_was_asked_before(data: st.DataObject, offered: Json) -> None:
    warm = Conversations()
    asked = data.draw(lists)
    for number in range(data.draw(st.integers(1, 5))):
        request = warm.identify(model="m", messages=asked, tools=offered)
        fresh = cold("m", asked, offered)
        assert request.input_id == fresh.input_id
        assert request.chain == fresh.chain
        assert [canonical_bytes(each) for each in request.messages] == [
            canonical_bytes(each) for each in asked
        ]
        if data.draw(st.booleans()):
            warm.remember(request, RecordUid(f"rec_{number:06d}"))
        asked = data.draw(edits(len(asked)))(asked)


@given(st.data())
def test_a_list_by_reference_comes_back_whole(data: st.DataObject) -> None:
    conversations = Conversations()
    recorded: dict[RecordUid, tuple[JsonObject, ...]] = {}
    asked = data.draw(lists)
    for number in range(6):
        request = conversations.identify(model="m", messages=asked, tools=None)
        by_reference = conversations.by_reference(request)
        kept = recorded[by_reference.base][: by_reference.keep] if by_reference.base else ()
        whole = (*kept, *by_reference.append)
        assert [canonical_bytes(each) for each in whole] == [canonical_bytes(each) for each in asked]
        uid = RecordUid(f"rec_{number:06d}")
        recorded[uid] = whole
        conversations.remember(request, uid if data.draw(st.booleans()) else None)
        asked = data.draw(edits(len(asked)))(asked)


@given(lists, lists)
def test_what_the_harness_does_to_its_list_afterwards_changes_no_record(
    asked: list[JsonObject], later: list[JsonObject]
) -> None:
    conversations = Conversations()
    mine = copy.deepcopy(asked)
    request = conversations.identify(model="m", messages=mine, tools=None)
    conversations.remember(request, RecordUid("rec_000001"))
    for message in mine:
        message["content"] = "overwritten"
    mine.extend(later)
    assert [canonical_bytes(each) for each in request.messages] == [canonical_bytes(each) for each in asked]


class Part(BaseModel):
    """A part of a client's message."""

    held: Any = None


class Said(BaseModel):
    """A client's message, with parts; what it has no field for is kept as well."""

    model_config = ConfigDict(extra="allow")
    role: str = "assistant"
    content: Any = ""
    parts: list[Part] = []


said = st.builds(
    lambda content, parts, more: Said.model_validate({"content": content, "parts": parts, **more}),
    values,
    st.lists(st.builds(Part, held=values), max_size=2),
    st.dictionaries(st.just("more"), values, max_size=1),
)


def change_in_place(data: st.DataObject, holder: Any) -> None:
    """Put another value somewhere into it, as a harness may that holds on to the object."""
    fields = holder if isinstance(holder, dict | list) else {**vars(holder), **(holder.model_extra or {})}
    if not fields:
        return
    place = data.draw(st.sampled_from([*fields] if isinstance(fields, dict) else range(len(fields))))
    inner = fields[place]
    if isinstance(inner, dict | list | BaseModel) and data.draw(st.booleans()):
        change_in_place(data, inner)
    elif place not in ("role", "parts") and not isinstance(inner, Part):
        new = data.draw(st.just(other_number(inner)) | values)
        if isinstance(holder, dict | list):
            holder[place] = new
        else:
            setattr(holder, place, new)


@given(st.data(), st.lists(messages | said, min_size=1, max_size=4))
def test_a_message_that_is_changed_in_place_is_seen(data: st.DataObject, asked: list[Any]) -> None:
    conversations = Conversations()
    for number in range(3):
        request = conversations.identify(model="m", messages=asked, tools=None)
        fresh = cold("m", asked, None)
        assert (request.input_id, request.chain) == (fresh.input_id, fresh.chain)
        assert [*map(canonical_bytes, request.messages)] == [*map(canonical_bytes, fresh.messages)]
        conversations.remember(request, RecordUid(f"rec_{number:06d}"))
        change_in_place(data, asked)
        asked = [*asked, data.draw(messages | said)]


@given(st.data(), tools)
def test_tools_that_are_changed_in_place_are_seen(data: st.DataObject, offered: Json) -> None:
    conversations = Conversations()
    for _ in range(2):
        request = conversations.identify(model="m", messages=[], tools=offered)
        assert request.input_id == cold("m", [], offered).input_id
        assert canonical_bytes(request.tools) == canonical_bytes(offered)
        if offered:
            change_in_place(data, offered)


@given(values, values)
def test_a_difference_is_told_exactly_where_the_bytes_differ(left: Json, right: Json) -> None:
    told = first_difference(left, right)
    assert (told == "no difference") == (canonical_bytes(left) == canonical_bytes(right))


@given(values)
def test_numbers_that_python_takes_for_equal_are_told_apart(value: Json) -> None:
    other = other_number(value)
    told = first_difference(value, other)
    assert (told == "no difference") == (canonical_bytes(value) == canonical_bytes(other))


@given(texts, values, texts, values)
def test_a_tool_call_is_its_name_and_its_arguments(
    name: str, arguments: Json, name2: str, arguments2: Json
) -> None:
    same = canonical_bytes([name, arguments]) == canonical_bytes([name2, arguments2])
    assert (tool_input_id(name, arguments) == tool_input_id(name2, arguments2)) == same
    assert tool_input_id(name, arguments) == tool_input_id(name, reordered(arguments))
