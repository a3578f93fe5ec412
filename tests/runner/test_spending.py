"""Tokens are counted alike whichever API reports them, and a limit of cost ends a run."""

from __future__ import annotations

import dataclasses
import importlib.util

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentrewind.errors import UsageError
from agentrewind.records import Json
from harness_adapters.scripted import ScriptedAnswer, ScriptedRequest
from runner.cell import Strategy
from runner.order import Price
from runner.prices import price_of
from runner.result import Exit, Tokens
from runner.spending import cost_of, usage_of
from tests.runner.stage import Stage, commands

counts = st.integers(0, 10**6)


@given(counts, counts, counts)
def test_the_same_call_counts_the_same_in_every_form(fresh: int, cached: int, output: int) -> None:
    total = fresh + cached
    forms: list[dict[str, Json]] = [
        {
            "prompt_tokens": total,
            "completion_tokens": output,
            "prompt_tokens_details": {"cached_tokens": cached},
        },
        {
            "input_tokens": total,
            "output_tokens": output,
            "input_tokens_details": {"cached_tokens": cached},
        },
        {"input_tokens": total, "output_tokens": output, "input_token_details": {"cache_read": cached}},
        {"input_tokens": fresh, "output_tokens": output, "cache_read_input_tokens": cached},
    ]
    wanted = Tokens(input=total, output=output, cached=cached)
    assert [usage_of(form) for form in forms] == [wanted] * len(forms)


@given(st.dictionaries(st.sampled_from(["prompt_tokens", "input_tokens", "x"]), st.none() | st.text()))
def test_what_is_no_count_is_none(usage: dict[str, Json]) -> None:
    assert usage_of(usage) == Tokens()


def test_cost_is_that_of_each_kind_of_token() -> None:
    price = Price(input=2.0, output=10.0, cached=0.5)
    assert cost_of(Tokens(input=3_000_000, output=100_000, cached=1_000_000), price) == pytest.approx(5.5)


def test_prices_come_from_the_table_that_is_installed() -> None:
    if importlib.util.find_spec("litellm") is None:
        pytest.skip("litellm is not installed")
    price = price_of("openai/gpt-4o-mini")
    assert price is not None
    assert 0 < price.cached < price.input < price.output
    assert price_of("openai/no-such-model") is None


def test_a_limit_needs_a_price(stage: Stage) -> None:
    with pytest.raises(UsageError, match="price"):
        stage.scripted(lambda request: ScriptedAnswer("Done."), cell_cost=1.0)


def test_a_run_ends_in_good_order_when_it_has_cost_too_much(stage: Stage) -> None:
    def endless(request: object) -> ScriptedAnswer:
        usage = {"prompt_tokens": 1000, "completion_tokens": 1000, "total_tokens": 2000}
        return ScriptedAnswer("Again.", tool_calls=[("bash", {"command": "sleep 0.1"})], usage=usage)

    price = Price(input=1.0, output=1.0, cached=1.0)
    result = stage.scripted(endless, cell_cost=0.02, price=price)
    assert result.exit is Exit.COST_LIMIT
    assert not result.abnormal
    assert result.cost is not None
    assert result.cost >= 0.02


def test_no_attempt_begins_once_a_cell_has_cost_too_much(stage: Stage) -> None:
    def submits(request: ScriptedRequest) -> ScriptedAnswer:
        usage = {"prompt_tokens": 1000, "completion_tokens": 1000, "total_tokens": 2000}
        return dataclasses.replace(commands()(request), usage=usage, delay=2.5)

    price = Price(input=1.0, output=1.0, cached=1.0)
    result = stage.scripted(submits, strategy=Strategy.RESTART, cell_cost=0.003, price=price)
    assert result.exit is Exit.COST_LIMIT
    assert result.attempts < 5
