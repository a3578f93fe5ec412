"""One workspace over time: takes snapshots of it, tells what changed, brings earlier states back."""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Lock, RLock

from agentrewind.clock import Clock
from agentrewind.errors import DamagedError, StorageError, UsageError
from agentrewind.records import Change, CommitId
from agentrewind.workspace.inventory import Inventory
from agentrewind.workspace.maintenance import MANY, consolidate
from agentrewind.workspace.objects import BLOB, object_id
from agentrewind.workspace.open_path import OPEN_DIRECTORY
from agentrewind.workspace.plan import Refused
from agentrewind.workspace.policy import Policy
from agentrewind.workspace.policy_text import encode_policy
from agentrewind.workspace.power import left_unsynced, losses, recover, regain, sync
from agentrewind.workspace.refresh import Refresher, Tally
from agentrewind.workspace.repositories import lost_commits
from agentrewind.workspace.restore import RestoreReport, carry_out, make_plan
from agentrewind.workspace.snapshots import SnapshotStore
from agentrewind.workspace.stat_cache import CachedInventory, load_inventory, save_inventory
from agentrewind.workspace.steps import RestorePlan
from agentrewind.workspace.trees import DirectoryIds, write_trees
from agentrewind.workspace.views import shown

_SAVE_SHARE = 0.01
_TOO_MANY_PACKS = 4 * MANY


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
        watch: whether to ask the kernel what changed, where it can tell; without, results are the same.

    Attributes:
        recovered: what a power failure since the last time took from the store, in words.

    Raises:
        UsageError: the root cannot be opened.
    """

    def __init__(
        self,
        *,
        root: Path,
        store: SnapshotStore,
        policy: Policy,
        ref: str,
        clock: Clock,
        watch: bool = True,
    ) -> None:
        self.root = root
        self._store = store
        self._policy_text = encode_policy(policy)
        self._policy_id = object_id(BLOB, self._policy_text)
        self._policy = policy
        self._ref = ref
        self._clock = clock
        self._lock = RLock()
        self._syncing = Lock()
        self.recovered = recover(store)
        store.unsynced |= left_unsynced(store)
        self._tip = store.ref(ref)
        try:
            self._root = os.open(root, OPEN_DIRECTORY)
        except OSError as error:
            raise UsageError(f"workspace {root} cannot be opened: {error.strerror}") from error
        self._refresher = Refresher(self._root, root, policy, clock=clock, watch=watch)
        digest = hashlib.sha256(self._policy_text + os.fsencode(root)).hexdigest()[:16]
        self._cache_path = store.git_dir / f"stat-cache-{digest}"
        self._tidying = True
        self._contents: dict[CommitId, tuple[DirectoryIds, bytes]] = {}
        self._history: set[CommitId] = set()
        self._wanted: CommitId | None = None
        self._saved: CommitId | None = None
        self._synced: tuple[str, CommitId] | None = None
        self._save_due = float("-inf")
        self._inventory = Inventory()
        self._last: Snapshot | None = None
        self._generation = store.generation()
        self._load()

    def snapshot(self, *, label: str, hurried: bool = False) -> Snapshot:
        """Commit the present state; an unchanged workspace gives the same commit as before.

        A hurried one keeps to the deadline of the path rules: what could not be looked at in time is left
        out, which makes it partial, and is tried again by the next one.

        Raises:
            StorageError: the store cannot be written; no ref names anything incomplete.
        """
        with self._writing():
            try:
                taken = self._snapshot(label, self._deadline() if hurried else _never)
            except BaseException:
                # ids of objects that were never stored must not be taken for stored ones
                self._start_over()
                raise
            if len(self._store.pack_names()) > _TOO_MANY_PACKS:
                self._tidy()
            if self._saved != taken.commit and self._clock.monotonic() >= self._save_due:
                self._save()
            return taken

    def catch_up(self) -> None:
        """Do what can wait until nobody waits: make the snapshots durable, put small packs together.

        Others may take snapshots while this waits for the disk.

        Raises:
            StorageError: the snapshots since the last time may not outlast a power failure.
        """
        self._sync()
        with self._writing():
            self._tidy()

    def _sync(self) -> None:
        # one at a time, but not under the other lock: snapshots go on meanwhile
        with self._syncing:
            # in this order: ref and packs may be of later snapshots than the tip, never of earlier ones
            tip = self._tip
            ref = self._ref
            packs = frozenset(self._store.unsynced)
            if tip is None or (ref, tip) == self._synced:
                return
            with self._store.holding_gc_off():
                sync(self._store, packs, ref, tip)
            self._store.unsynced.difference_update(packs)
            self._synced = (ref, tip)

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        with self._lock, self._store.writing() as generation:
            if generation != self._generation:
                self._start_over()  # what the inventory names may be gone
                self._generation = generation
            yield

    def changes(self, before: CommitId, after: CommitId) -> tuple[Change, ...]:
        """What is known to differ between two snapshots, sorted by path; times alone are no change."""
        return self._store.diff(before, after, known=True)

    def plan(self, commit: CommitId, *, keep: Collection[bytes] = ()) -> RestorePlan:
        """What `restore` would do; the workspace is not touched."""
        with self._lock:
            self.snapshot(label="before a plan")
            return self._plan(commit, keep, {})

    def restore(self, commit: CommitId, *, keep: Collection[bytes] = ()) -> RestoreReport:
        """Make the workspace what the snapshot says, `keep` and what the rules leave out aside.

        The present state is snapshotted first. A restore that was interrupted is completed by the next one.

        Raises:
            RestoreError: the result is not what the snapshot says.
            MissingSnapshotError: the snapshot cannot be read; nothing was touched.
        """
        with self._lock:
            self._store.commit(commit)
            self._wanted = commit if self._is_ours(commit) else None
            seen: list[CommitId] = []

            def look_again(refused: Refused, moved: Collection[bytes]) -> RestorePlan:
                seen.append(self.snapshot(label="around a restore").commit)
                self._sync()  # what is about to go from the disk stands in the store alone
                return self._plan(commit, {*keep, *moved}, refused)

            try:
                report = carry_out(
                    self._root, self._store, commit, plan=look_again, distrust=self._refresher.distrust
                )
            finally:
                self._wanted = None
            report = replace(report, state=seen[-1] if seen[-1] != commit else None)
            paths = (*report.created, *report.modified, *report.deleted)
            if not any(".git" in path.split("/") for path in paths):
                return report
            return replace(report, lost_commits=lost_commits(self._store, seen[0], commit))

    def set_ref(self, ref: str) -> None:
        """Let another ref name the snapshots from here on; the one so far keeps what it names."""
        with self._writing():
            if self._tip is not None:
                self._store.set_ref(ref, self._tip)
            self._ref = ref

    def pin(self, commit: CommitId, ref: str) -> None:
        """Keep a commit, and all before it, whatever happens to other refs or to the machine's power."""
        with self._writing():
            self._store.commit(commit)
            self._sync()
            self._store.set_ref(ref, commit, durable=True)

    @property
    def lost(self) -> tuple[str, ...]:
        """What power failures took from the store, in words, until gc clears it away."""
        return tuple(losses(self._store))

    def holds(self, commit: CommitId) -> bool:
        """Whether a snapshot is in the store; `whole` tells whether all of it is."""
        return self._store.contains(bytes.fromhex(commit))

    def whole(self, commits: Iterable[CommitId]) -> frozenset[CommitId]:
        """Which of these snapshots, given newest first, can be brought back; refs keep them from here on."""
        with self._writing():
            found = regain(self._store, self._ref, commits)
            self._tip, self._history = self._store.ref(self._ref), set()
            return found

    def close(self) -> None:
        """Release what is held; the workspace may not be used afterwards."""
        with self._lock:
            if self._root < 0:
                return
            if self._last is not None and self._saved != self._last.commit:
                with self._store.holding_gc_off():
                    self._save()
            self._refresher.close()
            os.close(self._root)
            self._root = -1
            self._sync()

    @property
    def tally(self) -> Tally:
        """How changes were found so far."""
        return self._refresher.tally

    @property
    def watching(self) -> str:
        """How changes are found, for people."""
        return self._refresher.watching

    def _deadline(self) -> Callable[[], bool]:
        """Tells, from now on, whether the time that a hurried snapshot may take is over."""
        end = self._clock.monotonic() + self._policy.snapshot_seconds
        return lambda: self._clock.monotonic() >= end

    def _snapshot(self, label: str, late: Callable[[], bool]) -> Snapshot:
        writer = self._store.new_pack()
        try:
            if not self._refresher.refresh(self._inventory, writer, late=late) and self._last is not None:
                return self._last
            tree, meta = write_trees(self._inventory.root, writer)
            root = DirectoryIds(tree=tree, meta=meta)
            commit = self._same_as_before(root)
            if commit is None:
                writer.add(BLOB, self._policy_text)
                commit = self._store.add_commit(
                    writer,
                    root=root,
                    policy=self._policy_id,
                    parents=() if self._tip is None else (self._tip,),
                    label=label,
                    at=self._clock.now(),
                )
                self._store.publish(writer)
                self._store.set_ref(self._ref, commit)
                self._tip = commit
                self._contents = {commit: (root, self._policy_id)}
                if self._history:
                    self._history.add(commit)
            self._last = self._describe(commit)
            return self._last
        except OSError as error:
            raise StorageError(f"no snapshot of {self.root}: {error}") from error
        finally:
            writer.abandon()

    def _same_as_before(self, root: DirectoryIds) -> CommitId | None:
        """The commit that holds exactly this already: the last one, the newest, or the one just restored."""
        for commit in (self._last.commit if self._last else None, self._tip, self._wanted):
            if commit is None:
                continue
            if commit not in self._contents:
                info = self._store.commit(commit)
                self._contents[commit] = (info.root, info.policy)
            if self._contents[commit] == (root, self._policy_id):
                return commit
        return None

    def _describe(self, commit: CommitId) -> Snapshot:
        partial: list[str] = []
        left_out: list[str] = []
        for path, reason in self._inventory.omissions():
            (left_out if reason.by_rule else partial).append(f"{shown(path)} ({reason.explanation})")
        return Snapshot(commit=commit, partial=tuple(partial), left_out=tuple(left_out))

    def _plan(self, commit: CommitId, keep: Collection[bytes], refused: Refused) -> RestorePlan:
        return make_plan(
            self._root,
            self._inventory,
            self._store,
            commit,
            keep=keep,
            policy=self._policy,
            refused=refused,
        )

    def _is_ours(self, commit: CommitId) -> bool:
        """Whether our ref keeps the commit; one of another run may be dropped with that run."""
        if self._tip is not None and self._tip not in self._history:
            pending = [self._tip]
            while pending:
                found = pending.pop()
                if found not in self._history:
                    self._history.add(found)
                    pending += self._store.commit(found).parents
        return commit in self._history

    def _tidy(self) -> None:
        """Put small packs together; the snapshot stands whether or not that works."""
        if self._tidying:
            try:
                consolidate(self._store)
            except (StorageError, DamagedError):
                self._tidying = False  # `verify` names the cause; not to be met at every snapshot

    def _start_over(self) -> None:
        self._inventory = Inventory()
        self._last = None

    def _load(self) -> None:
        cached = load_inventory(self._cache_path)
        if cached is None or not self._store.contains(bytes.fromhex(cached.commit)):
            return
        info = self._store.commit(cached.commit)
        root = cached.inventory.root
        if (root.tree, root.meta) != (info.root.tree, info.root.meta):
            return
        self._inventory = cached.inventory
        if cached.ref == self._ref and self._tip is not None:
            self._last = self._describe(cached.commit)
            self._saved = cached.commit

    def _save(self) -> None:
        """Keep the inventory for the next process; only a convenience, so a full disk is no error here."""
        began = self._clock.monotonic()
        if self._last is not None and self._inventory.root.tree is not None:
            cached = CachedInventory(inventory=self._inventory, commit=self._last.commit, ref=self._ref)
            with contextlib.suppress(OSError):
                save_inventory(self._cache_path, cached)
                self._saved = self._last.commit
        ended = self._clock.monotonic()
        self._save_due = ended + (ended - began) / _SAVE_SHARE


def _never() -> bool:
    return False
