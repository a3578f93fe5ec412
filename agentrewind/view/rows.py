"""Turns a run into rows: everything that happened, in time order, each with its place in the tree. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

from agentrewind.display_story import Branch, Entry, Sort, Story, story_of
from agentrewind.journal import SegmentRead
from agentrewind.lineage import uid_number
from agentrewind.records import (
    AttemptFailed,
    Event,
    ForkPoint,
    Node,
    RecordUid,
    RewindAsked,
    RewindDone,
    Started,
)
from agentrewind.timeline import Timeline
from agentrewind.view.lanes import ROOT, Layout, lay_out

_NOTE = re.compile(r"^\[\d+\] .*", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One thing that happened.

    Attributes:
        key: names it in addresses: a node's id, or `~SEGMENT.NUMBER` for anything else.
        node: None while the call has no end, and for what is no node.
        event: the record of what is no node.
        at: moment as ISO 8601 text; empty where nothing tells.
        offset_s: seconds since the run began.
    """

    index: int
    key: str
    segment: int
    entry: Entry
    node: Node | None
    at: str
    offset_s: float | None

    @property
    def event(self) -> Event | None:
        return self.entry.event

    @property
    def uid(self) -> RecordUid | None:
        """The node's id; a call under way has one as well."""
        return self.entry.uid if self.entry.sort in (Sort.ANSWER, Sort.CALL) else None

    @property
    def number(self) -> str:
        """The node's number, for lists; empty for what is no node or has an id of another kind."""
        number = uid_number(self.uid) if self.uid else None
        return "" if number is None else str(number)

    @property
    def line(self) -> str:
        """What it says in a list: of a memory message the newest note, of all else the text."""
        notes = _NOTE.findall(self.entry.text) if self.entry.sort is Sort.MEMORY else ()
        return notes[-1] if notes else self.entry.text

    @property
    def is_llm(self) -> bool:
        return self.entry.sort is Sort.ANSWER

    @property
    def latency_ms(self) -> int | None:
        return None if self.node is None else self.node.metadata.latency_ms


class Rows:
    """All rows of a run and how they hang together."""

    def __init__(self, rows: tuple[Row, ...], parents: tuple[int, ...], head: int) -> None:
        self.all = rows
        self.parents = parents
        self.head = head
        self.by_key: Mapping[str, int] = {row.key: row.index for row in reversed(rows)}

    @cached_property
    def layout(self) -> Layout:
        """Their lanes."""
        return lay_out(self.parents, self.head)

    @cached_property
    def rewinds(self) -> tuple[tuple[int, int], ...]:
        """For each rewind the row at which it arrived and the row of its target."""
        found = []
        for row in self.all:
            if isinstance(row.event, RewindDone) and row.entry.sort is Sort.REWIND:
                target = self.by_key.get(row.event.target)
                if target is not None:
                    found.append((row.index, target))
        return tuple(found)

    def find(self, key: str) -> Row | None:
        """The row of this key."""
        index = self.by_key.get(key)
        return None if index is None else self.all[index]

    def of_rewind(self, segment: int) -> Row | None:
        """The row that tells of the decision to open this segment by a rewind."""
        for row in self.all:
            if isinstance(row.event, RewindAsked) and row.event.segment == segment:
                return row
        return None

    def below(self, row: Row) -> Iterator[Row]:
        """The tool calls that an answer asked for, in the order in which they began."""
        for other in self.all[row.index + 1 :]:
            if other.segment != row.segment or other.is_llm:
                return
            if other.node is not None and getattr(other.node, "parent", None) == row.key:
                yield other


def rows_of(reads: Iterable[SegmentRead], timeline: Timeline) -> Rows:
    """The rows of a run; gaps that damage left are rows too."""
    reads = tuple(reads)
    story = story_of(reads)
    begun = _begun(timeline)
    origin = _moment(_created(timeline))
    rows: list[Row] = []
    places: dict[int, list[int]] = {}
    for segment in sorted(story.branches):
        places[segment] = []
        for number, entry in enumerate(story.branches[segment].entries):
            places[segment].append(len(rows))
            rows.append(_row(timeline, entry, segment, (len(rows), number), begun, origin))
    parents = tuple(_parents(story, places))
    return Rows(tuple(rows), parents, _head(story, places))


def _row(
    timeline: Timeline,
    entry: Entry,
    segment: int,
    place: tuple[int, int],
    begun: Mapping[RecordUid, str],
    origin: datetime | None,
) -> Row:
    index, number = place
    is_node = entry.uid is not None and entry.sort in (Sort.ANSWER, Sort.CALL)
    node = timeline.nodes.get(entry.uid) if is_node and entry.uid is not None else None
    at = (node.metadata.created_at if node else begun.get(entry.uid, "")) if is_node and entry.uid else ""
    if entry.event is not None:
        at = entry.event.at
    moment = _moment(at)
    return Row(
        index=index,
        key=entry.uid if is_node and entry.uid else f"~{segment}.{number}",
        segment=segment,
        entry=entry,
        node=node,
        at=at,
        offset_s=None if moment is None or origin is None else (moment - origin).total_seconds(),
    )


def _begun(timeline: Timeline) -> dict[RecordUid, str]:
    return {
        event.record_uid: event.at
        for segment in timeline.segments
        for event in timeline.events(segment)
        if isinstance(event, Started | AttemptFailed)
    }


def _created(timeline: Timeline) -> str:
    header = next((h for n in timeline.segments if (h := timeline.header_of(n)) is not None), None)
    return header.created_at if header else ""


def _moment(text: str) -> datetime | None:
    try:
        found = datetime.fromisoformat(text)
    except (TypeError, ValueError):
        return None
    return found if found.tzinfo is not None else None


def _parents(story: Story, places: Mapping[int, list[int]]) -> Iterator[int]:
    for segment, rows in places.items():
        before = _attached(story, places, segment)
        for row in rows:
            yield before
            before = row


def _attached(story: Story, places: Mapping[int, list[int]], segment: int) -> int:
    """The last row that a segment has kept of earlier ones."""
    seen = {segment}
    fork = story.branches[segment].fork
    while fork is not None:
        home = story.home.get(fork.record_uid, fork.segment) if fork.record_uid else fork.segment
        branch = story.branches.get(home)
        if branch is None or home in seen or home > segment:
            return ROOT
        kept = _kept(branch, fork)
        if kept:
            return places[home][kept - 1]
        seen.add(home)
        fork = branch.fork
    return ROOT


def _kept(branch: Branch, fork: ForkPoint) -> int:
    """How many of a branch's entries come before a fork."""
    if fork.record_uid is None:
        return 0
    for number, entry in enumerate(branch.entries):
        if entry.uid == fork.record_uid and entry.sort in (Sort.ANSWER, Sort.CALL):
            return number + 1 if fork.inclusive else number
    return len(branch.entries)


def _head(story: Story, places: Mapping[int, list[int]]) -> int:
    if not places:
        return ROOT
    last = max(places)
    return places[last][-1] if places[last] else _attached(story, places, last)
