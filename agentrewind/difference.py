"""Finds and words the first difference between two JSON values."""

from __future__ import annotations

from agentrewind.records import Json

_CONTEXT = 24
_SHOWN = 90


def first_difference(recorded: Json, asked: Json) -> str:
    """One sentence that names the place and both sides, shortened around the point where they part.

    >>> first_difference({"a": [1, {"b": "x1"}]}, {"a": [1, {"b": "x2"}]})
    "a[1].b at character 1: recorded 'x1', asked 'x2'"
    >>> first_difference({"a": 1}, {"a": 1})
    'no difference'
    """
    return _walk(recorded, asked, "") or "no difference"


def _walk(left: Json, right: Json, place: str) -> str | None:
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
            return None if same else f"{place or 'value'}: recorded {_short(left)}, asked {_short(right)}"


def _objects(left: dict[str, Json], right: dict[str, Json], place: str) -> str | None:
    for key in [*left, *(key for key in right if key not in left)]:
        name = f"{place}.{key}" if place else key
        if key not in right:
            return f"{name}: recorded {_short(left[key])}, asked nothing"
        if key not in left:
            return f"{name}: recorded nothing, asked {_short(right[key])}"
        if found := _walk(left[key], right[key], name):
            return found
    return None


def _lists(left: list[Json], right: list[Json], place: str) -> str | None:
    for index, (one, other) in enumerate(zip(left, right, strict=False)):
        if found := _walk(one, other, f"{place}[{index}]"):
            return found
    if len(left) == len(right):
        return None
    index = min(len(left), len(right))
    if len(left) > index:
        return f"{place}[{index}]: recorded {_short(left[index])}, asked nothing"
    return f"{place}[{index}]: recorded nothing, asked {_short(right[index])}"


def _texts(left: str, right: str, place: str) -> str:
    at = next(
        (index for index, (one, other) in enumerate(zip(left, right, strict=False)) if one != other),
        min(len(left), len(right)),
    )
    start = max(0, at - _CONTEXT)
    cut = "…" if start else ""
    one, other = (repr(cut + text[start : at + _CONTEXT]) for text in (left, right))
    return f"{place or 'value'} at character {at}: recorded {one}, asked {other}"


def _short(value: Json) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"
