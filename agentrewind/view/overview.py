"""Draws a whole run as one strip: a tick for each stretch of rows, an arc for each rewind. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from agentrewind.display_story import Sort
from agentrewind.view.rows import Row, Rows

WIDTH = 1000
TOP = 30
TICK = 12
_MOST = 250
_RANK = ("trouble", "rejected", "accepted", "rewind", "failed", "call", "answer", "note")
"""Of several rows behind one tick the first of these is shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    """One or several rows; `first` is the row that it leads to."""

    x: float
    width: float
    sort: str
    current: bool
    first: Row


@dataclass(frozen=True, slots=True, kw_only=True)
class Arc:
    """A rewind: an arc from where it was decided back to its target. `row` tells of it."""

    d: str
    head: str
    row: Row


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """The strip, in units of which it is `WIDTH` wide."""

    ticks: tuple[Tick, ...]
    arcs: tuple[Arc, ...]


def overview_of(rows: Rows) -> Overview:
    """The strip of a run."""
    count = len(rows.all)
    if not count:
        return Overview(ticks=(), arcs=())
    each = max(1, -(-count // _MOST))
    step = WIDTH / max(count, 40)
    on_path = rows.layout.on_path
    ticks = []
    for start in range(0, count, each):
        some = rows.all[start : start + each]
        shown = min(some, key=lambda row: _RANK.index(_sort(row)))
        ticks.append(
            Tick(
                x=round(start * step, 1),
                width=round(max(1.0, len(some) * step - 1.2), 1),
                sort=_sort(shown),
                current=any(on_path[row.index] for row in some),
                first=shown,
            )
        )
    arcs = tuple(_arc(rows.all[index], target, step) for index, target in rows.rewinds)
    return Overview(ticks=tuple(ticks), arcs=arcs)


def _sort(row: Row) -> str:
    sort = row.entry.sort
    if sort is Sort.CALL and row.entry.failed:
        return "failed"
    if sort is Sort.MEMORY:
        return "rewind"
    if sort is Sort.END:
        return "rejected" if row.entry.failed else "accepted"
    return str(sort)


def _arc(row: Row, target: int, step: float) -> Arc:
    begin, end = round(row.index * step, 1), round((target + 0.5) * step, 1)
    height = min(TOP - 3, 8 + abs(begin - end) / 6)
    top = round(TOP - height, 1)
    return Arc(
        d=f"M{begin} {TOP}C{begin} {top} {end} {top} {end} {TOP - 2}",
        head=f"M{end - 3} {TOP - 6}L{end} {TOP - 1}L{end + 3} {TOP - 6}",
        row=row,
    )
