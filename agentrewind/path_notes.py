"""The notes of one topic that lie on the current path, across the segments it comes from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from agentrewind.errors import UnknownNodeError
from agentrewind.lineage import uid_number
from agentrewind.records import ForkPoint, LlmNode, Note, Record, Started, ToolNode
from agentrewind.rewind.resume import chain, fork_of
from agentrewind.timeline import Timeline


def notes_on_path(timeline: Timeline, topic: str) -> tuple[Note, ...]:
    """Those written before the path left each segment, oldest segment last."""
    found: list[Note] = []
    limit: ForkPoint | None = None
    for number in chain(timeline, timeline.head):
        if limit is None or _lies_in(timeline, limit, number):
            found += _notes_before(timeline.records(number), limit, topic)
            limit = fork_of(timeline, number)
        else:
            limit = _stricter(limit, fork_of(timeline, number))
    return tuple(found)


def _lies_in(timeline: Timeline, limit: ForkPoint, segment: int) -> bool:
    """The path leaves the segment within its own records, not in what it inherited."""
    if limit.record_uid is None:
        return False
    try:
        return timeline.segment_of(limit.record_uid) >= segment
    except UnknownNodeError:
        return False


def _stricter(limit: ForkPoint, inherited: ForkPoint | None) -> ForkPoint | None:
    """Of two limits the earlier one."""
    if limit.record_uid is None or inherited is None:
        return inherited
    if inherited.record_uid is None:
        return inherited
    ours, theirs = uid_number(limit.record_uid) or 0, uid_number(inherited.record_uid) or 0
    return limit if (ours, limit.inclusive) <= (theirs, inherited.inclusive) else inherited


def _notes_before(records: Sequence[Record], limit: ForkPoint | None, topic: str) -> Iterator[Note]:
    """The notes of a segment up to where the path leaves it."""
    passed = False
    for record in records:
        match record:
            case Started(record_uid=uid) if limit is not None:
                if passed or (uid == limit.record_uid and not limit.inclusive):
                    return
            case LlmNode(record_uid=uid) | ToolNode(record_uid=uid) if limit is not None:
                passed = passed or uid == limit.record_uid
            case Note() if record.topic == topic:
                yield record
            case _:
                continue
