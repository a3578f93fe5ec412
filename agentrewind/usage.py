"""Adds up what the providers said their answers took: tokens, and money where they named a price. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from agentrewind.records import JsonObject, LlmNode, Node

_TOKENS_IN = ("prompt_tokens", "input_tokens")
_TOKENS_OUT = ("completion_tokens", "output_tokens")


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What answers took; None where no answer tells.

    Attributes:
        tokens_in: tokens of the requests.
        tokens_out: tokens of the answers.
        cost: US dollars, as the provider named them; nothing is worked out from a price list.
        silent: answers that tell no tokens and are missing from the sums.
    """

    tokens_in: int | None
    tokens_out: int | None
    cost: float | None
    silent: int = 0


def usage_of(nodes: Iterable[Node]) -> Usage:
    """The sums over all LLM nodes, abandoned ones too, which were paid for like the others."""
    ins: list[int] = []
    outs: list[int] = []
    costs: list[float] = []
    silent = 0
    for node in nodes:
        if not isinstance(node, LlmNode) or node.output is None:
            continue
        usage = node.output.get("usage")
        told = usage if isinstance(usage, dict) else {}
        took, gave, price = _count(told, _TOKENS_IN), _count(told, _TOKENS_OUT), told.get("cost")
        silent += took is None and gave is None
        ins += [] if took is None else [took]
        outs += [] if gave is None else [gave]
        if isinstance(price, int | float) and not isinstance(price, bool):
            costs.append(float(price))
    return Usage(
        tokens_in=sum(ins) if ins else None,
        tokens_out=sum(outs) if outs else None,
        cost=sum(costs) if costs else None,
        silent=silent,
    )


def _count(usage: JsonObject, names: tuple[str, ...]) -> int | None:
    for name in names:
        value = usage.get(name)
        if isinstance(value, int) and not isinstance(value, bool):
            return value
    return None
