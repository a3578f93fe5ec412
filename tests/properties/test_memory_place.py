"""Laws of the memory message: exactly once, after its anchor, never between calls and their results."""

from __future__ import annotations

import copy

from hypothesis import given
from hypothesis import strategies as st

from agentrewind.records import Json, JsonObject
from agentrewind.rewind.memory import ROLES, Memory, place

LEADING = ("system", "developer")
RESULTS = ("tool", "function")

_texts = st.sampled_from(["", "go on", "mend", "done"])


@st.composite
def turns(draw: st.DrawFn) -> list[JsonObject]:
    """An answer with the results of all its calls, or a message of the user."""
    if draw(st.booleans()):
        return [{"role": "user", "content": draw(_texts)}]
    count = draw(st.integers(0, 3))
    calls: list[Json] = [{"id": f"call_{number}", "type": "function"} for number in range(count)]
    answer: JsonObject = {"role": "assistant", "content": draw(_texts), "tool_calls": calls}
    role = draw(st.sampled_from(RESULTS))
    results: list[JsonObject] = [
        {"role": role, "tool_call_id": f"call_{number}", "content": draw(_texts)} for number in range(count)
    ]
    return [answer, *results]


@st.composite
def conversations(draw: st.DrawFn) -> list[JsonObject]:
    leading = draw(st.lists(st.sampled_from(LEADING), max_size=2))
    found: list[JsonObject] = [{"role": role, "content": draw(_texts)} for role in leading]
    for turn in draw(st.lists(turns(), max_size=5)):
        found += turn
    return found


@st.composite
def memories(draw: st.DrawFn, messages: list[JsonObject]) -> Memory:
    """The memory of a rewind to a checkpoint that `messages` were sent to."""
    return Memory(
        text="do not drop the table",
        role=draw(st.sampled_from(ROLES)),
        conversation="main",
        index=len(messages),
        anchor=copy.deepcopy(messages[-1]) if messages else None,
    )


def split(sent: list[JsonObject], memory: Memory) -> int:
    """The one place of the memory, given that all else is untouched."""
    places = [index for index, message in enumerate(sent) if message == memory.message()]
    assert len(places) == 1
    return places[0]


def is_between_call_and_result(sent: list[JsonObject], place_of_memory: int) -> bool:
    after = sent[place_of_memory + 1 :]
    return bool(after) and after[0].get("role") in RESULTS


@given(st.data(), conversations(), st.lists(turns(), max_size=4))
def test_it_stands_where_it_stood_at_the_checkpoint(
    data: st.DataObject, messages: list[JsonObject], later: list[list[JsonObject]]
) -> None:
    memory = data.draw(memories(messages))
    asked = [*messages, *(message for turn in later for message in turn)]
    before = copy.deepcopy(asked)
    sent = place(asked, memory)
    where = split(sent, memory)
    assert asked == before
    assert [*sent[:where], *sent[where + 1 :]] == asked
    if messages:
        assert where == len(messages)
        assert place(messages, memory) == [*messages, memory.message()]


@given(st.data(), conversations(), conversations())
def test_in_any_other_list_it_follows_its_anchor_or_the_leading_messages(
    data: st.DataObject, messages: list[JsonObject], asked: list[JsonObject]
) -> None:
    memory = data.draw(memories(messages))
    sent = place(asked, memory)
    where = split(sent, memory)
    assert [*sent[:where], *sent[where + 1 :]] == asked
    assert not is_between_call_and_result(sent, where)
    if memory.anchor in asked:
        last = max(index for index, message in enumerate(sent[:where]) if message == memory.anchor)
        # only the results of an answer that is the anchor stand between the two
        assert all(message.get("role") in RESULTS for message in sent[last + 1 : where])
    else:
        leading = 0
        while leading < len(asked) and asked[leading].get("role") in LEADING:
            leading += 1
        assert all(message.get("role") in RESULTS for message in sent[leading:where])


@given(st.data(), conversations(), st.integers(1, 3))
def test_messages_put_in_front_do_not_move_it_from_its_anchor(
    data: st.DataObject, messages: list[JsonObject], count: int
) -> None:
    if not messages:
        return
    last: JsonObject = {"role": "user", "content": "the last one"}
    memory = data.draw(memories([*messages[:-1], last]))
    front: list[JsonObject] = [{"role": "system", "content": f"note {number}"} for number in range(count)]
    later: JsonObject = {"role": "user", "content": "x"}
    asked = [*front, *messages[:-1], last, later]
    sent = place(asked, memory)
    assert sent[split(sent, memory) - 1] == memory.anchor


@given(conversations(), st.data())
def test_of_several_messages_alike_it_follows_the_one_in_its_place(
    messages: list[JsonObject], data: st.DataObject
) -> None:
    again: JsonObject = {"role": "user", "content": "again"}
    asked = [*messages, again]
    memory = data.draw(memories(asked))
    sent = place([*asked, again, again], memory)
    assert split(sent, memory) == len(asked)
    cut = data.draw(st.integers(0, len(messages)))
    sent = place([*messages[cut:], again, again], memory)
    assert sent[split(sent, memory) - 1] == again
