"""Adds up what a streamed answer says piece by piece. Pure."""

from __future__ import annotations

import copy
from collections.abc import Mapping

from agentrewind.records import Json, JsonObject

_WHOLE = frozenset({"id", "type", "role", "format", "status", "index", "object", "model"})
"""Texts that are said at once: said again they stay what they are."""


def merge(into: JsonObject, piece: Mapping[str, Json]) -> None:
    """Add a piece to what is known: texts grow, lists grow (by `index` where items have one), objects merge.

    What is null says nothing about what is known already.
    """
    for key, value in piece.items():
        known = into.get(key)
        if value is None:
            into.setdefault(key, None)
        elif known is None:
            into[key] = copy.deepcopy(value)
        else:
            into[key] = _merged(key, known, value)


def _merged(key: str, known: Json, value: Json) -> Json:
    match known, value:
        case str(), str():
            return value if key in _WHOLE else known + value
        case dict(), dict():
            merge(known, value)
            return known
        case list(), list():
            merge_items(known, value)
            return known
        case _:
            return copy.deepcopy(value)


def merge_items(into: list[Json], pieces: list[Json]) -> None:
    """Add pieces of a list: one with an `index` to the item of that index, any other at the end."""
    for piece in pieces:
        place = piece.get("index") if isinstance(piece, dict) else None
        known = None if place is None else _with_index(into, place)
        if known is not None and isinstance(piece, dict):
            merge(known, piece)
        else:
            into.append(copy.deepcopy(piece))


def _with_index(items: list[Json], index: Json) -> JsonObject | None:
    for item in items:
        if isinstance(item, dict) and item.get("index") == index:
            return item
    return None
