"""Keeps a store small and few in files: puts packs together, drops what no ref names, sweeps leftovers.

New packs appear before old ones go, so a kill in between leaves doubled objects, never missing ones.
"""

from __future__ import annotations

import mmap
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from agentrewind.errors import DamagedError
from agentrewind.records import JsonObject
from agentrewind.workspace.objects import COMMIT, MODE_DIRECTORY, TREE, decode_index, index_ids
from agentrewind.workspace.pack_writer import TEMPORARY, UNFINISHED, PackWriter, storage_errors
from agentrewind.workspace.power import LOSSES, LOST
from agentrewind.workspace.snapshots import SnapshotStore

MANY = 48
"""So many small packs are put together."""

SMALL = 32 << 20
_KINDS_OF_DELTA = (6, 7)
_GIT_SUFFIXES = (".rev", ".bitmap")
"""What the git program writes beside a pack of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GcReport:
    """What a gc did; sizes are bytes of the whole store."""

    size_before: int
    size_after: int
    dropped: int
    swept: tuple[str, ...]

    def to_json(self) -> JsonObject:
        return {
            "size_before": self.size_before,
            "size_after": self.size_after,
            "dropped": self.dropped,
            "swept": list(self.swept),
        }


def store_size(git_dir: Path) -> int:
    """Bytes of all files of a store."""
    files = (path for path in git_dir.rglob("*") if path.is_file() and not path.is_symlink())
    return sum(path.stat().st_size for path in files)


def consolidate(store: SnapshotStore) -> bool:
    """Put small packs together once there are many; whether that was done.

    Raises:
        StorageError: the store cannot be written; it is as it was.
    """
    if len(store.pack_names()) <= MANY:
        return False
    with store.packing() as ours:
        if not ours:
            return False
        chosen = _youngest(store)
        if len(chosen) <= MANY // 2:
            return False
        _rewrite(store, chosen, None)
        return True


def collect(store: SnapshotStore) -> GcReport:
    """Drop every object that no ref leads to, and what killed processes left behind.

    Raises:
        MissingSnapshotError: a ref leads to something missing; nothing was dropped.
        StorageError: the store cannot be written.
    """
    with store.exclusively(), store.packing():
        before = store_size(store.git_dir)
        live = reachable(store)
        dropped = len(store.ids() - live)
        wasteful = [name for name in store.pack_names() if _holds_waste(store, name, live)]
        small = [name for name in store.pack_names() if _pack_size(store, name) < SMALL]
        chosen = sorted({*wasteful, *(small if len(small) > 1 else ())})
        if chosen:
            _rewrite(store, chosen, live)
        swept = tuple(_sweep(store))
        return GcReport(
            size_before=before, size_after=store_size(store.git_dir), dropped=dropped, swept=swept
        )


def reachable(store: SnapshotStore) -> set[bytes]:
    """Every object that some ref leads to.

    Raises:
        MissingSnapshotError: one of them is not in the store.
    """
    pending = [(bytes.fromhex(commit), COMMIT) for commit in store.refs().values()]
    found: set[bytes] = set()
    while pending:
        oid, kind = pending.pop()
        if oid in found:
            continue
        found.add(oid)
        if kind == COMMIT:
            info = store.commit_links(oid)
            pending += [(parent, COMMIT) for parent in info.parents]
            pending.append((info.tree, TREE))
        elif kind == TREE:
            for item in store.tree(oid):
                if item.mode == MODE_DIRECTORY:
                    pending.append((item.oid, TREE))
                else:
                    found.add(item.oid)
    return found


def _youngest(store: SnapshotStore) -> list[str]:
    """The packs worth putting together: small ones, up to the first that outweighs those before it.

    So every object is copied only some log n times, however many snapshots are taken.
    """
    sizes = sorted((_pack_size(store, name), name) for name in store.pack_names())
    chosen: list[str] = []
    total = 0
    for size, name in sizes:
        if size >= SMALL or (len(chosen) > MANY // 2 and size >= total):
            break
        chosen.append(name)
        total += size
    return chosen


def _pack_size(store: SnapshotStore, name: str) -> int:
    try:
        return (store.packs / f"{name}.pack").stat().st_size
    except FileNotFoundError:
        return SMALL


def _holds_waste(store: SnapshotStore, name: str, live: set[bytes]) -> bool:
    return not live.issuperset(_ids(store.packs / name))


def _ids(pack: Path) -> list[bytes]:
    return index_ids(pack.with_suffix(".idx").read_bytes())


def _rewrite(store: SnapshotStore, names: Iterable[str], live: set[bytes] | None) -> None:
    """Copy the (live) objects of some packs into a new one, then remove those packs."""
    writer = PackWriter(store.packs, frozenset())
    done = []
    written: set[bytes] = set()
    try:
        for name in names:
            entries = _entries(store.packs / name)
            if entries is None:
                # deltas, which another program made: left as they are while anything of them is needed
                if live is not None and live.isdisjoint(_ids(store.packs / name)):
                    done.append(name)
                continue
            for oid, data in entries:
                if oid not in written and (live is None or oid in live):
                    written.add(oid)
                    writer.add_raw(oid, data)
            done.append(name)
        # before the packs go that it stands for
        published = writer.publish(durable=True)
    finally:
        writer.abandon()
    _remove(store, [name for name in done if published is None or name != published.name])
    store.reload()


def _remove(store: SnapshotStore, names: Iterable[str]) -> None:
    with storage_errors(store.git_dir):
        for name in names:
            # the index first: a pack is not looked at without one
            for suffix in (".idx", ".pack", *_GIT_SUFFIXES):
                (store.packs / f"{name}{suffix}").unlink(missing_ok=True)


def _entries(pack: Path) -> list[tuple[bytes, memoryview]] | None:
    """The packed objects of a pack, None if it holds deltas.

    Raises:
        DamagedError: an object is not what the index says.
    """
    try:
        index = sorted(decode_index(pack.with_suffix(".idx").read_bytes()), key=lambda entry: entry.offset)
        with pack.with_suffix(".pack").open("rb") as file:
            data = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    except (OSError, ValueError) as error:
        raise DamagedError(f"{pack}.idx cannot be read: {error}; nothing was dropped") from error
    ends = [entry.offset for entry in index[1:]] + [len(data) - 20]
    found = []
    for entry, end in zip(index, ends, strict=True):
        packed = data[entry.offset : end]
        if packed and (packed[0] >> 4) & 7 in _KINDS_OF_DELTA:
            return None
        if zlib.crc32(packed) != entry.crc:
            raise DamagedError(f"object {entry.oid.hex()} in {pack}.pack is damaged; nothing was dropped")
        found.append((entry.oid, packed))
    return found


def _sweep(store: SnapshotStore) -> Iterator[str]:
    """Remove what processes that were killed left behind; only safe while nobody else writes."""
    with storage_errors(store.git_dir):
        for path in sorted(store.packs.iterdir()):
            orphan = path.suffix == ".pack" and not path.with_suffix(".idx").exists()
            if path.name.startswith(TEMPORARY) or orphan or path.suffix == LOST:
                path.unlink()
                yield path.name
        for path in sorted(store.git_dir.rglob(f"{UNFINISHED}*")):
            path.unlink()
            yield path.name
        for path in sorted(store.git_dir.glob("stat-cache-*")):
            path.unlink()
        (store.git_dir / LOSSES).unlink(missing_ok=True)
