"""Where the memory stands in each API's form: once, in its place, and never where the API would refuse it."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from agentrewind.records import JsonObject
from agentrewind.rewind.memory import Memory
from agentrewind.rewind.memory_forms import place_items, place_messages, place_turns

TEXT = "MEMORY"


def memory(conversation: list[Any], index: int, *, lost: bool = False) -> Memory:
    anchor = conversation[index - 1] if 0 < index <= len(conversation) else None
    return Memory(
        text=TEXT,
        role="system",
        conversation="c",
        index=index,
        anchor={"role": "user", "content": "gone"} if lost else anchor,
    )


# --- responses ---


@st.composite
def item_lists(draw: st.DrawFn) -> list[JsonObject]:
    """Conversations in rounds: reasoning, some calls at once, their outputs in any order."""
    items: list[JsonObject] = [{"role": "system", "content": "s"}, {"role": "user", "content": "go"}]
    number = 0
    for _ in range(draw(st.integers(0, 3))):
        calls: list[JsonObject] = []
        outputs: list[JsonObject] = []
        for _ in range(draw(st.integers(1, 3))):
            number += 1
            if draw(st.booleans()):
                calls.append({"type": "reasoning", "id": f"r{number}"})
            calls.append({"type": "function_call", "call_id": f"c{number}"})
            outputs.append({"type": "function_call_output", "call_id": f"c{number}", "output": "x"})
        items += [*calls, *draw(st.permutations(outputs))]
    if draw(st.booleans()):
        items.append({"role": "user", "content": "and?"})
    return items


@given(item_lists(), st.data(), st.booleans())
def test_items_hold_the_memory_once_and_outside_of_pairs(
    items: list[JsonObject], data: st.DataObject, lost: bool
) -> None:
    index = data.draw(st.integers(0, len(items)))
    placed = place_items(items, items, memory(items, index, lost=lost))
    (at,) = [place for place, item in enumerate(placed) if item.get("content") == TEXT]
    assert [*placed[:at], *placed[at + 1 :]] == items
    begun = {item.get("call_id") for item in placed[:at] if item.get("type") == "function_call"}
    ended = {item.get("call_id") for item in placed[:at] if item.get("type") == "function_call_output"}
    assert begun == ended
    assert placed[at - 1].get("type") != "reasoning"
    if lost or index == 0:
        assert at == 1


@given(item_lists())
def test_at_the_checkpoint_the_memory_is_last(items: list[JsonObject]) -> None:
    placed = place_items(items, items, memory(items, len(items)))
    assert placed[-1] == {"role": "system", "content": TEXT}


# --- messages of anthropic ---


@st.composite
def turn_lists(draw: st.DrawFn) -> list[JsonObject]:
    """Turns that alternate; tool uses are answered in the next turn, in front of any text."""
    turns: list[JsonObject] = [{"role": "user", "content": draw(st.sampled_from(["go", "look"]))}]
    for number in range(draw(st.integers(0, 3))):
        if draw(st.booleans()):
            turns.append({"role": "assistant", "content": [{"type": "tool_use", "id": f"c{number}"}]})
            result: JsonObject = {"type": "tool_result", "tool_use_id": f"c{number}", "content": "x"}
            more: list[Any] = [{"type": "text", "text": "and?"}] if draw(st.booleans()) else []
            turns.append({"role": "user", "content": [result, *more]})
        else:
            turns.append({"role": "assistant", "content": f"answer {number}"})
            turns.append({"role": "user", "content": f"question {number}"})
    if draw(st.booleans()):
        turns.append({"role": "assistant", "content": "{"})
    return turns


def blocks(turn: JsonObject) -> list[Any]:
    content = turn["content"]
    return content if isinstance(content, list) else [{"type": "text", "text": content}]


@given(turn_lists(), st.data(), st.booleans(), st.booleans())
def test_turns_hold_the_memory_once_and_still_alternate(
    turns: list[JsonObject], data: st.DataObject, system: bool, lost: bool
) -> None:
    lead: list[JsonObject] = [{"role": "system", "content": "s"}] if system else []
    compared = [*lead, *turns]
    index = data.draw(st.integers(0, len(compared)))
    placed = place_turns(compared, [*[None for _ in lead], *turns], memory(compared, index, lost=lost))
    assert placed[: len(lead)] == [None] * len(lead)
    said = placed[len(lead) :]
    roles = [turn["role"] for turn in said]
    assert roles == [("user", "assistant")[place % 2] for place in range(len(roles))]
    texts = [block.get("text") for turn in said for block in blocks(turn)]
    assert texts.count(TEXT) == 1
    for turn in said:
        kinds = [block["type"] for block in blocks(turn)]
        assert kinds == sorted(kinds, key=lambda kind: kind != "tool_result")
    kept = [[block for block in blocks(turn) if block.get("text") != TEXT] for turn in said]
    assert [found for found in kept if found] == [blocks(turn) for turn in turns]


@given(turn_lists())
def test_placing_changes_nothing_that_it_was_given(turns: list[JsonObject]) -> None:
    before = repr(turns)
    place_turns(turns, turns, memory(turns, 1))
    place_items(turns, turns, memory(turns, 1))
    place_messages(turns, turns, memory(turns, 1))
    assert repr(turns) == before


def test_messages_keep_the_harness_own_objects() -> None:
    class Mine(dict[str, Any]):
        """A harness's own kind of message."""

    sent = [Mine(role="user", content="go")]
    placed = place_messages([{"role": "user", "content": "go"}], sent, memory(sent, 1))
    assert placed[0] is sent[0]
    assert placed[1] == {"role": "system", "content": TEXT}
