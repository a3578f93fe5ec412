"""Reads out of snapshots how their files differ, also of two stores."""

from __future__ import annotations

import re
from dataclasses import dataclass

from agentrewind.file_comparison import LONGEST_BYTES, FileDifference, Form, Version, compare_versions
from agentrewind.records import Change, CommitId
from agentrewind.workspace import views
from agentrewind.workspace.snapshots import SnapshotStore

_SIZE = re.compile(rb"agentrewind-pieces 1\nsize (\d+)\n")


LISTED = 200
"""So many files are looked into where not all are asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """A snapshot and where it is kept."""

    store: SnapshotStore
    commit: CommitId


def changes(before: Side, after: Side) -> tuple[Change, ...]:
    """The paths that differ, sorted; contents have equal names in every store."""
    if before.store.git_dir == after.store.git_dir:
        return before.store.diff(before.commit, after.commit)
    left, right = _facts(before), _facts(after)
    found = [
        Change(status=_status(left.get(path), right.get(path)), path=path)
        for path in sorted(left.keys() | right.keys())
        if left.get(path) != right.get(path)
    ]
    # a directory that holds something came or went with what it holds, as within one store
    inner = {path.rpartition(b"/")[0] for path in left.keys() | right.keys()}
    return tuple(each for each in found if each.status == "M" or each.path not in inner)


@dataclass(frozen=True, slots=True, kw_only=True)
class Differences:
    """How the files of two snapshots differ, in the order of their paths.

    Attributes:
        listed: the first of them.
        more: how many others there are; `inside`: how many paths inside a `.git` that are not listed either.
    """

    listed: tuple[FileDifference, ...]
    more: int
    inside: int


def differences(
    before: Side, after: Side, *, repositories: bool = False, limit: int | None = None
) -> Differences:
    """How each path differs; at most `limit` are looked into, and files inside a `.git` only on demand.

    Raises:
        MissingSnapshotError: a snapshot cannot be read.
    """
    found = changes(before, after)
    wanted = [change for change in found if repositories or not in_repository(change.path)]
    listed = wanted if limit is None else wanted[:limit]
    return Differences(
        listed=tuple(
            compare_versions(
                change.path, change.status, version(before, change.path), version(after, change.path)
            )
            for change in listed
        ),
        more=len(wanted) - len(listed),
        inside=len(found) - len(wanted),
    )


def in_repository(path: bytes) -> bool:
    """Whether a path lies inside a repository's own folder."""
    return b".git" in path.split(b"/")


def version(side: Side, path: bytes) -> Version | None:
    """What a snapshot holds at a path, None where it holds nothing."""
    entry = views.find(side.store, side.store.commit(side.commit).root, path)
    if entry is None:
        return None
    match entry.kind:
        case views.EntryKind.DIRECTORY:
            return Version(form=Form.DIRECTORY, mode=entry.mode, size=0, data=None)
        case views.EntryKind.LINK:
            target = side.store.blob(entry.oid)
            return Version(form=Form.LINK, mode=entry.mode, size=len(target), data=target)
        case views.EntryKind.FILE:
            return _file(side, entry)


def _file(side: Side, entry: views.SnapshotEntry) -> Version:
    data = side.store.blob(entry.oid)
    if entry.pieces is not None:
        size = int(found[1]) if (found := _SIZE.match(data)) else 0
        return Version(form=Form.LONG, mode=entry.mode, size=size, data=None)
    kept = data if len(data) <= LONGEST_BYTES else None
    return Version(form=Form.TEXT, mode=entry.mode, size=len(data), data=kept)


def _facts(side: Side) -> dict[bytes, tuple[views.EntryKind, int, bytes, bytes | None]]:
    """What makes two paths equal: type, permission bits (not a link's), contents, hard links."""
    found = {}
    for entry in side.store.entries(side.commit):
        mode = 0 if entry.kind is views.EntryKind.LINK else entry.mode
        oid = b"" if entry.kind is views.EntryKind.DIRECTORY else entry.oid
        found[entry.path] = (entry.kind, mode, oid, entry.leader)
    return found


def _status(left: tuple[object, ...] | None, right: tuple[object, ...] | None) -> str:
    if left is None:
        return "A"
    if right is None:
        return "D"
    return "M" if left[0] == right[0] else "T"
