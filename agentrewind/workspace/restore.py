"""Restores a snapshot: plans, applies, looks again, and reports only what it has verified."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from agentrewind.errors import MissingSnapshotError, RestoreError, UsageError
from agentrewind.records import CommitId, JsonObject
from agentrewind.workspace.apply import Applier, MovedError
from agentrewind.workspace.contents import HashOnly
from agentrewind.workspace.inventory import Inventory
from agentrewind.workspace.open_path import OPEN_DIRECTORY
from agentrewind.workspace.plan import Refused, VolatileContents, plan_restore
from agentrewind.workspace.policy import Policy
from agentrewind.workspace.policy_text import decode_policy
from agentrewind.workspace.removal import make_accessible, spared_in
from agentrewind.workspace.scan import Scanner, names_in
from agentrewind.workspace.snapshots import SnapshotStore, naming
from agentrewind.workspace.steps import RestorePlan, Write
from agentrewind.workspace.trees import write_trees
from agentrewind.workspace.views import EntryKind, shown
from agentrewind.workspace.wholeness import Examiner, check_target

_ROUNDS = 6
_KINDS = ("created", "modified", "deleted", "touched")
_MAX_BLOCKED_ROUNDS = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoreReport:
    """What a restore did, and that the result was compared with the snapshot.

    Attributes:
        created, modified, deleted: paths by what happened to them.
        touched: paths of which only mode, attributes or time was set.
        kept: `path: why` for what stays although the snapshot does not hold it.
        verified: the workspace was read again and is what the snapshot says, what is kept aside.
        lost_commits: `path: sha (ref)` for commits of inner repositories that nothing names any more.
        state: the workspace afterwards, where what is kept makes it another one than the snapshot; else None.
    """

    created: tuple[str, ...]
    modified: tuple[str, ...]
    deleted: tuple[str, ...]
    kept: tuple[str, ...]
    touched: tuple[str, ...]
    verified: bool
    lost_commits: tuple[str, ...] = ()
    state: CommitId | None = None

    def to_json(self) -> JsonObject:
        return {
            "created": list(self.created),
            "modified": list(self.modified),
            "deleted": list(self.deleted),
            "kept": list(self.kept),
            "touched": list(self.touched),
            "verified": self.verified,
            "lost_commits": list(self.lost_commits),
        }


def make_plan(
    root: int,
    inventory: Inventory,
    store: SnapshotStore,
    commit: CommitId,
    *,
    keep: Collection[bytes],
    policy: Policy,
    refused: Refused,
) -> RestorePlan:
    """The plan for an inventory that is up to date; `policy` tells what a volatile path must keep."""
    info = store.commit(commit)

    def look_into(path: bytes) -> VolatileContents:
        spared, more = spared_in(root, path, policy)
        return VolatileContents(spared=spared, more=more)

    with naming(commit):
        return plan_restore(
            inventory,
            store,
            info.root,
            policy=decode_policy(store.blob(info.policy)),
            keep=keep,
            look_into=look_into,
            refused=refused,
        )


def carry_out(
    root: int,
    store: SnapshotStore,
    commit: CommitId,
    *,
    plan: Callable[[Refused, Collection[bytes]], RestorePlan],
    distrust: Callable[[], None] = lambda: None,
) -> RestoreReport:
    """Plan and apply until the plan is empty; `plan` looks at the workspace afresh each time.

    It is given the attributes that could not be set, and the paths to which something was set aside: that
    stays, whatever its new name is.

    What the system refuses to set of extended attributes is named as kept and holds nothing else up.

    `distrust` is called when a plan did not match the disk, so that the next look is a thorough one.

    Raises:
        MissingSnapshotError: the store does not hold all that is needed; nothing was touched.
        RestoreError: the workspace does not become what the snapshot says.
    """
    refused: dict[bytes, dict[bytes, str]] = {}
    moved: dict[bytes, bytes] = {}

    def look_again() -> RestorePlan:
        return _unblocked(root, lambda: plan(refused, moved))

    todo = look_again()
    plans = [todo]
    for _ in range(_ROUNDS):
        if todo.empty:
            return _report(plans, moved)
        _check_available(store, commit, todo)
        applier = Applier(root, store)
        try:
            with naming(commit):
                applier.apply(todo.steps)
        except MovedError:
            distrust()  # something else writes here; look again
        finally:
            applier.close()
        refused.update(applier.refused)
        moved.update(applier.moved)
        todo = look_again()
        plans.append(todo)
    if todo.empty:
        return _report(plans, moved)
    paths = sorted({shown(step.path) for step in todo.steps})
    raise RestoreError(
        f"the workspace is not what snapshot {commit} says after {_ROUNDS} attempts, first at {paths[0]!r}; "
        "end whatever still writes there and restore again",
        paths,
    )


def restore_into(
    store: SnapshotStore, commit: CommitId, directory: Path, policy: Policy | None = None
) -> RestoreReport:
    """Write a snapshot into a directory that is empty or does not exist yet.

    Raises:
        UsageError: the directory holds something, or is none.
        MissingSnapshotError: the store is damaged; where that is in the contents of a file alone,
            the directory may hold a part.
        RestoreError: what was written is not what the snapshot says.
    """
    info = store.commit(commit)
    Examiner(store).examine(commit)  # before anything is made
    rules = policy or decode_policy(store.blob(info.policy))
    everything = Policy(excluded=(), volatile=(), track_everything=True, max_file_bytes=1 << 62)
    try:
        directory.mkdir(parents=True, exist_ok=True)
        root = os.open(directory, OPEN_DIRECTORY & ~os.O_NOFOLLOW)
    except OSError as error:
        raise UsageError(f"cannot restore into {directory}: {error.strerror}") from error
    inventory = Inventory()

    def look_again(refused: Refused, moved: Collection[bytes]) -> RestorePlan:
        Scanner(root, inventory, everything, HashOnly(), trusted_before_ns=0).everything()
        write_trees(inventory.root, HashOnly())
        return make_plan(root, inventory, store, commit, keep=moved, policy=rules, refused=refused)

    try:
        if names_in(root):
            raise UsageError(f"{directory} is not empty; give a new or an empty directory")
        return carry_out(root, store, commit, plan=look_again)
    finally:
        os.close(root)


def _unblocked(root: int, plan: Callable[[], RestorePlan]) -> RestorePlan:
    """A plan without blocked paths: the owner of an unreadable path may look into it."""
    for _ in range(_MAX_BLOCKED_ROUNDS):
        todo = plan()
        if not todo.blocked:
            return todo
        for path in todo.blocked:
            _open_up(root, path)
    raise RestoreError("the workspace holds paths that cannot be read", [])


def _open_up(root: int, path: bytes) -> None:
    *parents, name = path.split(b"/")
    handle = os.dup(root)
    try:
        for parent in parents:
            inner = os.open(parent, OPEN_DIRECTORY, dir_fd=handle)
            os.close(handle)
            handle = inner
        make_accessible(handle, name)
    except OSError as error:
        raise RestoreError(
            f"cannot restore: {shown(path)!r} cannot be read ({error.strerror}), so undo could not "
            "bring it back; nothing was changed; make it readable or move it away, then restore again",
            [shown(path)],
        ) from error
    finally:
        os.close(handle)


def _check_available(store: SnapshotStore, commit: CommitId, plan: RestorePlan) -> None:
    for step in plan.steps:
        if isinstance(step, Write):
            needed = [step.entry.oid]
            if step.entry.pieces is not None:
                needed += [item.oid for item in store.tree(step.entry.pieces)]
            for oid in needed:
                if not store.contains(oid):
                    raise MissingSnapshotError(commit, f"the contents of {shown(step.path)!r} are missing")
            if step.entry.kind is EntryKind.LINK:
                with naming(commit):
                    check_target(store, step.entry.oid)


def _report(plans: list[RestorePlan], moved: Mapping[bytes, bytes]) -> RestoreReport:
    """All that was done in several rounds; a path is listed for the first thing that was planned for it."""
    listed: dict[str, str] = {}
    for plan in plans:
        for kind in _KINDS:
            for path in getattr(plan, kind):
                listed.setdefault(path, kind)
    by_kind = {kind: tuple(sorted(path for path in listed if listed[path] == kind)) for kind in _KINDS}
    aside = {
        f"{shown(now)}: ": f"stood at {shown(before)!r}, where the snapshot has something else"
        for now, before in moved.items()
    }
    others = [line for line in plans[-1].kept if not any(line.startswith(start) for start in aside)]
    kept = tuple(sorted([*others, *(start + why for start, why in aside.items())]))
    return RestoreReport(
        created=by_kind["created"],
        modified=by_kind["modified"],
        deleted=by_kind["deleted"],
        touched=by_kind["touched"],
        kept=kept,
        verified=True,
    )
