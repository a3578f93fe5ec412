"""Reads out of a log what a person's restore needs: states, moves, and changes from outside. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

from agentrewind.backup.rewinding import safeties
from agentrewind.errors import DamagedError
from agentrewind.provenance import refuse_trajectory
from agentrewind.records import (
    MAIN_WORKSPACE,
    CommitId,
    LlmNode,
    Node,
    OutsideChange,
    Record,
    RecordUid,
    Restored,
    RewindDone,
    SafetySnapshot,
    SnapshotTaken,
    Started,
    ToolNode,
    WorkspaceSpan,
)
from agentrewind.timeline import Timeline

STATE = "state"
"""In the report of a restore: the snapshot of what it left, where that is not the one that it restored."""

Step: TypeAlias = tuple[CommitId, CommitId]
"""Two snapshots between which only somebody outside changed anything."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """A rewind or a restore: what `undo` takes back.

    Attributes:
        what: names it for people.
        safety: the state just before it, None where the log does not tell.
        left: the segment that was current before, where the move opened a new one; None for a restore.
        outside: changes from outside since.
        external: the entries by which what it did outside the workspace can be undone.
    """

    what: str
    safety: CommitId | None
    left: int | None = None
    outside: tuple[Step, ...] = ()
    external: tuple[str, ...] = ()


def state_at(timeline: Timeline, node: str, *, after: bool) -> CommitId:
    """The snapshot before a node, or after it.

    Raises:
        UnknownNodeError: the run has no such node.
        DamagedError: there is none, or it lacks paths; the message says which and why.
    """
    found = timeline.node(node)
    moment = "after" if after else "before"
    commit, partial = (after_of if after else before_of)(timeline, found)
    if commit is None:
        refuse_trajectory(timeline)
        raise DamagedError(
            f"there is no snapshot {moment} {node}: the process died before it was taken; choose another node"
        )
    if partial:
        shown = ", ".join(partial[:5]) + (" …" if len(partial) > 5 else "")
        raise DamagedError(
            f"the snapshot {moment} {node} is not whole: {shown}; choose a node whose snapshot is"
        )
    return commit


def last_recorded(timeline: Timeline) -> CommitId | None:
    """The state that the log names last, in time; None where a call or a restore was cut short after it.

    What such a call or restore changed cannot be told from changes from outside, and is taken for its own.
    """
    return _OutsideHistory(timeline).settled_state


def outside_since(timeline: Timeline, uid: RecordUid) -> tuple[Step, ...]:
    """The changes from outside that the files hold now and did not hold before this node.

    Those that a rewind or restore took away are none of them; where `undo` brought them back, they are.
    """
    history = _OutsideHistory(timeline, until=uid)
    return tuple(step for step in history.present if step not in history.then)


class _OutsideHistory:
    """Reads a log in time and keeps account of which changes from outside the files hold at each moment.

    Attributes:
        present: those that the files hold at the end.
        then: those that they held when the node `until` was made.
    """

    def __init__(self, timeline: Timeline, *, until: RecordUid | None = None) -> None:
        self.present: tuple[Step, ...] = ()
        self.then: tuple[Step, ...] = ()
        self._timeline = timeline
        self._at: dict[CommitId, tuple[Step, ...]] = {}
        self._last: CommitId | None = None
        self._safety: CommitId | None = None
        self._calls: set[RecordUid] = set()
        self._unseen = False
        for number in timeline.segments:
            self._calls.clear()
            self._safety, self._unseen = None, False
            for record in timeline.records(number):
                self._add(record)
                if isinstance(record, LlmNode | ToolNode) and record.record_uid == until:
                    self.then = self.present

    @property
    def settled_state(self) -> CommitId | None:
        """The state named last, None where a call or a restore may have changed it and nobody has looked."""
        return None if self._calls or self._unseen or self._safety is not None else self._last

    def _add(self, record: Record) -> None:
        commit = _named(record)
        more = self._brought_by(record, commit)
        self.present += more
        if commit is not None:
            if isinstance(record, Restored | RewindDone):
                self.present = self._at.get(commit, self.present)
            if isinstance(record, Restored) and (left := left_by(record)) != commit:
                more = ((commit, left),)
                self.present += more
                commit = left
            if more or commit not in self._at:
                self._at[commit] = self.present
            self._last = commit
        self._safety = _next_safety(self._safety, record)
        self._follow_calls(record)

    def _follow_calls(self, record: Record) -> None:
        match record:
            case Started(tool_name=str()):
                self._calls.add(record.record_uid)
            case ToolNode():
                self._calls.discard(record.record_uid)
                self._unseen = True
            case Restored():
                self._calls.clear()  # whatever was left of them, files were put in order since
                self._unseen = False
            case SnapshotTaken() | OutsideChange() | SafetySnapshot() | LlmNode():
                self._unseen = False
            case _:
                pass

    def _brought_by(self, record: Record, commit: CommitId | None) -> tuple[Step, ...]:
        if isinstance(record, OutsideChange):
            return _steps(record) if _stands(self._timeline, record) else ()
        before = self.settled_state
        if not isinstance(record, SafetySnapshot) or before is None or commit in (None, before):
            return ()
        assert commit is not None
        return ((before, commit),)


def last_move(timeline: Timeline) -> Move | None:
    """The last rewind, restore or undo, in time; one that was interrupted counts."""
    found: Move | None = None
    safety: CommitId | None = None
    for number in timeline.segments:
        opened = _opened(timeline, number, safety)
        found, safety = opened or found, None
        for record in timeline.records(number):
            if isinstance(record, Restored) and (safety is not None or opened is None):
                found = Move(what=_restore_name(record), safety=safety, external=safeties(record.report))
            elif isinstance(record, OutsideChange) and found is not None:
                found = replace(found, outside=found.outside + _steps(record))
            safety = _next_safety(safety, record)
    return Move(what="the interrupted restore", safety=safety) if safety is not None else found


def _next_safety(safety: CommitId | None, record: Record) -> CommitId | None:
    """The first one since the last restore or call counts: a restore begun again finds files half moved."""
    if isinstance(record, SafetySnapshot) and record.segment is None:
        return safety or _commit(record.workspaces.get(MAIN_WORKSPACE))
    return None if isinstance(record, Restored | LlmNode | ToolNode) else safety


def _opened(timeline: Timeline, number: int, undo_safety: CommitId | None) -> Move | None:
    """The move that opened a segment, if one did."""
    fork = timeline.headers[number].forked_from
    if number == 0 or fork is None or fork.run_id != timeline.header.run_id:
        return None
    wanted = Restored if fork.inclusive else RewindDone
    done = next((event for event in timeline.events(number) if isinstance(event, wanted)), None)
    external = safeties(done.report) if isinstance(done, Restored | RewindDone) else ()
    if fork.inclusive:
        return Move(what="the undo", safety=undo_safety, left=number - 1, external=external)
    safety: CommitId | None = None
    for event in timeline.events(number - 1):
        if isinstance(event, SafetySnapshot) and event.segment == number:
            safety = safety or _commit(event.workspaces.get(MAIN_WORKSPACE))
    what = f"the rewind to {fork.record_uid}"
    return Move(what=what, safety=safety, left=number - 1, external=external)


def _restore_name(event: Restored) -> str:
    by = "the undo" if event.by == "undo" else f"the restore by the {event.by}"
    return f"{by} to {event.record_uid}" if event.record_uid else by


def left_by(event: Restored) -> CommitId:
    """The state of the workspace after a restore: what it kept may make that another one than it restored."""
    state = event.report.get(STATE)
    return CommitId(state) if isinstance(state, str) else event.commit


def _stands(timeline: Timeline, event: OutsideChange) -> bool:
    return event.after is None or timeline.on_path(event.after)


def _steps(event: OutsideChange) -> tuple[Step, ...]:
    return tuple(
        (span.before_commit, span.after_commit)
        for name, span in event.workspaces.items()
        if name == MAIN_WORKSPACE and span.before_commit is not None and span.after_commit is not None
    )


def before_of(timeline: Timeline, node: Node) -> tuple[CommitId | None, tuple[str, ...]]:
    """As the node's own line says; a later event counts only where the line had no snapshot yet."""
    own = _as_written(timeline, node).metadata.workspaces.get(MAIN_WORKSPACE)
    if own is not None and own.before_commit is not None:
        return own.before_commit, own.partial
    for span in _later_spans(timeline, node):
        if span.before_commit is not None:
            return span.before_commit, span.partial
    return None, ()


def after_of(timeline: Timeline, node: Node) -> tuple[CommitId | None, tuple[str, ...]]:
    spans = [span for span in _later_spans(timeline, node) if span.after_commit is not None]
    return (spans[-1].after_commit, spans[-1].partial) if spans else (None, ())


def _as_written(timeline: Timeline, node: Node) -> Node:
    for record in timeline.records(timeline.segment_of(node.record_uid)):
        if isinstance(record, LlmNode | ToolNode) and record.record_uid == node.record_uid:
            return record
    return node


def _later_spans(timeline: Timeline, node: Node) -> Iterator[WorkspaceSpan]:
    for number in timeline.segments:
        for event in timeline.events(number):
            if isinstance(event, SnapshotTaken) and event.record_uid == node.record_uid:
                yield from (span for name, span in event.workspaces.items() if name == MAIN_WORKSPACE)


def _named(record: Record) -> CommitId | None:
    """The state of the workspace at the moment of this record, where it tells of one."""
    match record:
        case LlmNode() | ToolNode():
            return _commit(record.metadata.workspaces.get(MAIN_WORKSPACE))
        case SnapshotTaken() | OutsideChange() | SafetySnapshot():
            return _commit(record.workspaces.get(MAIN_WORKSPACE))
        case Restored():
            return record.commit
        case RewindDone(report=report):
            # without `environment` the files did move
            commit = None if "environment" in report else report.get("commit")
            return CommitId(commit) if isinstance(commit, str) else None
        case _:
            return None


def _commit(span: WorkspaceSpan | None) -> CommitId | None:
    return None if span is None else span.after_commit or span.before_commit
