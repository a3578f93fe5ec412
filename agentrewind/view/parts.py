"""The texts of a node or event, each under a name of its own, so that long ones can be fetched in pieces."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from agentrewind.errors import UsageError
from agentrewind.records import (
    Finished,
    Json,
    JsonObject,
    LlmNode,
    Note,
    ProcessesEnded,
    Restored,
    Resumed,
    RewindAsked,
    RewindDone,
    Submission,
    ToolNode,
)
from agentrewind.view.reading import Reading
from agentrewind.view.rows import Row
from agentrewind.view.visible import value_text, visible

T = TypeVar("T")

SHOWN = 6000
"""Characters of a text that come with the page."""

PIECE = 100_000
"""Characters of each further piece."""

_REPORTED = (
    "created",
    "modified",
    "deleted",
    "kept",
    "outside",
    "lost_commits",
    "ended",
    "still_running",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """A piece of a text, safe to look at.

    Attributes:
        part: names the text within its row.
        total: characters of the whole text.
        start, stop: where the piece begins and ends in it.
        colours: colour codes that were left out of the piece.
    """

    part: str
    shown: str
    total: int
    start: int
    stop: int
    colours: int

    @property
    def more(self) -> int:
        """Characters after this piece."""
        return self.total - self.stop


def piece(text: str, part: str, *, start: int = 0, length: int = SHOWN) -> Text:
    """A piece of a text; a little more of it where nearly all of it fits."""
    stop = min(len(text), start + length)
    if len(text) - stop < length // 10:
        stop = len(text)
    made = visible(text[start:stop])
    return Text(part=part, shown=made.text, total=len(text), start=start, stop=stop, colours=made.colours)


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """A message of a request. `sort` is its role, or `memory` for the rewind memory."""

    number: int
    sort: str
    text: Text
    calls: tuple[tuple[str, Text], ...] = ()


def text_of(reading: Reading, row: Row, part: str) -> str:
    """The whole text of a part. Raises UsageError where the row has no such part."""
    name, _, rest = part.partition("/")
    found: str | None
    match row.node, name:
        case LlmNode() as node, "message":
            message = _numbered(reading.messages(node.record_uid), rest)
            found = None if message is None else _content(message)
        case LlmNode() as node, "message-call":
            number, _, call = rest.partition("/")
            message = _numbered(reading.messages(node.record_uid), number)
            found = _numbered([text for _, text in calls_of(message or {})], call)
        case LlmNode() as node, "memory":
            memory = reading.memory_of(node)
            found = memory[0].text if memory else None
        case LlmNode() as node, _:
            found = answer_texts(node).get(part)
        case ToolNode() as node, "feedback":
            told = (each for each in reading.timeline.submissions() if each.record_uid == node.record_uid)
            found = next((each.feedback for each in told), None)
        case ToolNode() as node, _:
            found = tool_texts(node).get(part)
        case _:
            found = event_texts(row).get(part)
    if found is None:
        raise UsageError(f"{row.key} has no part {part!r}")
    return found


def messages_of(reading: Reading, row: Row, *, start: int, stop: int | None = None) -> Iterator[Message]:
    """The messages of an LLM node's request from one number to before another, the memory among them."""
    node = row.node
    assert isinstance(node, LlmNode)
    messages = reading.messages(node.record_uid)
    stop = len(messages) if stop is None else stop
    memory = reading.memory_of(node)
    for number in range(start, stop + 1):
        if memory is not None and memory[1] == number and (number < stop or stop == len(messages)):
            yield Message(number=number, sort="memory", text=piece(memory[0].text, "memory"))
        if number < stop:
            yield _message(messages[number], number)


def answer_texts(node: LlmNode) -> dict[str, str]:
    """What the model answered: `answer`, `reasoning`, `call/N`, `error`, and `parameters` of the request."""
    output = node.output or {}
    found = {"answer": _content(output)}
    for name in ("reasoning_content", "reasoning", "thinking"):
        if output.get(name):
            found["reasoning"] = value_text(output[name])
    for number, (_, text) in enumerate(calls_of(output)):
        found[f"call/{number}"] = text
    if node.error is not None:
        found["error"] = f"{node.error.type}: {node.error.message}"
    found["parameters"] = value_text({"model": node.model, **node.parameters})
    if node.tools:
        found["tools"] = value_text(node.tools)
    return {name: text for name, text in found.items() if text}


def tool_texts(node: ToolNode) -> dict[str, str]:
    """What a tool was given and gave: `arguments`, `result`, `error`."""
    found = {"arguments": arguments_text(node.arguments)}
    if node.output is not None:
        found["result"] = value_text(node.output)
    if node.error is not None:
        found["error"] = f"{node.error.type}: {node.error.message}"
    return found


def event_texts(row: Row) -> dict[str, str]:
    """What an event tells at length, by a word each."""
    match row.event:
        case RewindAsked() as event:
            found = {"reason": event.reason, "note": event.memory}
        case RewindDone() as event:
            found = {"memory": value_text(event.report.get("memory_message") or ""), **_report(event.report)}
        case Restored() as event:
            found = _report(event.report)
        case Submission() as event:
            found = {"feedback": event.feedback}
        case ProcessesEnded() as event:
            found = {"ended": "\n".join(event.ended), "kept": "\n".join(event.kept)}
        case Note() as event:
            found = {"text": event.text, "data": value_text(event.data) if event.data else ""}
        case Finished() | Resumed() as event:
            found = {"detail": event.detail}
        case _:
            found = {"text": row.entry.text}
    return {name: text for name, text in found.items() if text}


def calls_of(message: Mapping[str, Json]) -> list[tuple[str, str]]:
    """The tool calls of an answer, as name and arguments."""
    calls = message.get("tool_calls")
    found: list[tuple[str, str]] = []
    for call in calls if isinstance(calls, list) else ():
        if not isinstance(call, dict):
            continue
        inner = call.get("function")
        told = inner if isinstance(inner, dict) else call
        name = told.get("name")
        arguments = told.get("arguments", told.get("args", told.get("input")))
        found.append((name if isinstance(name, str) else "?", arguments_text(arguments)))
    return found


def arguments_text(arguments: Json) -> str:
    """Arguments as people read them: a lone command as such, JSON laid out, text fields as they are."""
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments)
        except ValueError:
            return str(arguments)
    if isinstance(arguments, dict) and arguments and all(isinstance(key, str) for key in arguments):
        if len(arguments) == 1:
            (value,) = arguments.values()
            if isinstance(value, str):
                return value
        return "\n".join(_field(key, value) for key, value in arguments.items())
    return value_text(arguments)


def _field(name: str, value: Json) -> str:
    text = value_text(value)
    return f"{name}:\n{text}" if "\n" in text else f"{name}: {text}"


def _content(message: Mapping[str, Json]) -> str:
    content = message.get("content")
    return "" if content is None else value_text(content)


def _message(message: JsonObject, number: int) -> Message:
    role = message.get("role") or message.get("type")
    calls = tuple(
        (name, piece(text, f"message-call/{number}/{place}", length=1500))
        for place, (name, text) in enumerate(calls_of(message))
    )
    return Message(
        number=number,
        sort=role if isinstance(role, str) else "?",
        text=piece(_content(message), f"message/{number}", length=3000),
        calls=calls,
    )


def _numbered(items: Sequence[T], number: str) -> T | None:
    if number.isdecimal() and int(number) < len(items):
        return items[int(number)]
    return None


def _report(report: JsonObject) -> dict[str, str]:
    found = {}
    for name in _REPORTED:
        listed = report.get(name)
        if isinstance(listed, list) and listed:
            found[name.replace("_", " ")] = "\n".join(
                value_text(each).replace("\n", "\\n") for each in listed
            )
    return found
