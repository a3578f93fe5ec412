"""Finds lines of a log that are gone without a trace of damage, by what the rest of the run says of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from agentrewind.journal import SegmentRead
from agentrewind.lineage import uid_number, uid_of
from agentrewind.records import (
    LlmNode,
    OutsideChange,
    Record,
    RecordUid,
    RewindAsked,
    SnapshotTaken,
    Started,
    ToolNode,
)
from agentrewind.salvage import Damage

_Place = tuple[int, int]
"""A segment, and a byte in it."""


@dataclass(slots=True)
class _Known:
    """What all segments together speak of.

    Attributes:
        nodes: each node with the place of its line.
        begun: where each call is first spoken of, by itself or by its `started`.
        lost: places where damage may hide a line; `hurt`: ids that damage still shows.
    """

    nodes: dict[RecordUid, LlmNode | ToolNode] = field(default_factory=dict)
    begun: dict[RecordUid, _Place] = field(default_factory=dict)
    lost: list[_Place] = field(default_factory=list)
    hurt: set[RecordUid] = field(default_factory=set)

    def explained(self, after: _Place, before: _Place) -> bool:
        """Whether damage that has been found already may be all that is missing between two places."""
        return any(after <= place <= before for place in self.lost)


def with_missing_lines(reads: Sequence[SegmentRead]) -> tuple[SegmentRead, ...]:
    """The segments, in order, with a damage for each line, or row of lines, that must have stood there.

    A line counts as missing where its node's number was left out, and where a record speaks of a node that
    the run does not hold; a message list that is built on no earlier LLM call is damage as well. What
    damaged bytes may explain is not said again. A line that nothing else speaks of cannot be missed: an
    event, or the end of the last segment.
    """
    known = _known(reads)
    found: dict[int, list[Damage]] = {}
    for damage in (*_left_out(known), *_spoken_of(reads, known), *_baseless(known)):
        found.setdefault(damage.segment, []).append(damage)
    return tuple(replace(read, damages=(*read.damages, *found.get(read.segment, ()))) for read in reads)


def _known(reads: Sequence[SegmentRead]) -> _Known:
    known = _Known()
    for read in reads:
        for damage in read.damages:
            if damage.lost:
                known.lost.append((read.segment, damage.offset))
            if damage.record_uid is not None:
                known.hurt.add(damage.record_uid)
        for offset, record in read.records:
            if isinstance(record, (LlmNode, ToolNode)):
                known.nodes.setdefault(record.record_uid, record)
            if isinstance(record, (LlmNode, ToolNode, Started)):
                known.begun.setdefault(record.record_uid, (read.segment, offset))
    return known


def _left_out(known: _Known) -> Iterator[Damage]:
    """The numbers between those that were given out."""
    numbers = {number: uid for uid in known.begun if (number := uid_number(uid)) is not None}
    hurt = {uid_number(uid) for uid in known.hurt}
    last, place = 0, (0, 0)
    for number in sorted(numbers):
        segment, offset = known.begun[numbers[number]]
        if number > last + 1 and not known.explained(place, (segment, offset)):
            first = next((each for each in range(last + 1, number) if each not in hurt), number)
            if first < number:
                yield _before(
                    segment, offset, f"{_range(first, number - 1)} missing: no line holds what was recorded"
                )
        last, place = number, (segment, offset)


def _range(first: int, last: int) -> str:
    return f"{uid_of(first)} is" if first == last else f"{uid_of(first)} to {uid_of(last)} are"


def _spoken_of(reads: Sequence[SegmentRead], known: _Known) -> Iterator[Damage]:
    """Nodes that others speak of as having ended, each once."""
    given = [number for uid in known.begun if (number := uid_number(uid)) is not None]
    highest = max(given, default=0)
    told = set(known.hurt)
    decided = {
        record.segment for read in reads for _, record in read.records if isinstance(record, RewindAsked)
    }
    for read in reads:
        yield from _undecided(read, decided, known)
        for offset, record in read.records:
            uid, witness = _mentioned(record)
            here = (read.segment, offset)
            if uid is None or uid in known.nodes or uid in told or known.explained((0, 0), here):
                continue
            told.add(uid)
            reason = f"{witness} {uid}, whose line is gone"
            if uid in known.begun:
                segment, begun = known.begun[uid]
                yield Damage(segment=segment, offset=begun, length=0, reason=reason, record_uid=uid)
            elif (uid_number(uid) or 0) > highest:
                yield _before(*here, reason)


def _undecided(read: SegmentRead, decided: set[int], known: _Known) -> Iterator[Damage]:
    fork = None if read.header is None else read.header.forked_from
    if fork is None or read.header is None or fork.run_id != read.header.run_id:
        return
    of_a_rewind = fork.record_uid is not None and not fork.inclusive
    if of_a_rewind and read.segment not in decided and not known.explained((0, 0), (read.segment, 0)):
        reason = f"no line tells of the decision to go back to {fork.record_uid}"
        yield Damage(segment=read.segment, offset=0, length=0, reason=reason)


def _mentioned(record: Record) -> tuple[RecordUid | None, str]:
    """The node that must have ended when this record was written, and what is said of it."""
    match record:
        case SnapshotTaken():
            return record.record_uid, "there is a snapshot after"
        case OutsideChange():
            return record.after, "files changed after"
        case LlmNode():
            return record.messages.base, f"the messages of {record.record_uid} begin with those of"
        case ToolNode():
            return record.parent, f"{record.record_uid} was asked for by"
        case RewindAsked():
            return record.target, "it was decided to go back to"
        case _:
            return None, ""


def _baseless(known: _Known) -> Iterator[Damage]:
    """Message lists that nobody can put together although each line is whole."""
    lengths: dict[RecordUid, int] = {}
    for uid, node in sorted(known.nodes.items(), key=lambda item: (uid_number(item[0]) or 0, item[0])):
        if not isinstance(node, LlmNode):
            continue
        fault = _fault(node, known.nodes, lengths)
        if fault is None:
            continue
        segment, offset = known.begun[uid]
        yield _before(segment, offset, f"the messages of {uid} cannot be put together: {fault}")


def _fault(
    node: LlmNode, nodes: Mapping[RecordUid, LlmNode | ToolNode], lengths: dict[RecordUid, int]
) -> str | None:
    """What is wrong with the list; the length of one that is right is noted."""
    base, keep = node.messages.base, node.messages.keep
    own, below = uid_number(node.record_uid), None if base is None else uid_number(base)
    if base is None:
        length = 0
    elif isinstance(nodes.get(base), ToolNode):
        return f"{base} is a tool call and has no messages"
    elif own is not None and below is not None and below >= own:
        return f"{base} is no earlier call"
    elif base not in lengths:
        return None  # what is wrong with the base has been said, or it is missing
    else:
        length = lengths[base]
    if not 0 <= keep <= length:
        return f"it keeps {keep} of {base or 'no node'}, which has {length}"
    lengths[node.record_uid] = keep + len(node.messages.append)
    return None


def _before(segment: int, offset: int, reason: str) -> Damage:
    """A loss in front of the record at `offset`, so that it counts for a path that ends there."""
    return Damage(segment=segment, offset=max(0, offset - 1), length=0, reason=reason)
