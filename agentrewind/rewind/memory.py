"""The rewind memory: its one message, and where that message stands in a request.

Pure. Records keep the harness's own message list; the gate adds the memory after matching.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agentrewind.records import JsonObject, RewindAsked

ROLES = ("system", "user")

_LEADING = frozenset({"system", "developer"})
_OPENING = (
    "You have been here before: from this point you went on, judged that path hopeless and came back. "
    "The conversation above is all that remains of it, and the files are as they were at this point. "
)
_TAKEN_BACK = (
    "A person took you back to this point; whatever you did after it is undone. The conversation above is "
    "all that remains of it, and the files are as they were at this point. "
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """All notes so far as one message, and the place where it belongs.

    Attributes:
        text: what the message says.
        role: `system` or `user`.
        conversation: the conversation it belongs to; no other one gets it.
        index: how many messages stood before it at the checkpoint.
        anchor: the last of those messages, or None where there was none.
        by_position: messages were matched by their place, so the anchor may read differently now.
    """

    text: str
    role: str
    conversation: str
    index: int
    anchor: JsonObject | None
    by_position: bool = False

    def message(self) -> JsonObject:
        """The message itself."""
        return {"role": self.role, "content": self.text}


def compose(notes: Sequence[RewindAsked], facts: Sequence[str]) -> str:
    """The memory message's text: every note, oldest first, then what the last rewind left as it was."""
    own = all(note.by != "person" for note in notes)
    opening = _TAKEN_BACK if notes and notes[-1].by == "person" else _OPENING
    lines = [
        opening + ("Your notes to yourself, oldest first:" if own else "The notes so far, oldest first:")
    ]
    for number, note in enumerate(notes, start=1):
        author = "" if own else " from that person:" if note.by == "person" else " from yourself:"
        lines.append(f"\n[{number}]{author} {note.memory.strip()}")
    if facts:
        lines.append("\nAbout the state that you find now:")
        lines += [f"- {fact}" for fact in facts]
    # half a surrogate pair can be recorded but not sent
    return "\n".join(lines).encode("utf-8", "backslashreplace").decode()


def place(messages: Sequence[JsonObject], memory: Memory) -> list[JsonObject]:
    """The request's messages with the memory in them exactly once, at its `position`."""
    result = list(messages)
    result.insert(position(messages, memory), memory.message())
    return result


def position(messages: Sequence[JsonObject], memory: Memory) -> int:
    """Before which message the memory stands.

    It stands after the message that it followed at the checkpoint. Where that message is gone (cut off,
    summarised) it stands after the leading system messages; never between tool calls and their results.
    Where messages were matched by position, the message at the anchor's place stands for it.
    """
    return _after_results(messages, _position(messages, memory))


def _position(messages: Sequence[JsonObject], memory: Memory) -> int:
    index, anchor = memory.index, memory.anchor
    if anchor is not None and 0 < index <= len(messages) and messages[index - 1] == anchor:
        return index
    places = [place for place, message in enumerate(messages, start=1) if message == anchor]
    if places:
        return min(places, key=lambda place: abs(place - index))
    if memory.by_position and 0 < index <= len(messages):
        return index
    leading = 0
    while leading < len(messages) and messages[leading].get("role") in _LEADING:
        leading += 1
    return leading


def _after_results(messages: Sequence[JsonObject], position: int) -> int:
    while position < len(messages) and messages[position].get("role") in ("tool", "function"):
        position += 1
    return position
