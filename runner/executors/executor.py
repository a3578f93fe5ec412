"""What a campaign needs of whatever runs its cells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from runner.cell import Cell
from runner.order import Order


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """A try that is over; what it left is in its cell's folder. `lost`: why its worker gave nothing back."""

    cell: Cell
    lost: str | None = None


class Executor(Protocol):
    """Runs single tries; knows nothing of retries, caps and results."""

    @property
    def capacity(self) -> int:
        """How many tries may run at a time."""
        ...

    def submit(self, order: Order, folder: Path) -> None:
        """Begin a try; `cell.json` is in its folder already."""
        ...

    def wait(self, seconds: float) -> Sequence[Ended]:
        """The tries that have ended since, after so many seconds at most if there are none."""
        ...

    def cancel(self, cell: Cell) -> None:
        """End a try with everything it started; `wait` reports it."""
        ...

    def close(self) -> None:
        """End all tries that still run."""
        ...
