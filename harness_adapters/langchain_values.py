"""What a tool of LangGraph gave, for the log and back: messages, commands, and plain JSON in them.

A tool that stops to ask somebody (`interrupt`), or hands over to the graph around it, has given something as
well; both come as exceptions that are no failures.

What JSON cannot hold is left as it is, and the recorder then refuses it with the place where it stands.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from langchain_core.messages import BaseMessage, ToolMessage, message_to_dict, messages_from_dict
from langgraph.errors import GraphInterrupt, ParentCommand
from langgraph.types import Command, Interrupt, Send

from agentrewind.errors import DamagedError
from agentrewind.records import Json, JsonObject
from harness_adapters.shell import exit_code_in

OUTCOMES = (GraphInterrupt, ParentCommand)
"""Exceptions by which a tool gives something to its graph."""

_COMMAND = ("graph", "update", "resume", "goto")
_SIGN = "$"
_OWN = frozenset({"type", "tool_call_id", "content"})


def encode_result(value: Any) -> object:
    """The result of one tool call. The usual one, a message, is told by its fields; the rest is tagged."""
    if type(value) is not ToolMessage:
        return {"returned": _encode(value)}
    found: dict[str, Any] = {"content": value.content}
    if isinstance(value.content, str) and (code := exit_code_in(value.content)) is not None:
        found["exit_code"] = code
    blank = ToolMessage(content="", tool_call_id="")
    for name in type(value).model_fields:
        field = getattr(value, name)
        if name not in _OWN and field != getattr(blank, name):
            found[name] = field
    return found


def decode_result(value: Json, *, tool_call_id: str | None) -> Any:
    """The result again; one of `OUTCOMES` is to be raised. Raises DamagedError for what was no result."""
    if not isinstance(value, dict):
        raise DamagedError(f"a recorded result of a LangGraph tool is a {type(value).__name__}")
    if "returned" in value:
        return _decode(value["returned"])
    fields: dict[str, Any] = {name: field for name, field in value.items() if name != "exit_code"}
    return ToolMessage(**fields, tool_call_id=tool_call_id or "")


def _encode(value: Any) -> Any:
    match value:
        case tuple():
            return {"$tuple": [_encode(item) for item in value]}
        case list():
            return [_encode(item) for item in value]
        case Mapping():
            plain = {key: _encode(item) for key, item in value.items()}
            looks_tagged = len(plain) == 1 and str(next(iter(plain))).startswith(_SIGN)
            return {"$mapping": plain} if looks_tagged else plain
        case _:
            return _encode_object(value)


def _encode_object(value: Any) -> Any:
    match value:
        case BaseMessage():
            return {"$message": message_to_dict(value)}
        case GraphInterrupt():
            return {"$interrupt": [_interrupt(each) for each in value.args[0]]}
        case ParentCommand():
            return {"$parent": _encode(value.args[0])}
        case Send():
            return {"$send": [value.node, _encode(value.arg)]}
        case Command():
            return {"$command": {name: _encode(getattr(value, name)) for name in _COMMAND}}
        case _:
            return value


def _interrupt(interrupt: Any) -> Any:
    return {name: _encode(getattr(interrupt, name)) for name in ("value", "id", "response_schema")}


def _decode(value: Json) -> Any:
    if isinstance(value, list):
        return [_decode(item) for item in value]
    if not isinstance(value, dict):
        return value
    if len(value) == 1:
        ((tag, inner),) = value.items()
        if tag.startswith(_SIGN):
            return _tagged(tag, inner)
    return {key: _decode(item) for key, item in value.items()}


def _tagged(tag: str, inner: Json) -> Any:
    match tag, inner:
        case "$message", dict():
            return messages_from_dict([inner])[0]
        case "$send", [str() as node, argument]:
            return Send(node, _decode(argument))
        case "$interrupt", list():
            asked = [Interrupt(**_mapping(each)) for each in inner if isinstance(each, dict)]
            return GraphInterrupt(tuple(asked))
        case "$parent", dict():
            return ParentCommand(_decode(inner))
        case "$command", dict():
            return Command(**_mapping(inner))
        case "$tuple", list():
            return tuple(_decode(item) for item in inner)
        case "$mapping", dict():
            return _mapping(inner)
        case _:
            raise DamagedError(f"a recorded result of a LangGraph tool holds an unknown {tag}")


def _mapping(value: JsonObject) -> dict[str, Any]:
    return {key: _decode(item) for key, item in value.items()}
