"""Tells whether a value is still what it was, without writing it out again.

A request repeats all messages of the requests before it, and a harness may change any of them in place. A
likeness is an object that equals the value as long as JSON would say the same of it. Comparing is
one `==`, which Python carries out in C but for numbers and objects of clients.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from agentrewind.records import Json

_SAME_AS_BASE = frozenset({type(None), str, bytes})
_PLAIN_DUMPS = frozenset({"pydantic", "openai", "litellm", "anthropic"})
"""Packages whose `model_dump` gives what the fields hold, and nothing else."""


def likeness(value: object, form: Json, *, to_form: Callable[[object], Json]) -> object:
    """An object that equals `value` only while its JSON form, which `to_form` makes of it, is `form`.

    That `value` changes in place changes nothing in it. It may be unequal to another value of the same form:
    one with a tuple for a list, say. `form` must not be changed afterwards.
    """
    if type(value) in (dict, list) and value == form and not _has_number(form):
        return form
    try:
        return _like(value)
    except _OpaqueError:
        return _Formed(_like(form), to_form)


class _OpaqueError(Exception):
    """What an object of this type says of itself cannot be told without asking it."""


class _Whole:
    """A truth value or an integer: 1, True and 1.0 are equal to Python and three different texts in JSON."""

    __slots__ = ("kind", "value")

    def __init__(self, value: int) -> None:
        self.kind = type(value)
        self.value = value

    def __eq__(self, other: object) -> bool:
        return type(other) is self.kind and other == self.value


class _Float:
    """A float: 0.0 and -0.0 are two texts in JSON, and one nan is another's equal."""

    __slots__ = ("bits",)

    def __init__(self, value: float) -> None:
        self.bits = value.hex()

    def __eq__(self, other: object) -> bool:
        return type(other) is float and other.hex() == self.bits


class _Model:
    """An object of pydantic's, by what its dump is made of."""

    __slots__ = ("extra", "fields", "kind")

    def __init__(self, value: Any) -> None:
        self.kind = type(value)
        self.fields = _like(vars(value))
        self.extra = _like(value.__pydantic_extra__)

    def __eq__(self, other: Any) -> bool:
        return (
            type(other) is self.kind
            and self.fields == other.__dict__
            and self.extra == other.__pydantic_extra__
        )


class _Formed:
    """Anything else, by its JSON form, which is made anew for every comparison."""

    __slots__ = ("form", "to_form")

    def __init__(self, form: object, to_form: Callable[[object], Json]) -> None:
        self.form = form
        self.to_form = to_form

    def __eq__(self, other: object) -> bool:
        return self.form == self.to_form(other)


def _like(value: object) -> object:
    kind = type(value)
    if kind in _SAME_AS_BASE:
        return value
    match value:
        case dict() if kind is dict:
            return {_key(key): _like(each) for key, each in value.items()}
        case list() if kind is list:
            return [_like(each) for each in value]
        case tuple() if kind is tuple:
            return tuple(_like(each) for each in value)
        case bool() | int() if kind in (bool, int):
            return _Whole(value)
        case float() if kind is float:
            return _Float(value)
        case _ if _dumps_its_fields(kind):
            return _Model(value)
        case _:
            raise _OpaqueError


def _key(key: object) -> object:
    if type(key) is not str:
        raise _OpaqueError
    return key


def _dumps_its_fields(kind: type) -> bool:
    """Whether `model_dump` of such an object depends on its fields alone: pydantic's, with no additions."""
    additions = getattr(kind, "__pydantic_decorators__", None)
    dump = getattr(kind, "model_dump", None)
    if additions is None or str(getattr(dump, "__module__", "")).partition(".")[0] not in _PLAIN_DUMPS:
        return False
    return not (additions.computed_fields or additions.field_serializers or additions.model_serializers)


def _has_number(value: Json) -> bool:
    match value:
        case dict():
            return any(map(_has_number, value.values()))
        case list():
            return any(map(_has_number, value))
        case _:
            return isinstance(value, bool | int | float)
