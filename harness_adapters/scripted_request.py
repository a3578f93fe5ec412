"""Chat-completion requests as a scripted model sees them, judged as strictly as a real provider does."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

JsonMap: TypeAlias = Mapping[str, Any]

ROLES = frozenset({"system", "developer", "user", "assistant", "tool"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Why a request is answered with HTTP 400, and which part of it is to blame."""

    message: str
    param: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """A tool call that stands in the conversation, its arguments still as text."""

    call_id: str
    name: str
    arguments: str

    def parsed(self) -> JsonMap:
        """The arguments as a mapping; empty when they are no JSON object."""
        try:
            value = json.loads(self.arguments)
        except ValueError:
            return {}
        return value if isinstance(value, dict) else {}


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptedRequest:
    """One request in order of arrival, counted from 1; `refusal` is set when it was no valid one.

    `messages` and `tools` are empty where the body did not hold them as lists of objects. `raw` is the whole
    body, empty when it was no JSON object. Headers are not kept, so no key is ever stored.
    """

    number: int
    model: str
    messages: tuple[JsonMap, ...]
    tools: tuple[JsonMap, ...]
    raw: JsonMap
    refusal: Refusal | None = None

    @property
    def stream(self) -> bool:
        return bool(self.raw.get("stream"))

    @property
    def turn(self) -> int:
        """How many answers the conversation already holds."""
        return sum(message.get("role") == "assistant" for message in self.messages)

    @property
    def tool_names(self) -> tuple[str, ...]:
        """Names of the tools on offer."""
        return tuple(tool["function"]["name"] for tool in self.tools)

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """Every tool call of the conversation, in order."""
        return tuple(call for message in self.messages for call in calls_of(message))

    def result(self, call_id: str) -> str | None:
        """The text of the last tool result for this call; None when there is none."""
        found = [m for m in self.messages if m.get("role") == "tool" and m.get("tool_call_id") == call_id]
        return text_of(found[-1]) if found else None

    def told(self, text: str) -> bool:
        """Whether a system, developer or user message holds this text, however its white space falls."""
        wanted = " ".join(text.split())
        return any(
            wanted in " ".join(text_of(message).split())
            for message in self.messages
            if message.get("role") in {"system", "developer", "user"}
        )


def text_of(message: JsonMap) -> str:
    """The text of a message, whether it is one string or a list of parts."""
    content = message.get("content")
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "".join(
        part["text"] for part in parts if isinstance(part, dict) and isinstance(part.get("text"), str)
    )


def calls_of(message: JsonMap) -> tuple[ToolCall, ...]:
    """The tool calls of one message that passed the judgement of `read_request`."""
    return tuple(
        ToolCall(
            call_id=call["id"],
            name=call["function"]["name"],
            arguments=call["function"].get("arguments") or "",
        )
        for call in message.get("tool_calls") or ()
    )


def read_request(body: bytes, *, number: int) -> ScriptedRequest:
    """Take a body apart; never fails: what is wrong with it stands in `refusal`."""
    try:
        raw = json.loads(body)
    except (ValueError, RecursionError) as error:
        return _refused(number, Refusal(message=f"the body is no JSON: {error}"))
    if not isinstance(raw, dict):
        return _refused(number, Refusal(message=f"the body must be a JSON object, not {_kind(raw)}"))
    model = raw.get("model")
    return ScriptedRequest(
        number=number,
        model=model if isinstance(model, str) else "",
        messages=_objects(raw.get("messages")),
        tools=_objects(raw.get("tools")),
        raw=raw,
        refusal=next(_faults(raw), None),
    )


def _refused(number: int, refusal: Refusal) -> ScriptedRequest:
    return ScriptedRequest(number=number, model="", messages=(), tools=(), raw={}, refusal=refusal)


def _objects(value: object) -> tuple[JsonMap, ...]:
    return tuple(item for item in value if isinstance(item, dict)) if isinstance(value, list) else ()


def _kind(value: object) -> str:
    names = {bool: "a boolean", int: "a number", float: "a number", str: "a string", list: "an array"}
    return "null" if value is None else names.get(type(value), "an object")


def _faults(raw: JsonMap) -> Iterator[Refusal]:
    if not isinstance(raw.get("model"), str) or not raw["model"]:
        yield Refusal(message="`model` must be a non-empty string", param="model")
    messages = raw.get("messages")
    if not isinstance(messages, list) or not messages:
        yield Refusal(message="`messages` must be a non-empty array", param="messages")
        return
    for index, message in enumerate(messages):
        yield from _message_faults(message, f"messages[{index}]")
    yield from _tool_faults(raw.get("tools"))
    yield from _pairing_faults(messages)


def _message_faults(message: object, where: str) -> Iterator[Refusal]:
    if not isinstance(message, dict):
        yield Refusal(message=f"{where} must be an object, not {_kind(message)}", param=where)
        return
    role, content = message.get("role"), message.get("content")
    if role not in ROLES:
        known = ", ".join(sorted(ROLES))
        yield Refusal(message=f"{where}.role is {role!r}; known roles: {known}", param=f"{where}.role")
    if not isinstance(content, str | list) and not (role == "assistant" and content is None):
        yield Refusal(
            message=f"{where}.content must be text or an array of parts, not {_kind(content)}",
            param=f"{where}.content",
        )
    if role == "assistant":
        yield from _call_faults(message, where)
    if role == "tool" and not isinstance(message.get("tool_call_id"), str):
        yield Refusal(
            message=f"{where} is a tool result and must name its call in tool_call_id",
            param=f"{where}.tool_call_id",
        )


def _call_faults(message: JsonMap, where: str) -> Iterator[Refusal]:
    calls = message.get("tool_calls")
    if calls is None:
        if message.get("content") is None:
            yield Refusal(message=f"{where} holds neither content nor tool_calls", param=where)
        return
    if not isinstance(calls, list) or not calls:
        yield Refusal(message=f"{where}.tool_calls must be a non-empty array", param=f"{where}.tool_calls")
        return
    for index, call in enumerate(calls):
        place = f"{where}.tool_calls[{index}]"
        function = call.get("function") if isinstance(call, dict) else None
        if not isinstance(function, dict) or not isinstance(call.get("id"), str):
            yield Refusal(message=f"{place} must hold an id and a function", param=place)
        elif not isinstance(function.get("name"), str) or not isinstance(function.get("arguments"), str):
            yield Refusal(message=f"{place}.function must hold name and arguments as strings", param=place)


def _tool_faults(tools: object) -> Iterator[Refusal]:
    if tools is None:
        return
    if not isinstance(tools, list):
        yield Refusal(message=f"`tools` must be an array, not {_kind(tools)}", param="tools")
        return
    for index, tool in enumerate(tools):
        function = tool.get("function") if isinstance(tool, dict) else None
        if not isinstance(function, dict) or not isinstance(function.get("name"), str):
            yield Refusal(
                message=f"tools[{index}] must be of type function and have a name", param=f"tools[{index}]"
            )


def _pairing_faults(messages: Sequence[JsonMap]) -> Iterator[Refusal]:
    """The law of tool calls: the results stand right behind the answer that asked for them, one per call."""
    open_calls: list[str] = []
    answered: set[str] = set()
    for index, message in enumerate(messages):
        where = f"messages[{index}]"
        if message["role"] == "tool":
            call_id = message["tool_call_id"]
            if call_id in open_calls:
                open_calls.remove(call_id)
                answered.add(call_id)
            elif call_id in answered:
                yield Refusal(message=f"{where} is a second result for tool call {call_id!r}", param=where)
            else:
                yield Refusal(
                    message=f"{where} is a result for {call_id!r}, which the answer before it did not call",
                    param=where,
                )
            continue
        if open_calls:
            yield _unanswered(open_calls, before=where)
        open_calls, answered = [call.call_id for call in calls_of(message)], set()
        if len(set(open_calls)) < len(open_calls):
            yield Refusal(message=f"{where}.tool_calls uses one id twice", param=f"{where}.tool_calls")
    if open_calls:
        yield _unanswered(open_calls, before="the end of messages")


def _unanswered(calls: Sequence[str], *, before: str) -> Refusal:
    names = ", ".join(repr(call) for call in calls)
    return Refusal(message=f"no tool result for {names} before {before}", param="messages")
