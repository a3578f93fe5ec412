"""What a model costs, where nobody has said: from the table that litellm brings along."""

from __future__ import annotations

from runner.order import Price

_MILLION = 1_000_000


def price_of(model: str) -> Price | None:
    """Dollars for a million tokens, or None where litellm is not installed or does not know the model."""
    try:
        import litellm
    except ImportError:
        return None
    known = litellm.model_cost.get(model) or litellm.model_cost.get(model.partition("/")[2])
    if not known or not isinstance(known.get("input_cost_per_token"), int | float):
        return None
    fresh = float(known["input_cost_per_token"])
    return Price(
        input=fresh * _MILLION,
        output=float(known.get("output_cost_per_token") or 0.0) * _MILLION,
        cached=float(known.get("cache_read_input_token_cost") or fresh) * _MILLION,
    )
