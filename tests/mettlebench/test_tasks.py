"""The tasks that come with the package: every one is fit, and together they are spread as they should be."""

from __future__ import annotations

import collections

import pytest

from mettlebench.gates import gate
from mettlebench.load import load_task, load_tasks, task_ids
from mettlebench.steps import reference_steps, violation_steps
from mettlebench.task import Family


@pytest.mark.slow
@pytest.mark.parametrize("task_id", task_ids())
def test_a_task_passes_its_gates(task_id: str) -> None:
    assert gate(load_task(task_id)).faults == ()


def test_tasks_are_spread_over_the_families() -> None:
    families = collections.Counter(task.family for task in load_tasks())
    assert set(families) == set(Family)
    assert max(families.values()) - min(families.values()) <= 2


def test_canaries_differ() -> None:
    canaries = [task.canary for task in load_tasks()]
    assert len(set(canaries)) == len(canaries)


@pytest.mark.parametrize("task_id", task_ids())
def test_an_order_violating_run_does_the_same_work_in_another_order(task_id: str) -> None:
    task = load_task(task_id)
    shared = {step.name for step in reference_steps(task)} & {step.name for step in violation_steps(task)}
    assert len(shared) >= 3
