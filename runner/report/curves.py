"""What is plotted: success and progress over trace length, gains by tertile of the Continue trace length."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from runner.cell import Strategy
from runner.report.gather import BASELINES, MAIN, Gathered, Setting, by_task
from runner.report.ground import steps_of
from runner.report.measures import over_runs, success
from runner.result import Result
from runner.statistics import Spread, tertiles


@dataclass(frozen=True, slots=True)
class Point:
    """From `nodes` nodes on, `share` in percent."""

    nodes: int
    share: float


def success_curve(results: Sequence[Result]) -> list[Point]:
    """Share of runs that hold every criterion after so many nodes; ended runs keep their last state."""
    return _curve(
        [[(step.nodes, Fraction(step.prefix == each.total)) for step in steps_of(each)] for each in results]
    )


def progress_curve(results: Sequence[Result]) -> list[Point]:
    """Mean checklist progress after so many nodes; ended runs keep their last state."""
    return _curve(
        [[(step.nodes, Fraction(step.prefix, each.total)) for step in steps_of(each)] for each in results]
    )


def _curve(runs: Iterable[Sequence[tuple[int, Fraction]]]) -> list[Point]:
    held = list(runs)
    changes: dict[int, Fraction] = {}
    for steps in held:
        before = Fraction(0)
        for nodes, value in steps:
            changes[nodes] = changes.get(nodes, Fraction(0)) + value - before
            before = value
    total, points = Fraction(0), []
    for nodes in sorted(changes):
        total += changes[nodes]
        points.append(Point(nodes, float(100 * total / len(held))))
    return points


@dataclass(frozen=True, slots=True, kw_only=True)
class Tertile:
    """Tasks of like length: success of each strategy in percent, and the gain over the best baseline."""

    name: str
    tasks: tuple[str, ...]
    success: dict[Strategy, Spread]
    gain: float | None


def by_length(gathered: Gathered, setting: Setting) -> tuple[Tertile, ...]:
    """Short, medium and long tasks by the median of their Continue trace lengths; empty without any."""
    lengths = {
        task: statistics.median([result.nodes for result in results])
        for task, results in by_task(gathered.of(setting, Strategy.CONTINUE)).items()
    }
    if not lengths:
        return ()
    return tuple(
        _tertile(gathered, setting, name, tasks)
        for name, tasks in zip(("short", "medium", "long"), tertiles(lengths), strict=True)
        if tasks
    )


def _tertile(gathered: Gathered, setting: Setting, name: str, tasks: tuple[str, ...]) -> Tertile:
    found: dict[Strategy, Spread] = {}
    for strategy in gathered.strategies(setting, MAIN):
        results = [each for each in gathered.of(setting, strategy) if each.cell.task in tasks]
        spread = over_runs(results, success)
        if spread is not None:
            found[strategy] = spread
    best = max((found[each].mean for each in BASELINES if each in found), default=None)
    ours = found.get(Strategy.REWIND)
    gain = ours.mean - best if ours is not None and best is not None else None
    return Tertile(name=name, tasks=tasks, success=found, gain=gain)
