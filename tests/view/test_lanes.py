"""Rows and lanes: what is shown as the current path is the current path, and no lines run into each other."""

from __future__ import annotations

from itertools import combinations, pairwise

from hypothesis import given
from hypothesis import strategies as st

from agentrewind.display_story import Sort
from agentrewind.journal import SegmentRead
from agentrewind.records import ForkPoint, LlmNode, Record
from agentrewind.timeline import Timeline
from agentrewind.view.graph import pictures
from agentrewind.view.lanes import MOST, ROOT, lay_out
from agentrewind.view.overview import overview_of
from agentrewind.view.rows import rows_of
from tests import records

parents = st.lists(st.integers(0, 30), max_size=40).map(
    lambda given: [
        ROOT if back > index else index - 1 - back % (index + 1) for index, back in enumerate(given)
    ]
)


@given(parents, st.integers(0, 40))
def test_lanes_keep_apart(parents: list[int], head: int) -> None:
    head = min(head, len(parents) - 1)
    found = lay_out(parents, head)
    assert sorted(row for strand in found.strands for row in strand.rows) == list(range(len(parents)))
    for one, other in combinations(found.strands, 2):
        if one.lane == other.lane < MOST:
            assert one.end < other.start or other.end < one.start, (one, other)
    for strand in found.strands:
        assert [parents[row] for row in strand.rows] == [strand.parent, *strand.rows[:-1]]
        assert strand.parent < strand.start <= strand.rows[0]
        if strand.parent != ROOT:
            assert strand.lane > found.lane(strand.parent) or strand.lane == MOST
    row = head
    while row != ROOT:
        assert found.on_path[row]
        assert found.lane(row) == 0
        row = parents[row]
    drawn = list(pictures(found, 0, len(parents)))
    assert [each.current for each in drawn] == list(found.on_path)
    middle = len(parents) // 2
    assert drawn == [*pictures(found, 0, middle), *pictures(found, middle, len(parents))]


@st.composite
def histories(draw: st.DrawFn) -> list[SegmentRead]:
    """Runs that went on, went back, started anew and were undone, at random."""
    number = 0
    segments: list[tuple[ForkPoint | None, list[Record]]] = []
    seen: list[int] = []
    for segment in range(draw(st.integers(1, 5))):
        fork: ForkPoint | None = None
        if segment and seen:
            kind = draw(st.sampled_from(["rewind", "undo", "anew", "whole"]))
            back = draw(st.integers(0, segment - 1))
            fork = {
                "rewind": records.fork_at(draw(st.sampled_from(seen)), segment=back),
                "undo": records.fork_at(draw(st.sampled_from(seen)), segment=back, inclusive=True),
                "anew": None,
                "whole": records.fork_at(None, segment=back),
            }[kind]
        made: list[Record] = []
        for _ in range(draw(st.integers(0, 5))):
            number += 1
            made.append(records.started(number))
            if draw(st.booleans()):
                made.append(records.llm(number))
                seen.append(number)
            else:
                made += [records.tool(number), records.submission(number)]
        made.append(records.finished("stopped"))
        segments.append((fork, made))
    return [
        SegmentRead(
            segment=place,
            header=records.header(place, fork=fork),
            records=tuple(enumerate(made, start=1)),
            damages=(),
        )
        for place, (fork, made) in enumerate(segments)
    ]


@given(histories())
def test_what_is_shown_as_current_is_the_current_path(reads: list[SegmentRead]) -> None:
    timeline = Timeline(reads)
    rows = rows_of(reads, timeline)
    shown = {row.key: rows.layout.on_path[row.index] for row in rows.all if row.node is not None}
    assert shown == {uid: timeline.on_path(uid) for uid in timeline.nodes}
    assert [row.key for row in rows.all if row.is_llm and row.node] == [
        uid for uid, node in sorted(timeline.nodes.items()) if isinstance(node, LlmNode)
    ]
    assert len({row.key for row in rows.all}) == len(rows.all)
    ticks = overview_of(rows).ticks
    assert all(one.x + one.width <= other.x for one, other in pairwise(ticks))
    assert all(row.entry.sort is not Sort.TROUBLE for row in rows.all)
