"""A plan names its cells; what is wrong with one is told with file, line, and what was expected."""

from __future__ import annotations

from pathlib import Path

import pytest

from mettlebench.errors import TaskFormatError
from runner.cell import Strategy
from runner.plan import read_plan

GOOD = """\
tasks = ["sample"]
tasks_folder = "tasks"
harnesses = ["tests.runner.small:Small"]
strategies = ["rewind", "continue"]
runs = 3
seed = 4

[limits]
jobs = 2
cost = 10.5
cell_cost = 1
retries = 0

[[models]]
name = "simulated:careless"
jobs = 1

[[models]]
name = "openai/some-model"
own_temperature = true
input_price = 1.0
output_price = 4
settings = ["timeout=3"]
"""


def write(tasks: Path, place: Path, text: str) -> Path:
    (place / "tasks").symlink_to(tasks)
    (place / "plan.toml").write_text(text)
    return place / "plan.toml"


def test_every_combination_is_a_cell_once(tasks: Path, tmp_path: Path) -> None:
    plan = read_plan(write(tasks, tmp_path, GOOD))
    cells = [order.cell for order in plan.orders]
    assert len(cells) == len(set(cells)) == 1 * 2 * 1 * 2 * 3
    assert {cell.run for cell in cells} == {1, 2, 3}
    assert plan.limits.jobs == 2
    assert plan.limits.cost == 10.5
    assert plan.limits.retries == 0
    assert plan.limits.model_jobs == {"simulated:careless": 1}
    real = next(order.conditions for order in plan.orders if not order.cell.simulated)
    assert real.temperature is None
    assert real.price is not None
    assert (real.price.input, real.price.output, real.price.cached) == (1.0, 4.0, 1.0)
    assert real.cell_cost == 1.0
    assert real.settings == ("timeout=3",)


def test_what_a_recovery_starts_from_comes_first(tasks: Path, tmp_path: Path) -> None:
    text = GOOD.replace('["rewind", "continue"]', '["recovery-rewind", "continue"]')
    strategies = [order.cell.strategy for order in read_plan(write(tasks, tmp_path, text)).orders]
    assert strategies[:2] == [Strategy.CONTINUE, Strategy.RECOVERY_REWIND]


def test_all_tasks_of_a_folder(tasks: Path, tmp_path: Path) -> None:
    plan = read_plan(write(tasks, tmp_path, GOOD.replace('["sample"]', '["all"]')))
    assert {order.cell.task for order in plan.orders} == {"sample"}


@pytest.mark.parametrize(
    ("old", "new", "line", "expected"),
    [
        ('["sample"]', '["samples"]', 1, "no task is called 'samples'"),
        ('["sample"]', "[]", 1, "at least one task"),
        ('["sample"]', '"sample"', 1, "list of texts"),
        ('"tasks"', '"nowhere"', 2, "there is no folder"),
        ("tests.runner.small:Small", "mini", 3, "unknown harness 'mini'"),
        ('"rewind", "continue"', '"rewind", "redo"', 4, "no strategy is called 'redo'"),
        ('"rewind", "continue"', '"rewind", "rewind"', 4, "twice"),
        ('"rewind", "continue"', '"recovery-rewind"', 4, "starts from a failed run of continue"),
        ('"rewind", "continue"', '"safety"', 4, "needs a monitor"),
        ("runs = 3", "runs = 0", 5, "at least 1"),
        ("runs = 3", "runs = 99999999999", 5, "more than 100,000"),
        ("seed = 4", "sed = 4", 6, "unknown key 'sed'"),
        ("jobs = 2", "jobs = 2.5", 9, "whole number"),
        ("cost = 10.5", 'cost = "ten"', 10, "must be a number"),
        ("retries = 0", "again = 0", 12, "unknown key 'again'"),
        ("simulated:careless", "simulated:nobody", 15, "no simulated agent is called"),
        ("openai/some-model", "simulated:careless", 19, "there twice"),
        ("output_price = 4", "output_cost = 4", 22, "unknown key"),
        ("runs = 3", "runs = ", 5, "no TOML"),
    ],
)
def test_what_is_wrong_is_told_with_its_line(
    tasks: Path, tmp_path: Path, old: str, new: str, line: int, expected: str
) -> None:
    path = write(tasks, tmp_path, GOOD.replace(old, new))
    with pytest.raises(TaskFormatError) as caught:
        read_plan(path)
    assert caught.value.line == line
    assert str(caught.value).startswith(f"{path}:{line}: ")
    assert expected in str(caught.value)


def test_a_plan_without_models_says_how_to_write_one(tasks: Path, tmp_path: Path) -> None:
    text = GOOD.partition("[[models]]")[0]
    with pytest.raises(TaskFormatError, match=r"write \[\[models\]\]"):
        read_plan(write(tasks, tmp_path, text))
