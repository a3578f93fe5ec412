"""The segments of a run folded into one tree of nodes, and what can be asked of it."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from types import MappingProxyType
from typing import TypeVar

from agentrewind.errors import DamagedError, UnknownNodeError
from agentrewind.fold import fold_snapshots, lost_nodes, partial_before
from agentrewind.journal import SegmentRead
from agentrewind.lineage import (
    Segment,
    Stretch,
    drop_repeated,
    homes,
    missing_segment,
    sort_segment,
    stretches,
    uid_number,
    uid_of,
)
from agentrewind.messages import Conversations
from agentrewind.missing_lines import with_missing_lines
from agentrewind.records import (
    AttemptFailed,
    Event,
    Finished,
    ForkPoint,
    Header,
    JsonObject,
    LlmNode,
    Node,
    Note,
    Record,
    RecordUid,
    Resumed,
    RewindAsked,
    RewindDone,
    RunId,
    SnapshotTaken,
    Started,
    Submission,
    ToolNode,
)
from agentrewind.salvage import Damage

INTERRUPTED = "interrupted"

_E = TypeVar("_E", bound=Event)

_ACTIVITY = (LlmNode, ToolNode, Started, AttemptFailed, Submission, RewindAsked, RewindDone, Resumed)
"""Records after which the agent has gone on, so that an earlier end no longer counts."""


class Timeline:
    """All that a run's segments hold, at one moment; built once, never changed.

    Where a method takes a segment, None means the current one (`head`).
    """

    def __init__(self, reads: Sequence[SegmentRead]) -> None:
        if not reads:
            raise DamagedError("the run has no segments; its folder is empty")
        by_number = {read.segment: read for read in reads}
        self.head: int = max(by_number)
        self.segments: tuple[int, ...] = tuple(range(self.head + 1))
        whole = with_missing_lines([by_number.get(n) or missing_segment(n) for n in self.segments])
        sorted_segments = [sort_segment(each) for each in whole]
        self._segments: tuple[Segment, ...] = drop_repeated(sorted_segments)
        self.damages: tuple[Damage, ...] = tuple(
            damage for segment in self._segments for damage in segment.damages
        )
        self._homes = homes(self._segments)
        self._recorded = {node.record_uid: node for segment in self._segments for node in segment.nodes}
        snapshots = self._every(SnapshotTaken)
        self.nodes: Mapping[RecordUid, Node] = MappingProxyType(fold_snapshots(self._recorded, snapshots))
        self._snapshots: dict[RecordUid, list[SnapshotTaken]] = {}
        for event in snapshots:
            self._snapshots.setdefault(event.record_uid, []).append(event)
        self._asked = self._rewinds_by_segment()
        self._forks = {number: fork for number in self.segments if (fork := self._fork(number)) is not None}
        self._conversations = Conversations(self.nodes)
        self._paths: dict[int, tuple[Node, ...]] = {}

    # --- headers, nodes, events ---

    @cached_property
    def header(self) -> Header:
        """The header of the first segment that has one; raises DamagedError where none has."""
        for segment in self._segments:
            if segment.header is not None:
                return segment.header
        raise DamagedError("no segment of the run has a readable header")

    @cached_property
    def headers(self) -> Mapping[int, Header]:
        """One for every segment; a damaged one is filled in from what the rest of the run says of it."""
        first = self.header
        return MappingProxyType(
            {
                number: segment.header or replace(first, segment=number, forked_from=self._forks.get(number))
                for number, segment in enumerate(self._segments)
            }
        )

    def header_of(self, segment: int) -> Header | None:
        """The header of this segment, None where it is damaged."""
        return self._segment(segment).header

    def node(self, uid: str) -> Node:
        """The node of this id; raises UnknownNodeError with the nearest ids."""
        found = self.nodes.get(RecordUid(uid))
        if found is None:
            raise UnknownNodeError(uid, difflib.get_close_matches(uid, self.nodes, n=3))
        return found

    def segment_of(self, uid: RecordUid) -> int:
        """The segment in which this node was recorded, or at least begun."""
        if uid not in self._homes:
            raise UnknownNodeError(uid, difflib.get_close_matches(uid, self._homes, n=3))
        return self._homes[uid]

    def own_nodes(self, segment: int | None = None) -> tuple[Node, ...]:
        """The nodes that a segment itself holds, in the order in which their calls began."""
        return tuple(self.nodes[node.record_uid] for node in self._segment(segment).nodes)

    def events(self, segment: int | None = None) -> tuple[Event, ...]:
        """The events of a segment in the order in which they were written."""
        return self._segment(segment).events

    def records(self, segment: int | None = None) -> tuple[Record, ...]:
        """Nodes and events of a segment as written, without anything folded in."""
        return self._segment(segment).records

    def messages(self, uid: RecordUid) -> tuple[JsonObject, ...]:
        """The full message list that LLM node `uid` sent.

        Raises DamagedError naming the node whose messages it would need and that is missing.
        """
        return self._conversations.messages(uid)

    # --- the path ---

    def path(self, segment: int | None = None) -> tuple[Node, ...]:
        """The nodes from the start of the run to the end of the segment, across fork points."""
        number = self.head if segment is None else segment
        if number not in self._paths:
            found = self._stretches(Stretch(segment=self._segment(number)))
            self._paths[number] = tuple(
                self.nodes[node.record_uid] for stretch in found for node in stretch.nodes()
            )
        return self._paths[number]

    def on_path(self, uid: RecordUid) -> bool:
        """Whether the node lies on the current path."""
        return uid in self._on_path

    def gaps(self, *, until: RecordUid | None = None, segment: int | None = None) -> tuple[Damage, ...]:
        """The damages on a path in which a record may have been lost, oldest first.

        With `until` only those before that node; a rewind to it or a replay up to it must be
        refused unless there are none.
        """
        last = Stretch(segment=self._segment(segment))
        if until is not None:
            last = Stretch(segment=self._segment(self.segment_of(until)), limit=until)
        return tuple(damage for stretch in self._stretches(last) for damage in stretch.lost())

    def gap_on_path(self, *, until: RecordUid | None = None) -> Damage | None:
        """The first of `gaps`, None where the path is whole."""
        found = self.gaps(until=until)
        return found[0] if found else None

    def checkpoints(self) -> tuple[LlmNode, ...]:
        """The LLM nodes of the current path with a whole snapshot of every workspace before them."""
        return tuple(
            node for node in self.path() if isinstance(node, LlmNode) and self.is_checkpoint(node.record_uid)
        )

    def is_checkpoint(self, uid: RecordUid) -> bool:
        """Whether the node is an LLM call with a whole snapshot of every workspace before it."""
        node = self._recorded.get(uid)
        if not isinstance(node, LlmNode) or uid in self._lost:
            return False
        return not partial_before(node, self._snapshots.get(uid, ()))

    def started_unfinished(self, segment: int | None = None) -> tuple[Started, ...]:
        """The calls that a segment began and of which it holds no end, each with its last attempt."""
        begun = {
            event.record_uid: event
            for event in self.events(segment)
            if isinstance(event, Started) and event.record_uid not in self.nodes
        }
        return tuple(begun.values())

    # --- rewinds ---

    def rewinds(self) -> tuple[RewindAsked, ...]:
        """The rewinds that opened a segment, in time order, by agent or person."""
        return tuple(self._asked[number] for number in self.segments if number in self._asked)

    def pending_rewind(self) -> RewindAsked | None:
        """The rewind that was decided and whose segment does not exist yet."""
        waiting = [number for number in self._asked if number > self.head]
        return self._asked[min(waiting)] if waiting else None

    def memories(self, segment: int | None = None) -> tuple[RewindAsked, ...]:
        """The rewinds whose notes are in force in a segment, oldest first.

        Notes add up over the whole run, those left on abandoned branches too. A segment that an
        undo opened has the notes of the branch it returns to; a fresh start has none.
        """
        found: list[RewindAsked] = []
        number = self.head if segment is None else segment
        while (fork := self._forks.get(number)) is not None:
            if fork.inclusive:
                number = fork.segment
                continue
            asked = self._asked.get(number)
            if asked is not None and asked.memory:
                found.append(asked)
            number -= 1
        return tuple(reversed(found))

    # --- the run as a whole ---

    def submissions(self) -> tuple[Submission, ...]:
        """All verdicts of the run in time order, over all segments."""
        return self._every(Submission)

    def last_finished(self) -> Finished | None:
        """The last time the agent ended by itself."""
        found = self._every(Finished)
        return found[-1] if found else None

    def state(self) -> str:
        """`accepted`, `rejected`, `stopped` or `error` as the agent ended, or `interrupted`.

        Interrupted means that nothing tells of an end after the last activity. Whether a process
        is still at work the log cannot know.
        """
        for record in reversed(self._segment(None).records):
            if isinstance(record, Finished):
                return record.state
            if isinstance(record, _ACTIVITY):
                return INTERRUPTED
        return INTERRUPTED

    def next_uid(self) -> RecordUid:
        """The next free id, above every one that was ever given out in this run."""
        used: list[str] = [*self._homes]
        used += [damage.record_uid for damage in self.damages if damage.record_uid is not None]
        return uid_of(1 + max((uid_number(uid) or 0 for uid in used), default=0))

    # --- within ---

    @cached_property
    def _lost(self) -> frozenset[RecordUid]:
        return lost_nodes(self._every(Note))

    @cached_property
    def _on_path(self) -> frozenset[RecordUid]:
        return frozenset(node.record_uid for node in self.path())

    def _segment(self, number: int | None) -> Segment:
        wanted = self.head if number is None else number
        if not 0 <= wanted <= self.head:
            raise DamagedError(f"the run has no segment {wanted}; its last is {self.head}")
        return self._segments[wanted]

    def _every(self, kind: type[_E]) -> tuple[_E, ...]:
        return tuple(
            event for segment in self._segments for event in segment.events if isinstance(event, kind)
        )

    def _stretches(self, last: Stretch) -> tuple[Stretch, ...]:
        return stretches(self._segments, self._homes, self._forks, last=last)

    def _rewinds_by_segment(self) -> dict[int, RewindAsked]:
        """Each rewind under the segment it opens; the first decision counts, as only it was carried out."""
        found: dict[int, RewindAsked] = {}
        for event in self._every(RewindAsked):
            found.setdefault(event.segment, event)
        return found

    def _fork(self, number: int) -> ForkPoint | None:
        """Where the segment leaves an earlier one of this run; None where it starts anew."""
        header = self._segments[number].header
        asked = self._asked.get(number)
        if header is None:
            # the decision that opened the segment says the same as the header that was lost
            if asked is None:
                return None
            run_id = next((each.header.run_id for each in self._segments if each.header), RunId(""))
            return ForkPoint(run_id=run_id, segment=number - 1, record_uid=asked.target)
        point = header.forked_from
        if point is None or point.run_id != header.run_id:
            return None
        if not 0 <= point.segment < number:
            raise DamagedError(
                f"segment {number} claims to have left segment {point.segment}, no earlier one"
            )
        return point
