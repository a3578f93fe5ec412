"""Simulated agents are the same for the same seed, and are named for what they are."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentrewind.errors import UsageError
from mettlebench.load import load_tasks
from runner.cell import Strategy
from runner.simulation.policy import plans_of
from runner.simulation.profile import NAMED, Profile, draw, profile_of
from tests.runner.stage import TASK, Stage, cell_of

probabilities = st.floats(0, 1).map(lambda value: round(value, 3))


@given(probabilities, probabilities, probabilities)
def test_a_name_with_numbers_is_a_profile(early: float, learn: float, slip: float) -> None:
    name = f"simulated:early={early},learn={learn},slip={slip}"
    assert profile_of(name) == Profile(early=early, learn=learn, slip=slip)


@pytest.mark.parametrize(
    "name",
    ["simulated:", "simulated:early", "simulated:early=2", "simulated:luck=0.1", "simulated:early=nan"],
)
def test_another_name_is_refused_with_those_that_there_are(name: str) -> None:
    with pytest.raises(UsageError, match="simulated:careless"):
        profile_of(name)


@given(st.lists(st.integers() | st.text(), min_size=1, max_size=4))
def test_a_draw_depends_on_its_key_alone(key: list[object]) -> None:
    assert draw(*key) == draw(*key)
    assert 0.0 <= draw(*key) < 1.0


def test_draws_are_spread_evenly() -> None:
    found = [draw("spread", number) for number in range(4000)]
    assert abs(sum(found) / len(found) - 0.5) < 0.02
    assert abs(sum(each < 0.25 for each in found) / len(found) - 0.25) < 0.03


def test_every_task_has_two_orders_of_work_that_part_somewhere() -> None:
    assert set(NAMED) >= {"careful", "careless", "reckless", "perfect"}
    for task in load_tasks():
        plans = plans_of(task)
        assert plans.right[: plans.parting] == plans.wrong[: plans.parting], task.id
        assert plans.right[plans.parting] != plans.wrong[plans.parting], task.id


def learns_late(seed: int) -> bool:
    """An agent of this seed that learns half of the time has learned from its second note, not its first."""
    agent = int(draw(seed, TASK, 1) * 2**53)
    return draw(agent, "learn", 1) >= 0.5 > draw(agent, "learn", 2)


def test_it_goes_back_as_often_as_it_would_start_again_and_draws_the_same(stage: Stage) -> None:
    seed = next(filter(learns_late, range(100)))
    found = {}
    for strategy in (Strategy.REWIND, Strategy.RESTART):
        cell = cell_of(strategy, model="simulated:early=1,learn=0.5")
        found[strategy] = stage.run(dataclasses.replace(stage.order(cell), seed=seed))
    back, again = found[Strategy.REWIND], found[Strategy.RESTART]
    assert back.success
    assert again.success
    assert (back.rewinds, back.attempts) == (2, 1)
    assert (again.rewinds, again.attempts) == (0, 3)
    for each in (back, again):
        assert each.snapshot_seconds is not None
        assert 0 < each.snapshot_seconds < each.step_seconds
    assert [each.first_failure for each in back.submissions] == [
        each.first_failure for each in again.submissions
    ]
