"""How often the runs of a task end with the same verdict."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """Of `groups` groups of runs, `agreeing` ended alike; those of another size are `left_out`."""

    groups: int
    agreeing: int
    left_out: int

    @property
    def share(self) -> float | None:
        """None where there is no group."""
        return self.agreeing / self.groups if self.groups else None


def agreement(groups: Iterable[Sequence[bool]], *, runs: int = 3) -> Agreement:
    """All runs of a group succeeded, or all failed; only groups of exactly so many runs count."""
    held = list(groups)
    full = [group for group in held if len(group) == runs]
    return Agreement(
        groups=len(full), agreeing=sum(len(set(group)) == 1 for group in full), left_out=len(held) - len(full)
    )
