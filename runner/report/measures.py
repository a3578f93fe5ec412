"""The two measures of a result and their spread over runs, and pairs of tasks over the same runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from runner.report.gather import by_task
from runner.result import Result
from runner.statistics import Spread, spread

Measure = Callable[[Result], Fraction]


def success(result: Result) -> Fraction:
    """1 where the final state satisfies every criterion."""
    return Fraction(result.success)


def progress(result: Result) -> Fraction:
    """The satisfied prefix of the final state as a share of all criteria."""
    return Fraction(result.prefix, result.total)


def passed(result: Result) -> Fraction:
    """The share of criteria that hold in the final state, whatever their order."""
    return Fraction(sum(each.passed for each in result.criteria), result.total)


MEASURES: dict[str, Measure] = {"Task success": success, "Checklist progress": progress}
"""What strategies are compared by."""


def over_runs(results: Iterable[Result], measure: Measure) -> Spread | None:
    """In percent: the mean over tasks of each run, and the spread of these means."""
    means = [100 * mean(each, measure) for each in _runs(results).values()]
    return spread(means)


def mean(results: Sequence[Result], measure: Measure) -> Fraction:
    """The mean over results, of which there is at least one."""
    return sum((measure(result) for result in results), Fraction(0)) / len(results)


def average(values: Iterable[float | int | None]) -> float | None:
    """The mean of what is known; None where nothing is."""
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def uneven(results: Iterable[Result]) -> str | None:
    """Says so where not every run has every task: then runs cannot be compared as they stand."""
    runs = {run: {result.cell.task for result in held} for run, held in _runs(results).items()}
    tasks = set().union(*runs.values()) if runs else set()
    short = [
        f"run {run} has {len(held)} of {len(tasks)} tasks" for run, held in runs.items() if held != tasks
    ]
    return ", ".join(short) or None


def _runs(results: Iterable[Result]) -> dict[int, list[Result]]:
    found: dict[int, list[Result]] = {}
    for result in sorted(results, key=lambda each: each.cell):
        found.setdefault(result.cell.run, []).append(result)
    return dict(sorted(found.items()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairing:
    """Two arms over the same runs: of each task the results of both, run by run; tasks without one."""

    tasks: dict[str, list[tuple[Result, Result]]]
    unpaired: int

    def differences(self, measure: Measure) -> list[Fraction]:
        """First minus second, of the means over the runs of each task."""
        return [
            mean([one for one, _ in pairs], measure) - mean([other for _, other in pairs], measure)
            for pairs in self.tasks.values()
        ]

    def runs(self) -> list[tuple[Result, Result]]:
        """Every pair of runs."""
        return [pair for pairs in self.tasks.values() for pair in pairs]


def pair(first: Iterable[Result], second: Iterable[Result]) -> Pairing:
    """Pair two arms by task, keeping of each task the runs that both have."""
    ones, others = by_task(first), by_task(second)
    tasks: dict[str, list[tuple[Result, Result]]] = {}
    for task in sorted(ones.keys() & others.keys()):
        theirs = {result.cell.run: result for result in others[task]}
        pairs = [(one, theirs[one.cell.run]) for one in ones[task] if one.cell.run in theirs]
        if pairs:
            tasks[task] = pairs
    return Pairing(tasks=tasks, unpaired=len(ones.keys() | others.keys()) - len(tasks))
