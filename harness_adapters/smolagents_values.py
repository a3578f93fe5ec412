"""Arguments and results of tools for the log: JSON where it holds them exactly, else text or a pickle."""

from __future__ import annotations

import datetime
import decimal
import fractions
from collections.abc import Callable
from typing import Any

from agentrewind.errors import AgentRewindError
from agentrewind.jsonform import to_json
from agentrewind.records import Json, JsonObject
from harness_adapters.smolagents_pickle import (
    NotCarried,
    dumps,
    kind_of,
    loads,
    reason_of,
    without_addresses,
)

MARK = "agentrewind"
"""Field by which a value that is no plain JSON is known."""

_DEPTH = 100
_INERT = (
    bool,
    int,
    float,
    complex,
    str,
    bytes,
    range,
    type(None),
    datetime.date,
    datetime.datetime,
    datetime.time,
    datetime.timedelta,
    decimal.Decimal,
    fractions.Fraction,
)
_CONTAINERS = (list, tuple, set, frozenset)


def describe(value: object) -> Json:
    """An argument as a record shows it: itself where JSON can hold it, else its type and its text."""
    try:
        return to_json(value)
    except AgentRewindError:
        return {MARK: "described", "type": kind_of(value), "text": without_addresses(repr(value))}


def is_inert(value: object, depth: int = 0) -> bool:
    """Nothing but data: no method of it reaches outside the interpreter."""
    if type(value) in _CONTAINERS and depth < _DEPTH:
        return all(is_inert(item, depth + 1) for item in value)  # type: ignore[attr-defined]
    if type(value) is dict and depth < _DEPTH:
        return all(is_inert(key) and is_inert(item, depth + 1) for key, item in value.items())
    return type(value) in _INERT


def encode_value(value: object, keep: Callable[[bytes], JsonObject]) -> Json:
    """A tool's result for the log: itself where JSON holds it exactly, else a pickle that `keep` stores."""
    if _is_exact(value):
        return to_json(value)
    encoded: JsonObject = {
        MARK: "value",
        "type": kind_of(value),
        "text": str(value),
        "inert": is_inert(value),
    }
    try:
        encoded["kept"] = keep(dumps(value, None, {}))
    except Exception as error:  # noqa: BLE001 - pickling runs code of any class
        encoded["reason"] = reason_of(value, error)
    return encoded


def decode_value(encoded: Json, load: Callable[[JsonObject], bytes], *, inert_only: bool) -> Any:
    """The value again; a placeholder where it was not kept, or, with `inert_only`, could act outside."""
    if not (isinstance(encoded, dict) and encoded.get(MARK) == "value"):
        return encoded
    kept, kind, text = encoded.get("kept"), str(encoded.get("type")), str(encoded.get("text"))
    if not isinstance(kept, dict):
        return NotCarried(f"a {kind}", str(encoded.get("reason")), text)
    if inert_only and encoded.get("inert") is not True:
        return NotCarried(f"a {kind}", "its methods could act a second time", text)
    try:
        return loads(load(kept), None, {}, state={}, functions={})
    except AgentRewindError as error:
        return NotCarried(f"a {kind}", str(error), text)


def _is_exact(value: object, depth: int = 0) -> bool:
    """JSON and bytes give the value back as it is, types included."""
    if depth > _DEPTH:
        return False
    if type(value) is list:
        return all(_is_exact(item, depth + 1) for item in value)
    if type(value) is dict:
        return MARK not in value and all(
            type(key) is str and _is_exact(item, depth + 1) for key, item in value.items()
        )
    return type(value) in (bool, int, float, str, bytes, type(None))
