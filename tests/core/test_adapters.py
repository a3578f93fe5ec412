"""Harnesses by name or path: found, or refused with what to do."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from agentrewind.adapters import ADAPTERS, AgentOutcome, Assignment, check_harness, load_adapter, resolve
from agentrewind.errors import UnknownHarnessError
from agentrewind.layer import Layer

HERE = "tests.core.test_adapters"
NOT_CALLABLE = 3


@dataclass
class Idle:
    """An adapter whose agent does nothing."""

    def run(self, layer: Layer, assignment: Assignment) -> AgentOutcome:
        return AgentOutcome(state="stopped", detail=f"{assignment.task} by {layer}")


@pytest.mark.parametrize("name", sorted(ADAPTERS))
def test_every_entry_of_the_table_can_be_loaded_without_its_harness(name: str) -> None:
    assert callable(load_adapter(name).run)
    check_harness(name)


def test_a_path_is_as_good_as_a_name() -> None:
    check_harness(f"{HERE}:Idle")
    assert type(load_adapter(f"{HERE}:Idle")).__name__ == "Idle"
    assert resolve(f"{HERE}:NOT_CALLABLE") == NOT_CALLABLE


@pytest.mark.parametrize(
    "name",
    ["mini", "", ":", "mini_swe_agent:", ":Idle", "no.such.module:Adapter", "nosuch:Adapter"],
)
def test_an_unknown_harness_is_refused_and_the_known_ones_named(name: str) -> None:
    with pytest.raises(UnknownHarnessError, match="mini-swe-agent") as caught:
        check_harness(name)
    assert caught.value.exit_code == 2
    assert caught.value.name == name


@pytest.mark.parametrize(
    "name", [f"{HERE}:Nobody", f"{HERE}:NOT_CALLABLE", "no.such.module:Adapter", HERE, ""]
)
def test_what_is_no_adapter_is_refused_when_it_is_loaded(name: str) -> None:
    with pytest.raises(UnknownHarnessError) as caught:
        load_adapter(name)
    assert caught.value.name == name
