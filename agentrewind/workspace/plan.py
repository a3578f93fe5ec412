"""Decides what a restore has to do: compares the workspace as last seen with a snapshot, touching nothing."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from agentrewind.workspace.attributes import Attributes, differing
from agentrewind.workspace.inventory import Directory, FileEntry, Inventory, find_present, with_ancestors
from agentrewind.workspace.plan_lists import Lists, refusal, uncaptured
from agentrewind.workspace.policy import PathClass, Policy
from agentrewind.workspace.sidecar import FileKind, Omission, Sidecar
from agentrewind.workspace.steps import (
    HardLink,
    MakeDirectory,
    Remove,
    RemoveDirectory,
    RemoveSpecial,
    RemoveVolatile,
    RestorePlan,
    SetAside,
    SetDirectory,
    SetFile,
    Step,
    Write,
)
from agentrewind.workspace.trees import DirectoryIds, StoredDirectory
from agentrewind.workspace.unchanged import unchanged
from agentrewind.workspace.views import Directories, EntryKind, SnapshotEntry, find, leaf
from agentrewind.workspace.wholeness import check_twin

ASIDE_SUFFIX = ".kept-by-agentrewind"

Refused: TypeAlias = Mapping[bytes, Mapping[bytes, str]]
"""By path and name, why an extended attribute could not be set."""

_NOTHING_REFUSED: Refused = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class VolatileContents:
    """What stands in a volatile path: excluded paths that must be spared, and whether there is more."""

    spared: tuple[bytes, ...]
    more: bool


def plan_restore(
    inventory: Inventory,
    store: Directories,
    target: DirectoryIds,
    *,
    policy: Policy,
    keep: Collection[bytes] = (),
    look_into: Callable[[bytes], VolatileContents],
    refused: Refused = _NOTHING_REFUSED,
) -> RestorePlan:
    """What turns the workspace into the snapshot.

    Args:
        inventory: the workspace, brought up to date and with its trees made.
        store: reads the snapshot.
        target: the snapshot's root.
        policy: the rules that were in force when the snapshot was taken.
        keep: paths to leave as they are whatever the snapshot says.
        look_into: tells what stands in a volatile path.
        refused: attributes that the system would not set when it was asked to.
    """
    planner = _Planner(
        inventory, store, target, policy=policy, keep=frozenset(keep), look_into=look_into, refused=refused
    )
    return planner.plan()


class _Planner:
    def __init__(
        self,
        inventory: Inventory,
        store: Directories,
        target: DirectoryIds,
        *,
        policy: Policy,
        keep: frozenset[bytes],
        look_into: Callable[[bytes], VolatileContents],
        refused: Refused,
    ) -> None:
        self._inventory = inventory
        self._store = store
        self._target = target
        self._policy = policy
        self._keep = keep
        self._look_into = look_into
        self._refused = refused
        self._lists = Lists()
        self._disturbed: set[bytes] = set()
        self._visited: set[bytes] = set()
        self._first_names: dict[bytes, tuple[bytes, tuple[int, int] | None]] = {}
        self._claimed: set[tuple[int, int]] = set()
        self._handled: set[bytes] = set()
        self._caching = with_ancestors(inventory.caching)

    def plan(self) -> RestorePlan:
        self._directory(self._inventory.root, self._target, b"")
        lists = self._lists
        for path, reason in self._inventory.omissions():
            if path not in self._handled:
                lists.kept.setdefault(path, reason.explanation)
        for path, names in self._refused.items():
            lists.kept.setdefault(path, refusal(names))
        return lists.finished()

    # one directory that is on both sides

    def _directory(self, present: Directory, ids: DirectoryIds, path: bytes) -> None:
        if self._is_same(present, ids):
            return
        self._visited.add(path)
        stored = self._store.directory(ids)
        own = stored.sidecar
        place = len(self._lists.directories)
        prefix = path + b"/" if path else b""
        alike = self._alike(present, stored, prefix)
        stored_names = {*stored.blobs, *stored.directories, *own.omitted}
        for name in sorted({*map(os.fsencode, present.names()), *stored_names} - alike):
            self._name(present, stored, prefix, name)
        differs = (present.mode, present.mtime_ns) != (own.mode, own.mtime_ns)
        differs = differs or self._attributes_differ(path, present.attributes, own.attributes)
        if differs or path in self._disturbed:
            self._lists.directories.insert(place, _own_step(path, own))
        if differs and path not in self._disturbed and path:
            self._lists.touched.append(path)

    def _alike(self, present: Directory, stored: StoredDirectory, prefix: bytes) -> set[bytes]:
        """The names that need no look: nearly all of them."""
        found = set()
        for name, entry in unchanged(present, stored, self._is_same):
            if entry is not None:
                path = prefix + name
                if path in self._keep:
                    continue
                # it may lead names of the snapshot that are to become links of it
                self._first_names[path] = (path, (entry.dev, entry.ino))
            found.add(name)
        return found

    def _is_same(self, present: Directory, ids: DirectoryIds) -> bool:
        return present.tree == ids.tree and present.meta == ids.meta and present not in self._caching

    def _name(self, present: Directory, stored: StoredDirectory, prefix: bytes, name: bytes) -> None:
        text, path = os.fsdecode(name), prefix + name
        child = present.children.get(text)
        inner = stored.directories.get(name)
        if self._is_kept(path, present, text, wanted=inner is not None or name in stored.blobs):
            return
        if isinstance(child, Directory) and inner is not None:
            self._directory(child, inner, path)
        elif isinstance(child, FileEntry) and name in stored.blobs:
            self._leaf(self._entry(stored, prefix, name), child)
        elif name in stored.sidecar.omitted and inner is None and name not in stored.blobs:
            self._lists.kept.setdefault(path, uncaptured(stored.sidecar.omitted[name]))
        else:
            self._replace(present, stored, prefix, name)

    def _is_kept(self, path: bytes, present: Directory, name: str, *, wanted: bool) -> bool:
        """Whether the path stays as it is by rule or by request."""
        if path in self._keep:
            self._lists.kept.setdefault(path, "left as it is, as asked")
            return True
        if present.omitted.get(name) is Omission.EXCLUDED:
            return True
        child = present.children.get(name)
        if child is None or wanted:
            return False
        excluded = self._policy.classify(path, is_dir=isinstance(child, Directory)) is PathClass.EXCLUDED
        if excluded:
            self._lists.kept.setdefault(path, "excluded by the path rules of the snapshot")
        return excluded

    def _replace(self, present: Directory, stored: StoredDirectory, prefix: bytes, name: bytes) -> None:
        """The two sides have different kinds under the name, or one has nothing."""
        text, path = os.fsdecode(name), prefix + name
        inner = stored.directories.get(name)
        wanted = inner is not None or name in stored.blobs
        child = present.children.get(text)
        if child is not None:
            self._clear(child, path, wanted=wanted)
        elif text in present.volatile:
            self._clear_volatile(path, wanted=wanted)
        elif text in present.omitted:
            self._clear_omitted(present.omitted[text], path, wanted=wanted)
        if wanted:
            (self._lists.created if child is None else self._lists.modified).append(path)
            if inner is None:
                self._write(self._entry(stored, prefix, name), None)
            else:
                self._create(inner, path)

    # making room

    def _clear(self, child: Directory | FileEntry, path: bytes, *, wanted: bool) -> None:
        if isinstance(child, FileEntry):
            self._removal(Remove(path=path, entry=child))
            if not wanted:
                self._lists.deleted.append(path)
            return
        before = len(self._lists.deleted)
        gone = self._remove_tree(child, path)
        if gone and len(self._lists.deleted) == before and not wanted:
            self._lists.deleted.append(path)
        if not gone and wanted:
            self._set_aside(path)

    def _clear_volatile(self, path: bytes, *, wanted: bool) -> None:
        if not self._remove_volatile(path) and wanted:
            self._set_aside(path)

    def _clear_omitted(self, reason: Omission, path: bytes, *, wanted: bool) -> None:
        match reason:
            case Omission.SPECIAL:
                self._handled.add(path)
                self._removal(RemoveSpecial(path=path))
                if not wanted:
                    self._lists.deleted.append(path)
            case Omission.UNREADABLE if wanted:
                self._lists.blocked.append(path)
            case Omission.TOO_LARGE | Omission.UNSTABLE | Omission.TOO_DEEP | Omission.LATE if wanted:
                self._set_aside(path)
            case _:
                pass  # stays, and is named with the others that were left out

    def _set_aside(self, path: bytes) -> None:
        self._handled.add(path)
        name = path.rpartition(b"/")[2][: 255 - len(ASIDE_SUFFIX) - 6]
        self._removal(SetAside(path=path, name=name + ASIDE_SUFFIX.encode()))
        self._lists.kept[path] = f"what stood there is kept beside it, with {ASIDE_SUFFIX} added to its name"

    def _remove_tree(self, directory: Directory, path: bytes) -> bool:
        """Plan the removal of all that may be removed; whether that is all."""
        gone = True
        before = len(self._lists.deleted)
        for name in sorted(directory.names()):
            inner = path + b"/" + os.fsencode(name)
            gone = self._remove_name(directory, name, inner) and gone
        if gone:
            self._removal(RemoveDirectory(path=path, dev=directory.dev, ino=directory.ino))
            if len(self._lists.deleted) == before:
                self._lists.deleted.append(path)
        return gone

    def _remove_name(self, directory: Directory, name: str, path: bytes) -> bool:
        if name in directory.volatile:
            return self._remove_volatile(path)
        if self._is_kept(path, directory, name, wanted=False):
            return False
        child = directory.children.get(name)
        if isinstance(child, Directory):
            return self._remove_tree(child, path)
        if child is not None:
            self._removal(Remove(path=path, entry=child))
            self._lists.deleted.append(path)
            return True
        if directory.omitted[name] is not Omission.SPECIAL:
            return False
        self._clear_omitted(Omission.SPECIAL, path, wanted=False)
        return True

    def _remove_volatile(self, path: bytes) -> bool:
        contents = self._look_into(path)
        for spared in contents.spared:
            self._lists.kept[spared] = Omission.EXCLUDED.explanation
        if contents.more:
            self._removal(RemoveVolatile(path=path, spared=contents.spared))
            self._lists.deleted.append(path)
        return not contents.spared

    def _removal(self, step: Step) -> None:
        self._lists.removals.append(step)
        self._disturb(step.path)

    def _disturb(self, path: bytes) -> None:
        self._disturbed.add(path.rpartition(b"/")[0])

    # making what the snapshot holds

    def _create(self, ids: DirectoryIds, path: bytes) -> None:
        stored = self._store.directory(ids)
        own = stored.sidecar
        self._visited.add(path)
        self._lists.additions.append(MakeDirectory(path=path))
        self._disturb(path)
        self._lists.directories.append(_own_step(path, own))
        names = sorted([*stored.blobs, *stored.directories])
        if names and self._lists.created and self._lists.created[-1] == path:
            self._lists.created.pop()
        for name, reason in own.omitted.items():
            self._lists.kept.setdefault(path + b"/" + name, uncaptured(reason))
        for name in names:
            inner = path + b"/" + name
            if inner in self._keep:
                continue
            self._lists.created.append(inner)
            if name in stored.blobs:
                self._write(self._entry(stored, path + b"/", name), None)
            else:
                self._create(stored.directories[name], inner)

    def _entry(self, stored: StoredDirectory, prefix: bytes, name: bytes) -> SnapshotEntry:
        leader = stored.sidecar.files[name].leader
        if leader is not None:
            is_link = name in stored.links
            check_twin(self._store, self._target, leader, oid=stored.blobs[name], is_link=is_link)
        return leaf(self._store, self._target, stored, prefix, name)

    def _leaf(self, entry: SnapshotEntry, present: FileEntry) -> None:
        """A file or link on both sides."""
        first = self._first_name(entry)
        if first is not None:
            if first[1] is None or first[1] != (present.dev, present.ino):
                self._lists.modified.append(entry.path)
                self._link(entry, first[0], present)
            return
        inode = (present.dev, present.ino)
        same_kind = (present.kind is FileKind.LINK) is (entry.kind is EntryKind.LINK)
        if not same_kind or present.oid != entry.oid or self._is_claimed(present):
            self._lists.modified.append(entry.path)
            self._write(entry, present)
            return
        if self._facts_differ(entry, present):
            self._lists.touched.append(entry.path)
            if self._linked_outside(present):
                self._write(entry, present)
                return
            self._lists.additions.append(SetFile(entry=entry, expected=present))
        self._claimed.add(inode)
        self._first_names[entry.leader or entry.path] = (entry.path, inode)

    def _facts_differ(self, entry: SnapshotEntry, present: FileEntry) -> bool:
        mode_differs = entry.kind is EntryKind.FILE and present.mode != entry.mode
        return (
            mode_differs
            or present.mtime_ns != entry.mtime_ns
            or self._attributes_differ(entry.path, present.attributes, entry.attributes)
        )

    def _attributes_differ(self, path: bytes, present: Attributes, wanted: Attributes) -> bool:
        return present != wanted and not differing(present, wanted) <= self._refused.get(path, {}).keys()

    def _write(self, entry: SnapshotEntry, replaced: FileEntry | None) -> None:
        first = self._first_name(entry)
        if first is not None:
            self._link(entry, first[0], replaced)
            return
        self._lists.additions.append(Write(entry=entry, replaced=replaced))
        self._disturb(entry.path)
        self._first_names[entry.leader or entry.path] = (entry.path, None)

    def _link(self, entry: SnapshotEntry, first: bytes, replaced: FileEntry | None) -> None:
        self._lists.links.append(HardLink(path=entry.path, first=first, replaced=replaced))
        self._disturb(entry.path)

    def _first_name(self, entry: SnapshotEntry) -> tuple[bytes, tuple[int, int] | None] | None:
        """The path that a further hard link is to share its file with, and that file if it exists now."""
        if entry.leader is None:
            return None
        known = self._first_names.get(entry.leader)
        if known is not None or entry.leader.rpartition(b"/")[0] in self._visited:
            return known
        leader = find_present(self._inventory.root, entry.leader)
        if not isinstance(leader, FileEntry) or find(self._store, self._target, entry.leader) is None:
            return None
        return entry.leader, (leader.dev, leader.ino)

    def _is_claimed(self, present: FileEntry) -> bool:
        """Whether another path of the snapshot keeps this inode for a different file."""
        if (present.dev, present.ino) in self._claimed:
            return True
        return present.leader is not None and not self._will_visit(present.leader)

    def _will_visit(self, path: bytes) -> bool:
        return path.rpartition(b"/")[0] in self._visited

    def _linked_outside(self, present: FileEntry) -> bool:
        """Whether a name that is no part of the workspace's state shares this inode."""
        if present.nlink < 2:
            return False
        inside = sum(
            1
            for directory, names in self._inventory.linked.items()
            for name in names
            if isinstance(entry := directory.children[name], FileEntry)
            and (entry.dev, entry.ino) == (present.dev, present.ino)
        )
        return present.nlink > inside


def _own_step(path: bytes, own: Sidecar) -> SetDirectory:
    return SetDirectory(path=path, mode=own.mode, mtime_ns=own.mtime_ns, attributes=own.attributes)
