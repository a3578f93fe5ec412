"""Makes snapshots outlast a power failure, and leads a store back to what outlasted one.

Snapshots are not synced one by one: that would hold up the tool call that waits for them. What is newer than
the last sync may be lost when the machine stops, wholly or in part and in any order. A killed process loses
nothing.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path

from agentrewind.durable import sync_directory
from agentrewind.errors import MissingSnapshotError
from agentrewind.records import CommitId
from agentrewind.workspace.objects import MODE_DIRECTORY, index_ids
from agentrewind.workspace.pack_writer import replace_file, storage_errors
from agentrewind.workspace.refs import SYNCED, read_synced, write_synced
from agentrewind.workspace.snapshots import SnapshotStore
from agentrewind.workspace.stat_cache import load_inventory

BOOT = "boot"
"""Which start of the machine wrote to the store last."""

LOSSES = "lost-by-power-failure"
"""What a recovery had to give up, a line each, until gc clears it away."""

LOST = ".lost"
_CLOCKS_APART_NS = 10**9
"""More than the file system's clock is behind the process's."""
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


def sync(store: SnapshotStore, packs: Iterable[str], ref: str, commit: CommitId) -> None:
    """Make packs durable, and with them the ref that names the commit.

    Raises:
        StorageError: they may not outlast a power failure.
    """
    began = time.time_ns()
    with storage_errors(store.git_dir):
        for name in packs:
            for suffix in (".pack", ".idx"):
                _sync_file(store.packs / f"{name}{suffix}")
        sync_directory(store.packs)
        _sync_file(store.git_dir / ref)
    write_synced(store.git_dir, ref, commit)
    with storage_errors(store.git_dir):
        os.utime(store.git_dir / SYNCED / ref, ns=(began, began))  # see `left_unsynced`


def left_unsynced(store: SnapshotStore) -> set[str]:
    """The packs that others published since anybody last synced: they may have been killed before that."""
    with storage_errors(store.git_dir):
        synced = (path for path in (store.git_dir / SYNCED).rglob("*") if path.is_file())
        last = max((path.stat().st_mtime_ns for path in synced), default=0) - _CLOCKS_APART_NS
        return {path.stem for path in store.packs.glob("pack-*.pack") if path.stat().st_mtime_ns >= last}


def _sync_file(path: Path) -> None:
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return  # put together with others meanwhile, durably
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def recover(store: SnapshotStore) -> tuple[str, ...]:
    """See, once after each start of the machine, that the store is whole, and lead refs back to what is.

    Gives what was lost, in words. Packs that are not whole are set aside; nothing is deleted.

    Raises:
        StorageError: the store cannot be written.
    """
    try:
        present = _BOOT_ID.read_bytes()
    except OSError:
        return ()  # a system that does not tell its starts apart
    path = store.git_dir / BOOT
    with storage_errors(store.git_dir):
        known = path.read_bytes() if path.exists() else None
    if known == present:
        return ()
    found: list[str] = []
    with store.exclusively():
        whole: set[bytes] = set()
        for line in chain(_set_torn_packs_aside(store), _lead_refs_back(store, whole)) if known else ():
            _note(store, line)  # before it is acted upon
            found.append(line)
        with storage_errors(store.git_dir):
            _forget_inventories(store, whole)
            replace_file(path, present, durable=True)
    return tuple(found)


def _note(store: SnapshotStore, line: str) -> None:
    path = store.git_dir / LOSSES
    with storage_errors(path):
        earlier = path.read_bytes() if path.exists() else b""
        replace_file(path, earlier + line.encode() + b"\n", durable=True)


def losses(store: SnapshotStore) -> list[str]:
    """What earlier recoveries had to give up."""
    try:
        return (store.git_dir / LOSSES).read_text(encoding="utf-8", errors="replace").splitlines()
    except FileNotFoundError:
        return []


def _set_torn_packs_aside(store: SnapshotStore) -> Iterator[str]:
    with storage_errors(store.git_dir):
        for pack in sorted(store.packs.glob("pack-*.idx")):
            if not _is_whole(pack.with_suffix("")):
                yield f"a power failure left {pack.stem} in pieces; it is set aside"
                # the index first: a pack is not looked at without one
                for path in (pack, pack.with_suffix(".pack")):
                    if path.exists():
                        path.rename(path.with_name(path.name + LOST))
        sync_directory(store.packs)
    store.reload()


def _is_whole(pack: Path) -> bool:
    """Whether a pack and its index end in the checksums of what they hold."""
    try:
        index = pack.with_suffix(".idx").read_bytes()
        index_ids(index)
        digest = hashlib.sha1(index[:-20], usedforsecurity=False).digest()
        return digest == index[-20:] and _checksum(pack.with_suffix(".pack")) == index[-40:-20]
    except (OSError, ValueError):
        return False


def _checksum(path: Path) -> bytes | None:
    """The checksum at the end of a file, if it is that of all before it."""
    digest = hashlib.sha1(usedforsecurity=False)
    left = path.stat().st_size - 20
    with path.open("rb") as file:
        while left > 0 and (block := file.read(min(left, 1 << 20))):
            digest.update(block)
            left -= len(block)
        stated = file.read()
    return stated if stated == digest.digest() else None


def _lead_refs_back(store: SnapshotStore, whole: set[bytes]) -> Iterator[str]:
    """Let each ref name the newest snapshot of its history that is whole; the history ends at a hole."""
    tips, synced = store.refs(), read_synced(store.git_dir)
    for name in sorted({*tips, *synced}):
        tip = tips.get(name)  # None where the ref itself is lost
        known = [commit for commit in (tip, synced.get(name)) if commit is not None]
        found = next((each for each in (_newest_whole(store, one, whole) for one in known) if each), None)
        if found is None:
            yield f"a power failure took snapshot {tip}, which {name} named; none before it is known"
            store.delete_ref(name)
            continue
        if found != tip:
            yield f"a power failure took what {name} named ({tip or 'unknown'}); it names {found} now"
            store.set_ref(name, found)
        history, ends = _history(store, found, whole)
        if not ends:
            continue
        yield f"a power failure took snapshots before {', '.join(each.hex() for each in ends)} of {name}"
        older = synced.get(name)
        if older is not None and older not in history and _is_snapshot(store, older, whole):
            store.set_ref(f"{name}-synced", older)
            ends += _history(store, older, whole)[1]
        store.set_shallow(ends)


def _history(store: SnapshotStore, tip: CommitId, whole: set[bytes]) -> tuple[set[CommitId], list[bytes]]:
    """A whole snapshot with the whole ones that lead to it, and those of them that follow a lost one."""
    found, pending, ends = {tip}, [tip], []
    while pending:
        commit = pending.pop()
        parents = store.commit(commit).parents
        kept = [each for each in parents if each in found or _is_snapshot(store, each, whole)]
        if len(kept) < len(parents):
            ends.append(bytes.fromhex(commit))
            continue
        pending += [each for each in kept if each not in found]
        found.update(kept)
    return found, ends


def regain(store: SnapshotStore, ref: str, commits: Iterable[CommitId]) -> frozenset[CommitId]:
    """Find out which snapshots, newest first, are whole, and see that refs keep them after a power failure.

    Where the ref names none, or one that leads to a whole one, it names that; others get refs beside it.

    Raises:
        StorageError: the store cannot be written.
    """
    whole: set[bytes] = set()
    wanted = list(dict.fromkeys(commits))
    found = frozenset(each for each in wanted if _is_snapshot(store, each, whole))
    tip = store.ref(ref)
    kept = set() if tip is None else _history(store, tip, whole)[0]
    for commit in wanted:
        if commit in found and commit not in kept:
            history, ends = _history(store, commit, whole)
            if ends:
                store.set_shallow(ends)
            if tip is None or tip in history:
                tip = commit
                store.set_ref(ref, commit, durable=True)
            else:
                store.set_ref(f"{ref}-{commit[:16]}", commit, durable=True)
            kept |= history
    return found


def _newest_whole(store: SnapshotStore, tip: CommitId, whole: set[bytes]) -> CommitId | None:
    pending, seen = [tip], {tip}
    while pending:
        commit = pending.pop(0)
        if _is_snapshot(store, commit, whole):
            return commit
        try:
            parents = store.commit(commit).parents
        except MissingSnapshotError:
            continue
        fresh = [parent for parent in parents if parent not in seen]
        pending += fresh
        seen.update(fresh)
    return None


def _is_snapshot(store: SnapshotStore, commit: CommitId, whole: set[bytes]) -> bool:
    """Whether a snapshot is whole; those before it are not looked at."""
    try:
        info = store.commit(commit)
    except MissingSnapshotError:
        return False
    return _is_there(store, [(info.root.tree, True), (info.root.meta, True), (info.policy, False)], whole)


def _is_there(store: SnapshotStore, roots: list[tuple[bytes, bool]], whole: set[bytes]) -> bool:
    """Whether all that some objects lead to is in the store; what was found whole is not looked at again."""
    pending = list(roots)
    found: set[bytes] = set()
    while pending:
        oid, is_tree = pending.pop()
        if oid in whole or oid in found:
            continue
        if not store.contains(oid):
            return False
        found.add(oid)
        if is_tree:
            pending += [(item.oid, item.mode == MODE_DIRECTORY) for item in store.tree(oid)]
    whole |= found
    return True


def _forget_inventories(store: SnapshotStore, whole: set[bytes]) -> None:
    """An inventory must not name trees as stored that are among what was lost."""
    for path in store.git_dir.glob("stat-cache-*"):
        cached = load_inventory(path)
        if cached is None or not _is_snapshot(store, cached.commit, whole):
            path.unlink()
