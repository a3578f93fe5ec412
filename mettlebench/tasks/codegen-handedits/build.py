"""Holds what is true of the hand edits; the workspace is shipped as it stands."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from mettlebench.craft import Craft

EDITS: list[tuple[str, str, str, Any]] = [
    ("Address", "country", "default", "CH"),
    ("Address", "country", "pattern", "[A-Z]{2}"),
    ("Address", "postcode", "pattern", "\\d{4,5}"),
    ("Address", "postcode", "strip", True),
    ("Line", "qty", "max", 999),
    ("Line", "qty", "min", 1),
    ("Line", "sku", "pattern", "[A-Z]{3}-\\d{1,6}"),
    ("Line", "sku", "strip", True),
    ("Line", "unit_cents", "min", 0),
    ("Order", "customer_email", "pattern", "[^@\\s]+@[^@\\s]+"),
    ("Order", "customer_email", "strip", True),
    ("Order", "lines", "max_items", 200),
    ("Order", "note", "strip", True),
    ("Order", "priority", "default", 3),
    ("Order", "priority", "max", 5),
    ("Order", "priority", "min", 1),
]


def shipped(name: str) -> bytes:
    return (Path(__file__).parent / "workspace" / name).read_bytes()


def edited_schema() -> Any:
    schema = json.loads(shipped("schema/api.json"))
    for name, field, key, value in EDITS:
        schema["types"][name]["fields"][field][key] = value
    return schema


def build(craft: Craft) -> None:
    assert craft.read("schema/api.json")
