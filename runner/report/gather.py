"""Takes the results of a campaign apart: what counts, what is left out and why, and what is not there yet."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from agentrewind.errors import UsageError
from runner.cell import SIMULATED, Cell, Strategy
from runner.result import Result

MAIN = (Strategy.CONTINUE, Strategy.RESTART, Strategy.SAFETY, Strategy.REWIND)
"""The strategies that are compared."""

BASELINES = (Strategy.CONTINUE, Strategy.RESTART, Strategy.SAFETY)

ABLATION = (
    Strategy.REWIND,
    Strategy.REWIND_NO_ENVIRONMENT,
    Strategy.REWIND_NO_CONTEXT,
    Strategy.REWIND_NO_MEMORY,
)

NAMES = {
    Strategy.CONTINUE: "Continue",
    Strategy.RESTART: "Restart with Experiences",
    Strategy.SAFETY: "Safety Review",
    Strategy.REWIND: "AgentRewind",
    Strategy.REWIND_NO_ENVIRONMENT: "AgentRewind, files kept",
    Strategy.REWIND_NO_CONTEXT: "AgentRewind, context kept",
    Strategy.REWIND_NO_MEMORY: "AgentRewind, no memory",
    Strategy.RECOVERY_CONTINUE: "Continue, from a failed end",
    Strategy.RECOVERY_REWIND: "AgentRewind, from a failed end",
}
"""What tables call a strategy."""


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Setting:
    """A model in a harness."""

    model: str
    harness: str

    @property
    def simulated(self) -> bool:
        return self.model.startswith(SIMULATED)

    @property
    def shown(self) -> str:
        """The model for people; a simulation is never taken for a model.

        >>> Setting(model="simulated:careless", harness="h").shown
        'careless (simulation)'
        """
        return f"{self.model.removeprefix(SIMULATED)} (simulation)" if self.simulated else self.model


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """A finished cell that says nothing about its agent."""

    cell: Cell
    exit: str
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Gathered:
    """Results that count, cells that are left out, planned cells without a result (ids)."""

    results: tuple[Result, ...]
    left_out: tuple[LeftOut, ...]
    missing: tuple[str, ...]

    @property
    def simulated(self) -> bool:
        """Any of it comes from a simulation."""
        return any(result.simulated for result in self.results)

    def settings(self) -> tuple[Setting, ...]:
        """Every model in its harness, by name."""
        return tuple(sorted({setting_of(result) for result in self.results}))

    def of(self, setting: Setting, strategy: Strategy) -> tuple[Result, ...]:
        """The results of one model, harness and strategy, by task and run."""
        return self._arms().get((setting, strategy), ())

    def strategies(self, setting: Setting, among: Sequence[Strategy] = tuple(Strategy)) -> list[Strategy]:
        """Those among which this setting has any result."""
        return [strategy for strategy in among if self.of(setting, strategy)]

    def _arms(self) -> dict[tuple[Setting, Strategy], tuple[Result, ...]]:
        found: dict[tuple[Setting, Strategy], list[Result]] = {}
        for result in self.results:
            found.setdefault((setting_of(result), result.cell.strategy), []).append(result)
        return {key: tuple(sorted(held, key=lambda each: each.cell)) for key, held in found.items()}


def setting_of(result: Result) -> Setting:
    """Model and harness of a result."""
    return Setting(model=result.cell.model, harness=result.cell.harness)


def gather(results: Iterable[Result], planned: Iterable[str] = ()) -> Gathered:
    """Leave out abnormal ends, and name what is planned and not finished.

    Raises UsageError where results come from different versions of one task: they cannot be compared.
    """
    held = list(results)
    _one_version(held)
    finished = {result.cell.id for result in held}
    return Gathered(
        results=tuple(result for result in held if not result.abnormal),
        left_out=tuple(
            LeftOut(cell=result.cell, exit=result.exit.value, detail=result.detail)
            for result in held
            if result.abnormal
        ),
        missing=tuple(cell for cell in planned if cell not in finished),
    )


def _one_version(results: Sequence[Result]) -> None:
    first: dict[str, Result] = {}
    for result in results:
        other = first.setdefault(result.cell.task, result)
        if other.task_digest != result.task_digest:
            raise UsageError(
                f"the task {result.cell.task} was not the same for {other.cell.id} ({other.task_digest}) and "
                f"{result.cell.id} ({result.task_digest}): run one of them again, or report them apart"
            )


def by_task(
    results: Iterable[Result], key: Callable[[Result], str] = lambda result: result.cell.task
) -> dict[str, list[Result]]:
    """Results grouped, by default by task, in order."""
    found: dict[str, list[Result]] = {}
    for result in results:
        found.setdefault(key(result), []).append(result)
    return dict(sorted(found.items()))
