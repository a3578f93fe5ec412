"""Accounts for snapshots that the log names and the store has lost, so that a run goes on without them.

After a power failure the log may name snapshots that had not reached the disk. What the nodes did
is known, what files they left is not: they stay in the path and are no checkpoints any more.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from agentrewind.clock import Clock
from agentrewind.fold import LOST
from agentrewind.records import (
    MAIN_WORKSPACE,
    CommitId,
    LlmNode,
    Node,
    Note,
    Record,
    RecordUid,
    SnapshotTaken,
    WorkspaceSpan,
)
from agentrewind.rewind.resume import ResumePoint
from agentrewind.timeline import Timeline
from agentrewind.workspace.tracker import Workspace


@dataclass(frozen=True, slots=True, kw_only=True)
class Accounted:
    """Where a process begins, with snapshots that are there only, and what the log has to be told."""

    point: ResumePoint
    note: Note | None = None
    taken: tuple[SnapshotTaken, ...] = ()

    @property
    def records(self) -> tuple[Record, ...]:
        return () if self.note is None else (self.note, *self.taken)


def account_for_losses(
    timeline: Timeline, point: ResumePoint, files: Workspace, *, run_id: str, clock: Clock
) -> Accounted:
    """Find out what the store lacks of a run's snapshots. Looks at all of them only once after a loss.

    The files as they are now stand for the state after the last nodes.
    """
    lost = files.lost
    told = [note.data.get("store") for note in _notes(timeline)]
    needed = [commit for _, commit in point.unsettled]
    needed += [] if point.last_commit is None else [point.last_commit]
    if (not lost or lost[-1] in told) and all(map(files.holds, needed)):
        return Accounted(point=point)
    path = timeline.path()
    whole = files.whole([*needed, *_newest_first(path)])
    gone = [node for node in path if (before := _before(node)) is not None and before not in whole]
    note = Note(
        topic=LOST,
        text=_text(path, gone, run_id),
        at=clock.now(),
        data={"nodes": [node.record_uid for node in gone], "store": lost[-1] if lost else None},
    )
    waiting = [(uid, before) for uid, before in point.unsettled if before not in whole]
    taken = files.snapshot(label="after a loss")
    span = WorkspaceSpan(before_commit=None, after_commit=taken.commit, partial=taken.partial)
    kept = tuple(each for each in point.unsettled if each not in waiting)
    last = point.last_commit if point.last_commit in whole else taken.commit
    return Accounted(
        point=replace(point, last_commit=last, unsettled=kept),
        note=note,
        taken=tuple(
            SnapshotTaken(record_uid=uid, workspaces={MAIN_WORKSPACE: span}, at=clock.now())
            for uid, _ in waiting
        ),
    )


def newest_checkpoint(timeline: Timeline, files: Workspace) -> RecordUid | None:
    """The newest checkpoint of the path whose files can be brought back."""
    path = timeline.path()
    whole = files.whole(_newest_first(path))
    return next((node.record_uid for node in reversed(path) if _is_checkpoint(node, whole)), None)


def _text(path: Iterable[Node], gone: list[Node], run_id: str) -> str:
    if not gone:
        return "the store has lost snapshots, none that this run's nodes begin with"
    names = f"{gone[0].record_uid} to {gone[-1].record_uid}" if len(gone) > 1 else gone[0].record_uid
    lost = {node.record_uid for node in gone}
    kept = [node.record_uid for node in path if isinstance(node, LlmNode) and node.record_uid not in lost]
    back = f"`agentrewind restore {run_id} {kept[-1]}` brings back the newest that is whole" if kept else ""
    return (
        f"the snapshots before {names} ({len(gone)} nodes) had not reached the disk and are lost. The run "
        "goes on with the workspace as it is now, where what was written last may be incomplete as well. "
        + (back or "No earlier state is whole")
    )


def _notes(timeline: Timeline) -> Iterator[Note]:
    for number in timeline.segments:
        for event in timeline.events(number):
            if isinstance(event, Note) and event.topic == LOST:
                yield event


def _newest_first(path: Iterable[Node]) -> list[CommitId]:
    found: list[CommitId] = []
    for node in path:
        span = node.metadata.workspaces.get(MAIN_WORKSPACE)
        if span is not None:
            found += [commit for commit in (span.before_commit, span.after_commit) if commit is not None]
    return found[::-1]


def _before(node: Node) -> CommitId | None:
    span = node.metadata.workspaces.get(MAIN_WORKSPACE)
    return span.before_commit if span else None


def _is_checkpoint(node: Node, whole: frozenset[CommitId]) -> bool:
    return isinstance(node, LlmNode) and node.error is None and _before(node) in whole
