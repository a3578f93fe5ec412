"""What a model costs, where nobody has said: from the table that litellm brings along."""

from __future__ import annotations

import functools
import importlib.util
import json
from pathlib import Path
from typing import Any

from runner.order import Price

_TABLE = "model_prices_and_context_window_backup.json"
_MILLION = 1_000_000


def price_of(model: str) -> Price | None:
    """Dollars for a million tokens, or None where litellm is not installed or does not know the model."""
    table = _table()
    known = table.get(model) or table.get(model.partition("/")[2])
    if not isinstance(known, dict) or not isinstance(known.get("input_cost_per_token"), int | float):
        return None
    fresh = float(known["input_cost_per_token"])
    return Price(
        input=fresh * _MILLION,
        output=float(known.get("output_cost_per_token") or 0.0) * _MILLION,
        cached=float(known.get("cache_read_input_token_cost") or fresh) * _MILLION,
    )


@functools.cache
def _table() -> dict[str, Any]:
    """The table as it is on disk: importing litellm would ask the network for a newer one."""
    found = importlib.util.find_spec("litellm")
    places = list(found.submodule_search_locations or ()) if found is not None else []
    for place in places:
        path = Path(place) / _TABLE
        if path.is_file():
            table: dict[str, Any] = json.loads(path.read_bytes())
            return table
    return {}
