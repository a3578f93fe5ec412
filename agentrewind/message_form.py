"""A message of a request as it is compared and recorded: JSON, without marks for a provider's cache."""

from __future__ import annotations

from agentrewind.jsonform import to_json
from agentrewind.records import Json, JsonObject

_MARK = "cache_control"


def request_form(value: object, *, where: str = "value") -> Json:
    """Part of a request as JSON. Raises UsageError for what JSON cannot hold."""
    return to_json(value, where=where, dump=_dumped)


def _dumped(value: object) -> object:
    """Clients take objects of their own wherever data may stand."""
    dump = getattr(value, "model_dump", None)
    return value if dump is None or isinstance(value, type) else dump(mode="json")


def message_form(message: object) -> JsonObject:
    """The message as an object. Raises UsageError for what JSON cannot hold."""
    plain = request_form(message)
    return _unmarked(plain) if isinstance(plain, dict) else {"content": plain}


def _unmarked(message: JsonObject) -> JsonObject:
    """The message without marks for a provider's cache, which move on with every request.

    A harness that sets one turns the text that it stands on into a list of one part; that is undone too.
    """
    content = message.get("content")
    parts = content if isinstance(content, list) else []
    marked = [part for part in parts if isinstance(part, dict) and _MARK in part]
    if _MARK not in message and not marked:
        return message
    plain = {name: value for name, value in message.items() if name != _MARK}
    if parts:
        bare: list[Json] = [_without_mark(part) for part in parts]
        only = bare[0]
        alone = len(bare) == 1 and isinstance(only, dict) and only.keys() == {"type", "text"}
        plain["content"] = only["text"] if alone and isinstance(only, dict) else bare
    return plain


def _without_mark(part: Json) -> Json:
    if not isinstance(part, dict):
        return part
    return {name: value for name, value in part.items() if name != _MARK}
