"""Draws the lanes of rows, one small picture a row. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from agentrewind.view.lanes import ROOT, Layout, Strand

LANE = 14
HEIGHT = 26
_HALF = HEIGHT // 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Stroke:
    """A line: the `d` of an SVG path, and whether it belongs to the current path."""

    d: str
    current: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """The lines in a row, in pixels, and the middle of its own dot."""

    width: int
    strokes: tuple[Stroke, ...]
    dot: int
    current: bool


def pictures(layout: Layout, start: int, stop: int) -> Iterator[Picture]:
    """The pictures of the rows from `start` to before `stop`."""
    near = [strand for strand in layout.strands if strand.start < stop and strand.end >= start]
    width = LANE * layout.width + 6
    for row in range(start, stop):
        here = [strand for strand in near if strand.start <= row <= strand.end]
        own = layout.strands[layout.strand_of[row]]
        yield Picture(
            width=width,
            strokes=tuple(stroke for strand in here for stroke in _strokes(layout, strand, row)),
            dot=_middle(own.lane),
            current=layout.on_path[row],
        )


def _strokes(layout: Layout, strand: Strand, row: int) -> Iterator[Stroke]:
    x = _middle(strand.lane)
    # a strand leads to where the run is now up to the last row of it that does
    current = strand.current and layout.on_path[next((r for r in strand.rows if r >= row), strand.end)]
    begins = row == strand.start
    if begins and strand.parent != ROOT:
        from_x = _middle(layout.lane(strand.parent))
        yield Stroke(d=f"M{from_x} 0C{from_x} {_HALF} {x} 2 {x} {_HALF}", current=current)
    elif begins and layout.strands[0] is not strand:
        yield Stroke(d=f"M{_middle(0)} 0C{_middle(0)} {_HALF} {x} 2 {x} {_HALF}", current=current)
    top = _HALF if begins else 0
    bottom = _HALF if row == strand.end else HEIGHT
    if top < bottom:
        yield Stroke(d=f"M{x} {top}V{bottom}", current=current)


def _middle(lane: int) -> int:
    return LANE * lane + LANE // 2 + 1
