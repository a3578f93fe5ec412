"""Options come back from the header as they went in, and nothing odd in it passes silently."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentrewind.errors import DamagedError
from agentrewind.identity import canonical_bytes
from agentrewind.jsonform import load_plain
from agentrewind.options import Ablation, RunOptions, Strategy
from agentrewind.records import Json
from agentrewind.replayer import OnDivergence
from agentrewind.rewind.memory import ROLES
from tests.core.conversations import texts, values

options = st.builds(
    RunOptions,
    task=texts,
    check=st.none() | texts,
    strategy=st.sampled_from(Strategy),
    ablations=st.frozensets(st.sampled_from(Ablation)),
    max_rewinds=st.none() | st.integers(0, 9),
    repeated_failures=st.integers(1, 9),
    jobs_end=st.booleans(),
    rewind_after=st.sampled_from(["", "rec_000007"]),
    memory_role=st.sampled_from(ROLES),
    on_divergence=st.sampled_from(OnDivergence),
    settings=st.dictionaries(texts, values, max_size=2),
)


@given(options)
def test_they_come_back_from_the_header(given_options: RunOptions) -> None:
    written = load_plain(canonical_bytes(given_options.to_json()), where="options")
    assert isinstance(written, dict)
    assert RunOptions.from_json(written) == given_options


def test_what_an_older_run_did_not_write_has_its_default() -> None:
    assert RunOptions.from_json({"task": "mend"}) == RunOptions(task="mend")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("strategy", "give-up"),
        ("ablations", ["everything"]),
        ("ablations", "memory"),
        ("max_rewinds", "3"),
        ("max_rewinds", True),
        ("repeated_failures", "5"),
        ("jobs_end", 1),
        ("rewind_after", 3),
        ("memory_role", "assistant"),
        ("on_divergence", "live"),
        ("settings", ["a"]),
        ("check", 7),
        ("task", None),
    ],
)
def test_what_cannot_be_understood_is_damage(name: str, value: Json) -> None:
    with pytest.raises(DamagedError, match=name):
        RunOptions.from_json({"task": "mend", name: value})


def test_only_the_rewind_strategy_has_the_tools() -> None:
    assert RunOptions(task="t").can_rewind
    assert not RunOptions(task="t", strategy=Strategy.CONTINUE).can_rewind


def test_an_agent_is_asked_about_going_back_only_where_it_could() -> None:
    plain = RunOptions(task="mend")
    assert plain.asks_for_rewind("rec_000001")
    continued = RunOptions(task="mend", rewind_after="rec_000009")
    assert not continued.asks_for_rewind("rec_000009")
    assert continued.asks_for_rewind("rec_000010")
    assert not RunOptions(task="mend", strategy=Strategy.CONTINUE).asks_for_rewind("rec_000010")
