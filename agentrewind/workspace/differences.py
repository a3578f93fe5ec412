"""How two snapshots differ, worked out from those of their directories that are not the same."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from agentrewind.records import Change
from agentrewind.workspace.sidecar import FileKind, Omission
from agentrewind.workspace.trees import DirectoryIds, StoredDirectory
from agentrewind.workspace.views import Directories, EntryKind

_Roots: TypeAlias = tuple[DirectoryIds, DirectoryIds]


def diff(
    store: Directories, before: DirectoryIds, after: DirectoryIds, *, known: bool = False
) -> tuple[Change, ...]:
    """What differs between two snapshots, sorted by path.

    With `known`, a path that one of them did not look at in time is no difference: nobody knows.

    A path is A(dded), D(eleted), M(odified: contents, mode, extended attributes or hard links) or T (another
    type). A directory is named when its mode, its attributes or its type changed, or it came or went empty;
    times alone are no change.
    """
    changes = list(_diff(store, before, after, b"", (before, after) if known else None))
    return tuple(sorted(changes, key=lambda change: change.path))


def _diff(
    store: Directories,
    before: DirectoryIds,
    after: DirectoryIds,
    prefix: bytes,
    roots: _Roots | None,
) -> Iterator[Change]:
    if before == after:
        return
    old, new = store.directory(before), store.directory(after)
    names = {*old.blobs, *old.directories, *new.blobs, *new.directories}
    if roots is not None:
        names -= {*_late(old), *_late(new)}
    for name in sorted(names):
        path = prefix + name
        old_inner, new_inner = old.directories.get(name), new.directories.get(name)
        if old_inner is not None and new_inner is not None:
            if old_inner != new_inner:
                was, now = store.directory(old_inner).sidecar, store.directory(new_inner).sidecar
                if (was.mode, was.attributes) != (now.mode, now.attributes):
                    yield Change(status="M", path=path)
                yield from _diff(store, old_inner, new_inner, path + b"/", roots)
        else:
            yield from _diff_name(store, old, new, path, roots)


def _diff_name(
    store: Directories, old: StoredDirectory, new: StoredDirectory, path: bytes, roots: _Roots | None
) -> Iterator[Change]:
    name = path.rpartition(b"/")[2]
    old_inner, new_inner = old.directories.get(name), new.directories.get(name)
    was, now = _kind(old, name), _kind(new, name)
    if was is None:
        yield from _whole(store, new_inner, path, "M" if name in old.sidecar.omitted else "A")
    elif now is None:
        yield from _whole(store, old_inner, path, "M" if name in new.sidecar.omitted else "D")
    elif was is not now:
        yield Change(status="T", path=path)
        if old_inner is not None:
            yield from _inside(store, old_inner, path, "D")
        if new_inner is not None:
            yield from _inside(store, new_inner, path, "A")
    elif old.blobs[name] != new.blobs[name] or _differ(store, old, new, name, roots):
        yield Change(status="M", path=path)


def _late(directory: StoredDirectory) -> Iterator[bytes]:
    return (name for name, why in directory.sidecar.omitted.items() if why is Omission.LATE)


def _kind(directory: StoredDirectory, name: bytes) -> EntryKind | None:
    if name in directory.directories:
        return EntryKind.DIRECTORY
    if name in directory.blobs:
        return EntryKind.LINK if name in directory.links else EntryKind.FILE
    return None


def _differ(
    store: Directories, old: StoredDirectory, new: StoredDirectory, name: bytes, roots: _Roots | None
) -> bool:
    """Whether mode, extended attributes or hard links differ."""
    was, now = old.sidecar.files[name], new.sidecar.files[name]
    if was.leader == now.leader:
        mode_differs = was.kind is not FileKind.LINK and was.mode != now.mode
        return mode_differs or was.attributes != now.attributes
    # a file that was not looked at cannot lead, so another of its names did
    return roots is None or not (
        _is_late(store, roots[1], was.leader) or _is_late(store, roots[0], now.leader)
    )


def _is_late(store: Directories, root: DirectoryIds, path: bytes | None) -> bool:
    ids: DirectoryIds | None = root
    for name in path.split(b"/") if path is not None else ():
        if ids is None:
            return False
        directory = store.directory(ids)
        if directory.sidecar.omitted.get(name) is Omission.LATE:
            return True
        ids = directory.directories.get(name)
    return False


def _whole(store: Directories, inner: DirectoryIds | None, path: bytes, status: str) -> Iterator[Change]:
    inside = list(_inside(store, inner, path, status)) if inner is not None else []
    yield from inside or [Change(status=status, path=path)]


def _inside(store: Directories, ids: DirectoryIds, path: bytes, status: str) -> Iterator[Change]:
    directory = store.directory(ids)
    for name in [*directory.blobs, *directory.directories]:
        yield from _whole(store, directory.directories.get(name), path + b"/" + name, status)
