"""Where the rewind memory stands in each API's own form of a conversation.

Pure. Every form takes the list that is compared (system text leads it, whatever the API calls it) and the
list that is sent, element by element the same, and gives the list to send with the memory in it once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from agentrewind.records import JsonObject
from agentrewind.rewind.memory import Memory, position


class Place(Protocol):
    """Puts the memory into what is sent; `compared` tells where it belongs."""

    def __call__(self, compared: Sequence[JsonObject], sent: Sequence[Any], memory: Memory) -> list[Any]: ...


def place_messages(compared: Sequence[JsonObject], sent: Sequence[Any], memory: Memory) -> list[Any]:
    """Chat completions: a message of its own, never between tool calls and their results."""
    result = list(sent)
    result.insert(position(compared, memory), memory.message())
    return result


def place_items(compared: Sequence[JsonObject], sent: Sequence[Any], memory: Memory) -> list[Any]:
    """Responses: an input item of its own.

    It never stands between a call and its output, whatever stands between those, nor between a reasoning
    item and the item that it led to.
    """
    result = list(sent)
    result.insert(_outside_pairs(compared, position(compared, memory)), memory.message())
    return result


def place_turns(compared: Sequence[JsonObject], sent: Sequence[Any], memory: Memory) -> list[Any]:
    """Messages (Anthropic): a text block in the user's turn at that place, so that the roles still alternate.

    Blocks with tool results stay in front of it. Only where no user's turn is next to the place (the list
    ends with an answer, or is empty) the memory becomes a turn of its own. That API has no system messages
    in the conversation, so the memory's role is always `user`.
    """
    result = list(sent)
    index = position(compared, memory)
    block: JsonObject = {"type": "text", "text": memory.text}
    for place in (index - 1, index):
        if 0 <= place < len(compared) and compared[place].get("role") == "user":
            turn = result[place]
            blocks = _blocks(turn.get("content"))
            at = len(blocks) if place < index else _results_in_front(blocks)
            result[place] = {**turn, "content": [*blocks[:at], block, *blocks[at:]]}
            return result
    result.insert(index, {"role": "user", "content": memory.text})
    return result


def _outside_pairs(items: Sequence[JsonObject], index: int) -> int:
    while True:
        begun = {item.get("call_id") for item in items[:index] if not _is_output(item)} - {None}
        ends = [
            place
            for place, item in enumerate(items[index:], start=index + 1)
            if _is_output(item) and item.get("call_id") in begun
        ]
        if ends:
            index = max(ends)
        elif 0 < index < len(items) and items[index - 1].get("type") == "reasoning":
            index += 1
        else:
            return index


def _is_output(item: JsonObject) -> bool:
    return str(item.get("type", "")).endswith("_output")


def _blocks(content: object) -> list[Any]:
    if isinstance(content, list):
        return content
    return [{"type": "text", "text": content}] if content else []


def _results_in_front(blocks: Sequence[Any]) -> int:
    count = 0
    while count < len(blocks) and str(blocks[count].get("type", "")).endswith("tool_result"):
        count += 1
    return count
