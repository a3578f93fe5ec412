"""Lays rows that branch out in lanes: the current path on the left, what was abandoned beside it. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

ROOT = -1
"""The parent of rows that follow nothing."""

MOST = 7
"""Lanes beyond this one share it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Strand:
    """Rows one after the other, each the next of the one before.

    Attributes:
        rows: their numbers, ascending; other strands' rows may lie between them.
        parent: the row that it leaves, `ROOT` for none.
        start: the row at which its line leaves its parent's lane.
        current: whether it leads to where the run is now.
    """

    rows: tuple[int, ...]
    parent: int
    start: int
    lane: int
    current: bool

    @property
    def end(self) -> int:
        return self.rows[-1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Strands in the order in which they begin, and the strand and state of each row."""

    strands: tuple[Strand, ...]
    strand_of: tuple[int, ...]
    on_path: tuple[bool, ...]

    def lane(self, row: int) -> int:
        """The lane of a row, `ROOT` counting as the first."""
        return 0 if row == ROOT else self.strands[self.strand_of[row]].lane

    @property
    def width(self) -> int:
        """How many lanes there are."""
        return 1 + max((strand.lane for strand in self.strands), default=0)


def lay_out(parents: Sequence[int], head: int) -> Layout:
    """Lanes for rows in time order.

    Args:
        parents: for each row the one that it follows, which is always an earlier one, or `ROOT`.
        head: the row where the run is now, or `ROOT`.
    """
    on_path = [False] * len(parents)
    row = head
    while row != ROOT:
        on_path[row] = True
        row = parents[row]
    follower = _followers(parents, on_path)
    chains = _chains(parents, follower)
    strand_of = [0] * len(parents)
    for number, chain in enumerate(chains):
        for row in chain:
            strand_of[row] = number
    strands = _in_lanes(parents, chains, follower, strand_of, on_path)
    return Layout(strands=strands, strand_of=tuple(strand_of), on_path=tuple(on_path))


def _followers(parents: Sequence[int], on_path: Sequence[bool]) -> dict[int, int]:
    """Of several rows that follow the same one, the one that stays in its lane: the path's, else the last."""
    found: dict[int, int] = {}
    for row, parent in enumerate(parents):
        if parent not in found or not on_path[found[parent]]:
            found[parent] = row
    return found


def _chains(parents: Sequence[int], follower: Mapping[int, int]) -> list[list[int]]:
    chains: list[list[int]] = []
    for row, parent in enumerate(parents):
        if parent == ROOT or follower[parent] != row:
            chain = [row]
            while (following := follower.get(chain[-1])) is not None:
                chain.append(following)
            chains.append(chain)
    return chains


def _in_lanes(
    parents: Sequence[int],
    chains: Sequence[list[int]],
    follower: Mapping[int, int],
    strand_of: Sequence[int],
    on_path: Sequence[bool],
) -> tuple[Strand, ...]:
    lanes: dict[int, int] = {}
    spans: dict[int, tuple[int, int]] = {}
    for number, chain in enumerate(chains):
        spans[number] = (_start(parents[chain[0]], chain[0], follower), chain[-1])
    main = next((n for n, chain in enumerate(chains) if follower.get(ROOT) == chain[0]), None)
    order = sorted(spans, key=lambda number: (number != main, spans[number]))
    for number in order:
        parent = parents[chains[number][0]]
        least = 0 if number == main else 1 if parent == ROOT else lanes.get(strand_of[parent], 0) + 1
        taken = {lane for other, lane in lanes.items() if _overlap(spans[number], spans[other])}
        lanes[number] = min(
            MOST, next(lane for lane in range(least, len(chains) + MOST) if lane not in taken)
        )
    return tuple(
        Strand(
            rows=tuple(chain),
            parent=parents[chain[0]],
            start=spans[number][0],
            lane=lanes[number],
            current=on_path[chain[0]],
        )
        for number, chain in enumerate(chains)
    )


def _start(parent: int, first: int, follower: Mapping[int, int]) -> int:
    """Where a line leaves its parent's lane: as late as that lane still shows nothing newer."""
    after = follower.get(parent)
    return first if after is None or after >= first else min(first, parent + 1)


def _overlap(one: tuple[int, int], other: tuple[int, int]) -> bool:
    return one[0] <= other[1] and other[0] <= one[1]
