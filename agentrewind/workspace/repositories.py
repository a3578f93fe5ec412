"""Which commits of repositories inside the workspace a restore leaves without a name.

A restore brings a `.git` directory back whole, so commits made since the snapshot are no longer in it. They
are in the snapshot that was taken just before, and come back with it.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator
from dataclasses import replace
from typing import Protocol

from agentrewind.errors import MissingSnapshotError
from agentrewind.records import CommitId
from agentrewind.workspace.objects import index_ids
from agentrewind.workspace.policy import GIT_NAME
from agentrewind.workspace.snapshots import CommitInfo
from agentrewind.workspace.trees import DirectoryIds
from agentrewind.workspace.views import (
    Directories,
    EntryKind,
    SnapshotEntry,
    contents,
    entries,
    find,
    shown,
)

_SHA = re.compile(rb"\b[0-9a-f]{40}\b")
_NOTHING = b"0" * 40
_NAMING = (b"HEAD", b"ORIG_HEAD", b"MERGE_HEAD", b"FETCH_HEAD", b"CHERRY_PICK_HEAD", b"packed-refs")


class Commits(Directories, Protocol):
    """Reads snapshots."""

    def commit(self, commit: CommitId) -> CommitInfo: ...


def lost_commits(store: Commits, before: CommitId, after: CommitId) -> tuple[str, ...]:
    """Commits that repositories name in one snapshot and do not hold in the other, as `path: sha (ref)`."""
    lost = []
    pairs = _repositories(store, store.commit(before).root, store.commit(after).root, b"")
    for path, ids, other in pairs:
        try:
            named = _named(store, ids)
            kept = set() if other is None else {*_named(store, other), *_objects(store, other)}
        except (MissingSnapshotError, ValueError):
            continue  # the restore itself reports damage; this list is only a service
        where = shown(path) or "."
        gone = [
            (sha, ref) for sha, ref in named.items() if sha not in kept and _may_be_commit(store, ids, sha)
        ]
        lost += [f"{where}: {sha.decode()} ({ref})" for sha, ref in gone]
    return tuple(sorted(lost))


def _repositories(
    store: Directories, before: DirectoryIds, after: DirectoryIds | None, prefix: bytes
) -> Iterator[tuple[bytes, DirectoryIds, DirectoryIds | None]]:
    """Repositories of the first snapshot that differ in the second."""
    if before == after:
        return
    inner = store.directory(before).directories
    others = store.directory(after).directories if after is not None else {}
    for name, ids in inner.items():
        other = others.get(name)
        if name == GIT_NAME:
            if ids != other:
                yield prefix.rstrip(b"/"), ids, other
        else:
            yield from _repositories(store, ids, other, prefix + name + b"/")


def _named(store: Directories, repository: DirectoryIds) -> dict[bytes, str]:
    """The object ids that refs, reflogs and the like of a repository name, each with one that names it."""
    found: dict[bytes, str] = {}
    for entry in _of_interest(store, repository):
        names = _SHA.findall(b"".join(contents(store, entry)))
        for sha in names:
            if sha != _NOTHING:
                found.setdefault(sha, shown(entry.path))
    return found


def _may_be_commit(store: Directories, repository: DirectoryIds, sha: bytes) -> bool:
    """False for what is known to be another kind of object, a tag say; packed objects are not looked into."""
    found = find(store, repository, b"objects/" + sha[:2] + b"/" + sha[2:])
    if found is None:
        return True
    try:
        return zlib.decompressobj().decompress(b"".join(contents(store, found)), 16).startswith(b"commit ")
    except zlib.error:
        return True


def _of_interest(store: Directories, repository: DirectoryIds) -> Iterator[SnapshotEntry]:
    directory = store.directory(repository)
    for name in _NAMING:
        found = find(store, repository, name)
        if found is not None and found.kind is EntryKind.FILE:
            yield found
    for name in (b"refs", b"logs", b"worktrees"):
        if name in directory.directories:
            for entry in entries(store, directory.directories[name]):
                if entry.kind is EntryKind.FILE:
                    yield replace(entry, path=name + b"/" + entry.path)


def _objects(store: Directories, repository: DirectoryIds) -> Iterator[bytes]:
    """All objects in a repository's own object folder."""
    objects = store.directory(repository).directories.get(b"objects")
    if objects is None:
        return
    for name, ids in store.directory(objects).directories.items():
        if len(name) == 2:
            yield from (name + rest for rest in store.directory(ids).blobs)
        elif name == b"pack":
            for file in store.directory(ids).blobs:
                entry = find(store, ids, file) if file.endswith(b".idx") else None
                if entry is not None:
                    yield from (oid.hex().encode() for oid in index_ids(b"".join(contents(store, entry))))
