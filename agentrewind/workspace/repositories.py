"""Which commits of repositories inside the workspace a restore leaves without a name."""

from __future__ import annotations

import re
from collections.abc import Iterator

from agentrewind.records import CommitId
from agentrewind.workspace.snapshots import SnapshotStore
from agentrewind.workspace.trees import DirectoryIds, StoredDirectory
from agentrewind.workspace.views import shown

_GIT = b".git"
_OBJECT = re.compile(rb"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_NOTHING = re.compile(rb"0+")
_SINGLE = (b"HEAD", b"packed-refs", b"ORIG_HEAD")


def lost_commits(store: SnapshotStore, before: CommitId, after: CommitId) -> tuple[str, ...]:
    """`repository: id (ref)` for each commit that a ref or reflog names before and none names after.

    Only repositories whose own folder differs are looked at. A folder `.git` that is no repository, or
    files of git in a form that cannot be read, name nothing.
    """
    found: list[str] = []
    for repository in _changed_repositories(store, before, after):
        earlier = _named(store, before, repository)
        later = _named(store, after, repository)
        where = shown(repository[: -len(_GIT)].rstrip(b"/")) or "."
        found += [
            f"{where}: {commit.decode()} ({shown(ref)})"
            for commit, ref in earlier.items()
            if commit not in later
        ]
    return tuple(found)


def _changed_repositories(store: SnapshotStore, before: CommitId, after: CommitId) -> list[bytes]:
    found: set[bytes] = set()
    for change in store.diff(before, after):
        parts = change.path.split(b"/")
        if _GIT in parts:
            found.add(b"/".join(parts[: parts.index(_GIT) + 1]))
    return sorted(found)


def _named(store: SnapshotStore, commit: CommitId, repository: bytes) -> dict[bytes, bytes]:
    """Each commit that the repository's refs and reflogs name, with the file that names it."""
    ids: DirectoryIds | None = store.commit(commit).root
    for part in repository.split(b"/"):
        ids = store.directory(ids).directories.get(part) if ids else None
    if ids is None:
        return {}
    top = store.directory(ids)
    named: dict[bytes, bytes] = {}
    files = [(name, store.blob(top.blobs[name])) for name in _SINGLE if name in top.blobs]
    for name in (b"refs", b"logs"):
        if (inner := top.directories.get(name)) is not None:
            files += _files(store, store.directory(inner), name + b"/")
    for name, text in files:
        for found in _OBJECT.findall(text):
            if not _NOTHING.fullmatch(found):
                named.setdefault(found, name)
    return named


def _files(store: SnapshotStore, directory: StoredDirectory, prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
    for name, oid in directory.blobs.items():
        yield prefix + name, store.blob(oid)
    for name, inner in directory.directories.items():
        yield from _files(store, store.directory(inner), prefix + name + b"/")
