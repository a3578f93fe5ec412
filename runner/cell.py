"""A cell: one task, harness, model, strategy and run index; what is run once and has one result."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import PurePosixPath
from urllib.parse import quote, unquote

from agentrewind.errors import UsageError

SIMULATED = "simulated:"
"""A model of this prefix is a program that knows the tasks, and proves nothing about any real model."""


class Strategy(StrEnum):
    """What follows a rejected submission; the last seven are for the ablation and the paired recovery."""

    CONTINUE = "continue"
    RESTART = "restart"
    SAFETY = "safety"
    REWIND = "rewind"
    REWIND_NO_ENVIRONMENT = "rewind-no-environment"
    REWIND_NO_CONTEXT = "rewind-no-context"
    REWIND_NO_MEMORY = "rewind-no-memory"
    RECOVERY_CONTINUE = "recovery-continue"
    RECOVERY_REWIND = "recovery-rewind"

    @property
    def rewinds(self) -> bool:
        """The agent has the two rewind tools."""
        return "rewind" in self.value

    @property
    def recovers(self) -> bool:
        """The run starts from the failed end of a Continue run."""
        return self in (Strategy.RECOVERY_CONTINUE, Strategy.RECOVERY_REWIND)


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Cell:
    """Where one result belongs. `run` counts from 1; `strategy` is compared by its name."""

    task: str
    model: str
    harness: str
    strategy: Strategy
    run: int

    @property
    def id(self) -> str:
        """`TASK/MODEL/HARNESS/STRATEGY/RUN`, each part fit to be a folder's name; different cells differ.

        >>> cell = Cell(task="t", model="a/b", harness="h", strategy=Strategy.REWIND, run=1)
        >>> cell.id
        't/a%2Fb/h/rewind/1'
        >>> Cell.from_id(cell.id) == cell
        True
        """
        parts = (self.task, self.model, self.harness, self.strategy.value, str(self.run))
        return "/".join(quote(part, safe=":") for part in parts)

    @property
    def simulated(self) -> bool:
        """The agent's model is a simulation."""
        return self.model.startswith(SIMULATED)

    @classmethod
    def from_id(cls, cell_id: str) -> Cell:
        """The inverse of `id`. Raises UsageError where this is no cell's id."""
        parts = [unquote(part) for part in PurePosixPath(cell_id).parts]
        if len(parts) != 5 or parts[3] not in list(Strategy) or not parts[4].isdecimal():
            raise UsageError(f"{cell_id!r} is no cell: expected TASK/MODEL/HARNESS/STRATEGY/RUN")
        return cls(
            task=parts[0], model=parts[1], harness=parts[2], strategy=Strategy(parts[3]), run=int(parts[4])
        )
