"""What a snapshot holds, worked out from its stored directories."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from agentrewind.workspace.attributes import Attributes
from agentrewind.workspace.objects import TreeItem
from agentrewind.workspace.sidecar import Omission
from agentrewind.workspace.trees import DirectoryIds, StoredDirectory


class Directories(Protocol):
    """Gives stored directories and objects."""

    def directory(self, ids: DirectoryIds) -> StoredDirectory: ...
    def blob(self, oid: bytes) -> bytes: ...
    def tree(self, oid: bytes) -> list[TreeItem]: ...


class EntryKind(StrEnum):
    """What stands under a path of a snapshot."""

    FILE = "file"
    LINK = "link"
    DIRECTORY = "directory"


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotEntry:
    """One path of a snapshot.

    Attributes:
        mode: permission bits.
        oid: the blob (of a large file: its description), or the tree of a directory.
        pieces: the tree that holds the pieces of a large file.
        leader: for a further hard link, the path whose file it is.
        attributes: extended attributes.
    """

    path: bytes
    kind: EntryKind
    mode: int
    mtime_ns: int
    oid: bytes
    pieces: bytes | None = None
    leader: bytes | None = None
    attributes: Attributes = ()


def shown(path: bytes) -> str:
    """A path as text that every encoder accepts: bytes that are no UTF-8 stand as backslash escapes."""
    return path.decode("utf-8", "backslashreplace")


def entries(store: Directories, root: DirectoryIds) -> Iterator[SnapshotEntry]:
    """Every path of a snapshot, the root aside, directories before what they hold."""
    return _entries(store, root, root, b"")


def _entries(
    store: Directories, root: DirectoryIds, ids: DirectoryIds, prefix: bytes
) -> Iterator[SnapshotEntry]:
    directory = store.directory(ids)
    for name in sorted([*directory.blobs, *directory.directories]):
        inner = directory.directories.get(name)
        if inner is None:
            yield leaf(store, root, directory, prefix, name)
        else:
            own = store.directory(inner).sidecar
            yield SnapshotEntry(
                path=prefix + name,
                kind=EntryKind.DIRECTORY,
                mode=own.mode,
                mtime_ns=own.mtime_ns,
                oid=inner.tree,
                attributes=own.attributes,
            )
            yield from _entries(store, root, inner, prefix + name + b"/")


def leaf(
    store: Directories, root: DirectoryIds, directory: StoredDirectory, prefix: bytes, name: bytes
) -> SnapshotEntry:
    """A file or link of a stored directory; a further hard link gets mode and time from its leader."""
    facts = directory.sidecar.files[name]
    pieces = directory.pieces.get(name)
    if facts.leader is not None:
        first = parent_of(store, root, facts.leader)
        leading = facts.leader.rpartition(b"/")[2]
        if first is not None and leading in first.blobs:
            facts = first.sidecar.files[leading]._replace(leader=facts.leader)
            pieces = first.pieces.get(leading)
    return SnapshotEntry(
        path=prefix + name,
        kind=EntryKind.LINK if name in directory.links else EntryKind.FILE,
        mode=facts.mode,
        mtime_ns=facts.mtime_ns,
        oid=directory.blobs[name],
        pieces=pieces,
        leader=facts.leader,
        attributes=facts.attributes,
    )


def parent_of(store: Directories, root: DirectoryIds, path: bytes) -> StoredDirectory | None:
    """The directory in which a path would stand, None where the snapshot has none."""
    ids: DirectoryIds | None = root
    for name in path.split(b"/")[:-1]:
        ids = store.directory(ids).directories.get(name) if ids else None
    return store.directory(ids) if ids else None


def find(store: Directories, root: DirectoryIds, path: bytes) -> SnapshotEntry | None:
    """The entry of a path, None where the snapshot has none."""
    directory = parent_of(store, root, path)
    if directory is None:
        return None
    name = path.rpartition(b"/")[2]
    if name in directory.blobs:
        return leaf(store, root, directory, path[: len(path) - len(name)], name)
    inner = directory.directories.get(name)
    if inner is None:
        return None
    own = store.directory(inner).sidecar
    return SnapshotEntry(
        path=path,
        kind=EntryKind.DIRECTORY,
        mode=own.mode,
        mtime_ns=own.mtime_ns,
        oid=inner.tree,
        attributes=own.attributes,
    )


def contents(store: Directories, entry: SnapshotEntry) -> Iterator[bytes]:
    """The bytes of a file piece by piece, or the target of a link."""
    if entry.pieces is None:
        yield store.blob(entry.oid)
    else:
        for item in store.tree(entry.pieces):
            yield store.blob(item.oid)


def omissions(store: Directories, root: DirectoryIds) -> list[tuple[bytes, Omission]]:
    """Everything that a snapshot leaves out, sorted by path."""
    found = []
    pending = [(b"", root)]
    while pending:
        prefix, ids = pending.pop()
        directory = store.directory(ids)
        found += [(prefix + name, why) for name, why in directory.sidecar.omitted.items()]
        pending += [(prefix + name + b"/", inner) for name, inner in directory.directories.items()]
    return sorted(found)
