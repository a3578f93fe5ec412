"""One workspace over time: takes snapshots of it, tells what changed, brings earlier states back."""

from __future__ import annotations

import os
import time
from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path
from threading import RLock

from agentrewind.clock import Clock
from agentrewind.errors import StorageError, UsageError
from agentrewind.record import Change, CommitId
from agentrewind.workspace.contents import Sink
from agentrewind.workspace.inventory import Inventory
from agentrewind.workspace.objects import BLOB
from agentrewind.workspace.policy import Policy
from agentrewind.workspace.policy_text import encode_policy
from agentrewind.workspace.repositories import lost_commits
from agentrewind.workspace.restore import RestoreReport, carry_out, make_plan
from agentrewind.workspace.scan import OPEN_DIRECTORY, Scanner
from agentrewind.workspace.snapshots import SnapshotStore
from agentrewind.workspace.steps import RestorePlan
from agentrewind.workspace.trees import DirectoryIds, write_trees
from agentrewind.workspace.views import shown


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """A state of the workspace.

    Attributes:
        commit: names it in the store.
        partial: `path (reason)` for what should be in it and could not be captured.
        left_out: `path (reason)` for what the path rules leave out.
    """

    commit: CommitId
    partial: tuple[str, ...]
    left_out: tuple[str, ...] = ()


class Workspace:
    """The workspace of a run; safe to be called from several threads, one at a time gets through.

    Args:
        root: the directory, as `check_root` gives it.
        store: where its snapshots go.
        policy: the path rules of the run.
        ref: names the newest snapshot and so keeps all before it; moved last of all.
        clock: dates the snapshots.

    Raises:
        UsageError: the root cannot be opened.
    """

    def __init__(self, *, root: Path, store: SnapshotStore, policy: Policy, ref: str, clock: Clock) -> None:
        self.root = root
        self._store = store
        self._policy = policy
        self._ref = ref
        self._clock = clock
        self._lock = RLock()
        try:
            self._root = os.open(root, OPEN_DIRECTORY)
        except OSError as error:
            raise UsageError(f"workspace {root} cannot be opened: {error.strerror}") from error
        self._inventory = Inventory()
        self._tip = store.ref(ref)
        self._current = self._tip

    def snapshot(self, *, label: str) -> Snapshot:
        """Commit the present state; an unchanged workspace gives the same commit as before.

        Raises:
            StorageError: the store cannot be written; no ref names anything incomplete.
        """
        with self._lock, self._store.writing() as collected:
            if collected:
                self._inventory = Inventory()
            try:
                return self._snapshot(label)
            except BaseException:
                # ids of objects that were never stored must not be taken for stored ones
                self._inventory = Inventory()
                raise

    def changes(self, before: CommitId, after: CommitId) -> tuple[Change, ...]:
        """What differs between two snapshots, sorted by path; times alone are no change."""
        return self._store.diff(before, after)

    def plan(self, commit: CommitId, *, keep: Collection[bytes] = ()) -> RestorePlan:
        """What `restore` would do; the workspace is not touched."""
        with self._lock:
            self.snapshot(label="before a plan")
            return self._plan(commit, keep)

    def restore(self, commit: CommitId, *, keep: Collection[bytes] = ()) -> RestoreReport:
        """Make the workspace what the snapshot says, `keep` and what the rules leave out aside.

        The present state is snapshotted first. A restore that was interrupted is completed by the next one.

        Raises:
            RestoreError: the result is not what the snapshot says.
            MissingSnapshotError: the snapshot cannot be read; nothing was touched.
        """
        with self._lock:
            before = self.snapshot(label="before a restore").commit

            def look_again() -> RestorePlan:
                self.snapshot(label="before a restore")
                return self._plan(commit, keep)

            report = carry_out(self._root, self._store, commit, plan=look_again)
            self._settle(commit)
            return replace(report, lost_commits=lost_commits(self._store, before, commit, root=self._root))

    def set_ref(self, ref: str) -> None:
        """Let another ref name the snapshots from here on; the one so far keeps what it names."""
        with self._lock, self._store.writing():
            if self._tip is not None:
                self._store.set_ref(ref, self._tip)
            self._ref = ref

    def pin(self, commit: CommitId, ref: str) -> None:
        """Keep a commit, and all before it, whatever happens to other refs."""
        with self._lock, self._store.writing():
            self._store.commit(commit)
            self._store.set_ref(ref, commit)

    def close(self) -> None:
        """Release what is held; the workspace may not be used afterwards."""
        with self._lock:
            if self._root >= 0:
                os.close(self._root)
                self._root = -1

    def _snapshot(self, label: str) -> Snapshot:
        writer = self._store.new_pack()
        try:
            self._refresh(writer)
            tree, meta = write_trees(self._inventory.root, writer)
            root = DirectoryIds(tree=tree, meta=meta)
            policy = writer.add(BLOB, encode_policy(self._policy))
            if self._current is None or not self._is(self._current, root, policy):
                parents = () if self._tip is None else (self._tip,)
                commit = self._store.add_commit(
                    writer, root=root, policy=policy, parents=parents, label=label, at=self._clock.now()
                )
                self._store.publish(writer)
                self._store.set_ref(self._ref, commit)
                self._tip = self._current = commit
            assert self._current is not None
            return self._describe(self._current)
        except OSError as error:
            raise StorageError(f"no snapshot of {self.root}: {error}") from error
        finally:
            writer.abandon()

    def _refresh(self, sink: Sink) -> None:
        # the clock that stamps files, whatever clock the run has
        now_ns = time.clock_gettime_ns(time.CLOCK_REALTIME)
        Scanner(self._root, self._inventory, self._policy, sink, now_ns=now_ns).everything()

    def _is(self, commit: CommitId, root: DirectoryIds, policy: bytes) -> bool:
        info = self._store.commit(commit)
        return (info.root, info.policy) == (root, policy)

    def _describe(self, commit: CommitId) -> Snapshot:
        partial: list[str] = []
        left_out: list[str] = []
        for path, reason in self._inventory.omissions():
            (left_out if reason.by_rule else partial).append(f"{shown(path)} ({reason.explanation})")
        return Snapshot(commit=commit, partial=tuple(partial), left_out=tuple(left_out))

    def _plan(self, commit: CommitId, keep: Collection[bytes]) -> RestorePlan:
        return make_plan(self._root, self._inventory, self._store, commit, keep=keep, policy=self._policy)

    def _settle(self, commit: CommitId) -> None:
        """After a restore to it, the workspace may be that very commit again."""
        info = self._store.commit(commit)
        root = self._inventory.root
        if (root.tree, root.meta) == (info.root.tree, info.root.meta):
            policy = self._store.blob(info.policy)
            if policy == encode_policy(self._policy):
                self._current = commit
