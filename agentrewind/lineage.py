"""Which stretches of which segments make up a path."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from agentrewind.journal import SegmentRead
from agentrewind.records import Event, ForkPoint, Header, LlmNode, Node, Record, RecordUid, Started, ToolNode
from agentrewind.salvage import Damage

_UID = re.compile(r"rec_(\d+)")


def uid_number(uid: str) -> int | None:
    """The number in `rec_000012`; None for ids that were made elsewhere."""
    match = _UID.fullmatch(uid)
    return int(match[1]) if match else None


def uid_of(number: int) -> RecordUid:
    return RecordUid(f"rec_{number:06d}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """One segment, sorted: nodes by the order in which their calls began, events as they were written.

    `offsets` tells where each node is first spoken of.
    """

    number: int
    header: Header | None
    nodes: tuple[Node, ...]
    events: tuple[Event, ...]
    records: tuple[Record, ...]
    offsets: Mapping[RecordUid, int]
    damages: tuple[Damage, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """The part of a segment that lies on a path: all of it, or what is before (or up to) a node."""

    segment: Segment
    limit: RecordUid | None = None
    inclusive: bool = False

    def nodes(self) -> tuple[Node, ...]:
        return tuple(node for node in self.segment.nodes if self._holds(node.record_uid))

    def lost(self) -> tuple[Damage, ...]:
        """The damages in this part in which a record may have been lost."""
        if not any(damage.lost for damage in self.segment.damages):
            return ()
        beyond = [offset for uid, offset in self.segment.offsets.items() if not self._holds(uid)]
        end = min(beyond, default=None)
        return tuple(
            damage
            for damage in self.segment.damages
            if damage.lost
            and (end is None or damage.offset < end)
            # the lost line may have been the first to speak of the very node that is left out
            and (damage.record_uid is None or damage.record_uid != self.limit or self.inclusive)
        )

    def _holds(self, uid: RecordUid) -> bool:
        if self.limit is None:
            return True
        if uid == self.limit:
            return self.inclusive
        number, limit = uid_number(uid), uid_number(self.limit)
        if number is not None and limit is not None:
            return number < limit
        offsets = self.segment.offsets
        return self.limit not in offsets or offsets.get(uid, 0) < offsets[self.limit]


def sort_segment(read: SegmentRead) -> Segment:
    nodes: list[Node] = []
    events: list[Event] = []
    offsets: dict[RecordUid, int] = {}
    for offset, record in read.records:
        if isinstance(record, (LlmNode, ToolNode)):
            nodes.append(record)
            offsets.setdefault(record.record_uid, offset)
        elif not isinstance(record, Header):
            events.append(record)
            if isinstance(record, Started):
                offsets.setdefault(record.record_uid, offset)
    # calls that ran side by side end in any order, but each began in the order of its id
    nodes.sort(key=lambda node: uid_number(node.record_uid) or 0)
    return Segment(
        number=read.segment,
        header=read.header,
        nodes=tuple(nodes),
        events=tuple(events),
        records=tuple(record for _, record in read.records),
        offsets=offsets,
        damages=read.damages,
    )


def drop_repeated(segments: Sequence[Segment]) -> tuple[Segment, ...]:
    """The segments without nodes that an earlier segment holds already, each named as damage instead."""
    seen: set[RecordUid] = set()
    kept: list[Segment] = []
    for segment in segments:
        again = [node.record_uid for node in segment.nodes if node.record_uid in seen]
        seen.update(node.record_uid for node in segment.nodes)
        damages = tuple(
            Damage(
                segment=segment.number,
                offset=segment.offsets[uid],
                length=0,
                reason=f"{uid} was recorded in an earlier segment",
                lost=False,
                record_uid=uid,
            )
            for uid in again
        )
        nodes = tuple(node for node in segment.nodes if node.record_uid not in again)
        kept.append(replace(segment, nodes=nodes, damages=segment.damages + damages))
    return tuple(kept)


def homes(segments: Sequence[Segment]) -> dict[RecordUid, int]:
    """The segment in which each node was recorded, or at least begun."""
    begun = {uid: segment.number for segment in reversed(segments) for uid in segment.offsets}
    return begun | {node.record_uid: segment.number for segment in segments for node in segment.nodes}


def missing_segment(number: int) -> SegmentRead:
    """What stands for a segment whose file is gone."""
    damage = Damage(segment=number, offset=0, length=0, reason="the segment is missing")
    return SegmentRead(segment=number, header=None, records=(), damages=(damage,))


def stretches(
    segments: Sequence[Segment],
    home: Mapping[RecordUid, int],
    forks: Mapping[int, ForkPoint],
    *,
    last: Stretch,
) -> tuple[Stretch, ...]:
    """The path that ends with `last`, oldest stretch first."""
    return tuple(reversed(list(_back(segments, home, forks, last))))


def _back(
    segments: Sequence[Segment],
    home: Mapping[RecordUid, int],
    forks: Mapping[int, ForkPoint],
    last: Stretch,
) -> Iterator[Stretch]:
    yield last
    current = last.segment.number
    seen = {current}
    while (point := forks.get(current)) is not None:
        if point.record_uid is None:
            current = point.segment
        else:
            # the node may stand in an older segment than the one that was current when it was left
            current = home.get(point.record_uid, point.segment)
            yield Stretch(segment=segments[current], limit=point.record_uid, inclusive=point.inclusive)
        if current in seen:
            return
        seen.add(current)
