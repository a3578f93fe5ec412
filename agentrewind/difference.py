"""Finds and words the first difference between two JSON values."""

from __future__ import annotations

from typing import TypeAlias

from agentrewind.records import Json

_CONTEXT = 24
_SHOWN = 90
_NOTHING = "nothing"

_Found: TypeAlias = tuple[str, str, str]
"""The place, and what stands there on either side."""


def first_difference(recorded: Json, asked: Json, *, sides: tuple[str, str] = ("recorded", "asked")) -> str:
    """One sentence that names the place and both sides, shortened around the point where they part.

    >>> first_difference({"a": [1, {"b": "x1"}]}, {"a": [1, {"b": "x2"}]})
    "a[1].b at character 1: recorded 'x1', asked 'x2'"
    >>> first_difference({"a": 1}, {"a": 1})
    'no difference'
    """
    found = _walk(recorded, asked, "")
    if found is None:
        return "no difference"
    place, left, right = found
    return f"{place or 'value'}: {sides[0]} {left}, {sides[1]} {right}"


def _walk(left: Json, right: Json, place: str) -> _Found | None:
    match left, right:
        case dict(), dict():
            return _objects(left, right, place)
        case list(), list():
            return _lists(left, right, place)
        case str(), str():
            return None if left == right else _texts(left, right, place)
        case _:
            # by their texts: 0.0 equals -0.0, and NaN differs from itself
            same = type(left) is type(right) and repr(left) == repr(right)
            return None if same else (place, _short(left), _short(right))


def _objects(left: dict[str, Json], right: dict[str, Json], place: str) -> _Found | None:
    for key in [*left, *(key for key in right if key not in left)]:
        name = f"{place}.{key}" if place else key
        if key not in right:
            return name, _short(left[key]), _NOTHING
        if key not in left:
            return name, _NOTHING, _short(right[key])
        if found := _walk(left[key], right[key], name):
            return found
    return None


def _lists(left: list[Json], right: list[Json], place: str) -> _Found | None:
    for index, (one, other) in enumerate(zip(left, right, strict=False)):
        if found := _walk(one, other, f"{place}[{index}]"):
            return found
    if len(left) == len(right):
        return None
    index = min(len(left), len(right))
    if len(left) > index:
        return f"{place}[{index}]", _short(left[index]), _NOTHING
    return f"{place}[{index}]", _NOTHING, _short(right[index])


def _texts(left: str, right: str, place: str) -> _Found:
    at = next(
        (index for index, (one, other) in enumerate(zip(left, right, strict=False)) if one != other),
        min(len(left), len(right)),
    )
    start = max(0, at - _CONTEXT)
    cut = "…" if start else ""
    one, other = (repr(cut + text[start : at + _CONTEXT]) for text in (left, right))
    return f"{place or 'value'} at character {at}", one, other


def _short(value: Json) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"
