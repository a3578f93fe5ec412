"""What a person does to a run from outside: restore the files of a node, and take moves back.

Every restore in place is preceded by a safety snapshot that a ref of its own keeps, and is written down
before and after, so that `undo` finds its way back whatever is killed in between.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from agentrewind.backup.entry_lines import as_external
from agentrewind.backup.rewinding import External
from agentrewind.clock import Clock
from agentrewind.errors import DamagedError, OutsideChangesError, ProtectedError, UsageError
from agentrewind.manual_history import STATE, Move, Step, last_move, last_recorded, outside_since, state_at
from agentrewind.manual_index import is_index, stages_the_same
from agentrewind.opening import Place, opened_workspace, segment_ref
from agentrewind.records import (
    MAIN_WORKSPACE,
    CommitId,
    ForkPoint,
    JsonObject,
    RecordUid,
    Restored,
    SafetySnapshot,
    WorkspaceSpan,
)
from agentrewind.rewind.perform import abandoned, safety_ref
from agentrewind.run_files import copy_of, declared_root, open_snapshots, snapshot_store
from agentrewind.run_store import Run
from agentrewind.timeline import Timeline
from agentrewind.workspace.lock import WorkspaceLock
from agentrewind.workspace.restore import restore_into
from agentrewind.workspace.roots import recorded_root, workspace_directory
from agentrewind.workspace.snapshots import SnapshotStore
from agentrewind.workspace.tracker import Snapshot, Workspace
from agentrewind.workspace.wholeness import Examiner


class Outside(StrEnum):
    """What a restore in place does with changes that no tool call made."""

    STOP = "stop"
    KEEP = "keep"
    REVERT = "revert"


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """Where runs are kept, whose home directory is never a workspace, and what programs are started with."""

    home: Path
    user_home: Path | None
    clock: Clock
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """What a restore did or, on a dry run, would do; `verified` is None where nothing was done.

    `external` tells of each piece of state outside the workspace that later calls changed: what became of
    it, or that it was left as it is. `state` is the workspace afterwards, where `commit` is not.
    """

    commit: CommitId
    created: tuple[str, ...]
    modified: tuple[str, ...]
    deleted: tuple[str, ...]
    kept: tuple[str, ...]
    touched: tuple[str, ...] = ()
    lost_commits: tuple[str, ...] = ()
    outside: tuple[str, ...] = ()
    verified: bool | None = None
    undone: str | None = None
    external: tuple[JsonObject, ...] = ()
    state: CommitId | None = None

    def to_json(self) -> JsonObject:
        """As the commands print it and the log keeps it."""
        return {
            "commit": self.commit,
            "created": list(self.created),
            "modified": list(self.modified),
            "deleted": list(self.deleted),
            "kept": list(self.kept),
            "touched": list(self.touched),
            "lost_commits": list(self.lost_commits),
            "outside": list(self.outside),
            "verified": self.verified,
            "undone": self.undone,
            "external": list(self.external),
        }


def restore_elsewhere(
    run: Run, node: str, *, after: bool, into: Path, dry_run: bool, machine: Machine
) -> Done:
    """Write the state at a node into a directory that is absent or empty, and nothing else.

    Raises:
        ProtectedError: the directory holds something, or lies in the workspace or the store.
        DamagedError: there is no whole snapshot at this node, or it cannot be read.
    """
    timeline = run.timeline()
    commit = state_at(timeline, node, after=after)
    root = declared_root(timeline)
    target = _free_directory(into, forbidden={"the workspace": root, "the store": machine.home.resolve()})
    with open_snapshots(timeline, machine.home) as store:
        if dry_run:
            Examiner(store).examine(commit)
            paths = tuple(entry.path.decode("utf-8", "backslashreplace") for entry in store.entries(commit))
            return Done(commit=commit, created=paths, modified=(), deleted=(), kept=())
        report = restore_into(store, commit, target)
        return _done(commit, report, verified=report.verified)


def restore_in_place(
    run: Run,
    node: str,
    *,
    after: bool,
    outside: Outside,
    dry_run: bool,
    machine: Machine,
    external: bool = False,
) -> Done:
    """Bring the workspace itself to the state at a node; with `external` what lies outside of it, too.

    Raises:
        WorkspaceBusyError: a live run owns the workspace.
        ProtectedError: a rewind waits to be finished.
        OutsideChangesError: changes that no tool call made would be lost, and nothing says what to do.
        DamagedError: there is no whole snapshot at this node, or it cannot be read.
    """
    with _opened(run, machine) as hands:
        timeline = hands.timeline
        commit = state_at(timeline, node, after=after)
        Examiner(hands.store).examine(commit)
        steps = outside_since(timeline, timeline.node(node).record_uid)
        taken = hands.files.snapshot(label="before a restore by a person")
        foreign = hands.foreign(taken.commit, commit, steps)
        keep = _settled(foreign, outside, dry_run=dry_run)
        later = abandoned(timeline, timeline.node(node).record_uid)[1 if after else 0 :]
        if dry_run:
            planned = tuple(hands.external.plan(later))
            lists = hands.files.plan(commit, keep=keep)
            return replace(_done(commit, lists), outside=_texts(foreign), external=planned)
        hands.write_safety(taken)
        report = hands.files.restore(commit, keep=keep)
        done = replace(
            _done(commit, report, verified=report.verified),
            outside=_texts(foreign),
            external=hands.take_back(later) if external else hands.left(later),
        )
        hands.write_restored(timeline.head, done, record_uid=RecordUid(node), by="person")
        return done


def undo(run: Run, *, outside: Outside, machine: Machine) -> Done:
    """Go back to before the last restore or rewind; a second undo takes the first one back.

    Where the move had left a branch, a new segment makes that branch the current one again.

    Raises:
        UsageError: nothing was ever moved.
        and what `restore_in_place` raises.
    """
    with _opened(run, machine) as hands:
        timeline = hands.timeline
        move = last_move(timeline)
        if move is None:
            raise UsageError(f"run {run.run_id} has no restore and no rewind that could be undone")
        if move.safety is None:
            raise DamagedError(f"the log does not tell the state before {move.what}; it cannot be undone")
        Examiner(hands.store).examine(move.safety)
        taken = hands.files.snapshot(label=f"before an undo of {move.what}")
        foreign = hands.foreign(taken.commit, move.safety, move.outside)
        keep = _settled(foreign, outside, dry_run=False)
        opens = timeline.head + 1 if move.left is not None else None
        hands.write_safety(taken)
        report = hands.files.restore(move.safety, keep=keep)
        done = replace(
            _done(move.safety, report, verified=report.verified),
            outside=_texts(foreign),
            undone=move.what,
            external=hands.bring_again(move.external),
        )
        if opens is not None:
            hands.open_segment(move)
        hands.write_restored(timeline.head if opens is None else opens, done, record_uid=None, by="undo")
        return done


class _Lists(Protocol):
    """What a plan and a report have in common."""

    @property
    def created(self) -> tuple[str, ...]: ...
    @property
    def modified(self) -> tuple[str, ...]: ...
    @property
    def deleted(self) -> tuple[str, ...]: ...
    @property
    def kept(self) -> tuple[str, ...]: ...
    @property
    def touched(self) -> tuple[str, ...]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class _Hands:
    """A run and its workspace while a person moves it; the workspace's lock is held."""

    run: Run
    timeline: Timeline
    files: Workspace
    store: SnapshotStore
    clock: Clock
    external: External
    moving: list[CommitId] = field(default_factory=list)
    """The states that were left, once anything was about to move."""

    def take_back(self, nodes: Sequence[RecordUid]) -> tuple[JsonObject, ...]:
        """Bring back what these nodes changed outside the workspace."""
        return tuple(self.external.take_back(nodes, by=f"restore {self.run.run_id} {self.clock.now()}"))

    def bring_again(self, safeties: Sequence[str]) -> tuple[JsonObject, ...]:
        """Undo what a move did outside the workspace."""
        return tuple(self.external.bring_again(safeties, by=f"undo {self.run.run_id} {self.clock.now()}"))

    def left(self, nodes: Sequence[RecordUid]) -> tuple[JsonObject, ...]:
        """What these nodes changed outside the workspace, left as it is."""
        return tuple(as_external(entry) for entry in self.external.entries_of(nodes))

    def foreign(self, present: CommitId, target: CommitId, steps: Collection[Step]) -> frozenset[bytes]:
        """The paths that somebody outside changed, by the log or since, and a restore would revert."""
        last = last_recorded(self.timeline)
        unrecorded = [(last, present)] if last is not None else []
        changed = {path for before, later in (*steps, *unrecorded) for path in self._changed(before, later)}
        return frozenset(changed & {change.path for change in self.files.changes(present, target)})

    def _changed(self, before: CommitId, later: CommitId) -> Iterator[bytes]:
        # what nobody looked at in time may be somebody's change as well
        for change in self.store.diff(before, later):
            if change.status == "M" and is_index(change.path):
                indexes = [self.store.read_file(commit, change.path) for commit in (before, later)]
                if stages_the_same(*indexes):
                    continue
            yield change.path

    def write_safety(self, taken: Snapshot) -> None:
        """Pin the present state and say so durably, before anything moves."""
        self.files.pin(taken.commit, safety_ref(self.run.run_id, f"by-hand-{taken.commit[:16]}"))
        span = WorkspaceSpan(before_commit=taken.commit, partial=taken.partial)
        event = SafetySnapshot(segment=None, workspaces={MAIN_WORKSPACE: span}, at=self.clock.now())
        with self.run.writer(self.timeline.head) as writer:
            writer.append(event, durable=True)
        self.moving.append(taken.commit)

    def write_restored(self, segment: int, done: Done, *, record_uid: RecordUid | None, by: str) -> None:
        report = done.to_json()
        if done.state is not None:
            report[STATE] = done.state
        event = Restored(record_uid=record_uid, commit=done.commit, report=report, by=by, at=self.clock.now())
        with self.run.writer(segment) as writer:
            writer.append(event, durable=True)

    def open_segment(self, move: Move) -> None:
        """Make the branch that the move left the current one again."""
        head = self.timeline.head
        assert move.left is not None
        nodes = self.timeline.own_nodes(move.left)
        fork = ForkPoint(
            run_id=self.run.run_id,
            segment=move.left,
            record_uid=nodes[-1].record_uid if nodes else None,
            inclusive=True,
        )
        header = replace(
            self.timeline.headers[head], segment=head + 1, forked_from=fork, created_at=self.clock.now()
        )
        self.run.create_segment(header)
        self.files.set_ref(segment_ref(self.run.run_id, head + 1))


@contextmanager
def _opened(run: Run, machine: Machine) -> Iterator[_Hands]:
    timeline = run.timeline()
    places = {declared_root(timeline), copy_of(timeline) or declared_root(timeline)}
    absent = [place for place in places if not os.path.lexists(place)]
    moving: list[CommitId] = []
    try:
        with _at_work(run, timeline, machine) as hands:
            moving = hands.moving
            yield hands
    finally:
        for place in () if moving else absent:
            with suppress(OSError):
                place.rmdir()  # made to be looked at; what was refused or only planned makes nothing


@contextmanager
def _at_work(run: Run, timeline: Timeline, machine: Machine) -> Iterator[_Hands]:
    root = recorded_root(declared_root(timeline), home=machine.home, user_home=machine.user_home)
    copy = copy_of(timeline)
    with (
        closing(SnapshotStore.open(snapshot_store(machine.home, root))) as store,
        WorkspaceLock.acquire(machine.home, root, owner=_owner(run), copy=copy),
    ):
        timeline = run.timeline()  # what stood there before the lock was held may have moved on
        if timeline.pending_rewind() is not None:
            raise ProtectedError(
                f"run {run.run_id} waits for a rewind to be finished; do that first: "
                f"agentrewind run --resume {run.run_id}"
            )
        place = Place(
            run=run,
            root=copy or root,
            store=workspace_directory(machine.home, root) / "snapshots.git",
        )
        with opened_workspace(place, timeline, clock=machine.clock) as files:
            yield _Hands(
                run=run,
                timeline=timeline,
                files=files,
                store=store,
                clock=machine.clock,
                external=External(
                    home=machine.home,
                    run_id=run.run_id,
                    workspace=root,
                    environment=machine.environment,
                    clock=machine.clock,
                ),
            )


def _owner(run: Run) -> JsonObject:
    return {"run": f"{run.run_id} (restore by a person)", "pid": os.getpid()}


def _free_directory(into: Path, *, forbidden: dict[str, Path]) -> Path:
    target = into.resolve()
    for name, path in forbidden.items():
        if target == path or path in target.parents:
            raise ProtectedError(f"{into} lies in {name} ({path}); choose a folder outside")
    if target.exists() and not target.is_dir():
        raise UsageError(f"{into} is not a directory")
    if target.is_dir() and any(target.iterdir()):
        raise ProtectedError(f"{into} is not empty; choose a folder that is empty or not there yet")
    return target


def _settled(foreign: frozenset[bytes], outside: Outside, *, dry_run: bool) -> frozenset[bytes]:
    """The paths to keep. Raises OutsideChangesError where somebody has to say first."""
    if foreign and outside is Outside.STOP and not dry_run:
        raise OutsideChangesError(_texts(foreign))
    return foreign if outside is Outside.KEEP else frozenset()


def _texts(paths: Collection[bytes]) -> tuple[str, ...]:
    return tuple(path.decode("utf-8", "backslashreplace") for path in sorted(paths))


def _done(commit: CommitId, lists: _Lists, *, verified: bool | None = None) -> Done:
    return Done(
        commit=commit,
        created=lists.created,
        modified=lists.modified,
        deleted=lists.deleted,
        kept=lists.kept,
        touched=lists.touched,
        lost_commits=tuple(getattr(lists, "lost_commits", ())),
        state=getattr(lists, "state", None),
        verified=verified,
    )
