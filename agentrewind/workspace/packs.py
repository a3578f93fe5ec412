"""The objects of a store: found in its packs, read from them, and added as one pack at a time."""

from __future__ import annotations

import weakref
import zlib
from collections.abc import Iterable
from pathlib import Path
from threading import Lock

from agentrewind.errors import MissingSnapshotError
from agentrewind.workspace.objects import BLOB, TREE, TreeItem, decode_tree, index_ids
from agentrewind.workspace.pack_reader import PackReader
from agentrewind.workspace.pack_writer import PackWriter, storage_errors

_ERRORS = (KeyError, ValueError, AssertionError, OSError, zlib.error)


class PackedObjects:
    """What the packs of a store hold; safe for threads.

    Attributes:
        packs: the folder of the packs.
        unsynced: the packs that may not outlast a power failure yet.
    """

    def __init__(self, git_dir: Path) -> None:
        self.git_dir = git_dir
        self.packs = git_dir / "objects" / "pack"
        self.unsynced: set[str] = set()
        self._open_packs: dict[str, PackReader] = {}
        self._where: dict[bytes, str] = {}
        self._registering = Lock()
        self._release = weakref.finalize(self, _close_all, self._open_packs)

    def close(self) -> None:
        """Release files and memory; nothing may be read afterwards."""
        self._release()
        self._where.clear()

    def reload(self) -> None:
        """See what other processes did to the packs."""
        with self._registering, storage_errors(self.git_dir):
            names = {path.stem for path in self.packs.glob("pack-*.idx")}
            where: dict[bytes, str] = {}
            for name in sorted(names):
                try:
                    ids = index_ids((self.packs / f"{name}.idx").read_bytes())
                except (FileNotFoundError, ValueError):
                    continue  # another process removed it, or `verify` will name what is missing
                self._register(name, ids, where)
            self._where = where  # at once: other threads read meanwhile
            for gone in set(self._open_packs) - names:
                self._open_packs.pop(gone).close()

    def _register(self, name: str, ids: Iterable[bytes], where: dict[bytes, str]) -> None:
        if name not in self._open_packs:
            self._open_packs[name] = PackReader(f"{self.packs}/{name}")
        where.update(dict.fromkeys(ids, name))

    def new_pack(self) -> PackWriter:
        """A writer for the objects of one snapshot; see `publish`."""
        return PackWriter(self.packs, self._where)

    def publish(self, writer: PackWriter) -> None:
        """Make what was written part of the store."""
        pack = writer.publish()
        if pack is not None:
            with self._registering:
                self._register(pack.name, writer.ids, self._where)
            self.unsynced.add(pack.name)

    def contains(self, oid: bytes) -> bool:
        return oid in self._where

    def ids(self) -> set[bytes]:
        """Every object of the store."""
        return set(self._where)

    def pack_names(self) -> list[str]:
        return sorted(self._open_packs)

    def read(self, oid: bytes) -> tuple[int, bytes]:
        """The kind and bytes of an object.

        Raises:
            MissingSnapshotError: it is missing or damaged.
        """
        try:
            return self._open_packs[self._where[oid]].read(oid)
        except _ERRORS:
            self.reload()  # another process may have put the packs together
        try:
            return self._open_packs[self._where[oid]].read(oid)
        except _ERRORS as error:
            reason = "not in the store" if isinstance(error, KeyError) else f"damaged ({error})"
            raise MissingSnapshotError(oid.hex(), f"the object is {reason}") from error

    def read_as(self, oid: bytes, kind: int) -> bytes:
        """The bytes of an object that has to be of this kind."""
        found, data = self.read(oid)
        if found != kind:
            raise MissingSnapshotError(oid.hex(), "the object is of another kind")
        return data

    def blob(self, oid: bytes) -> bytes:
        """The bytes of a blob."""
        return self.read_as(oid, BLOB)

    def tree(self, oid: bytes) -> list[TreeItem]:
        """The entries of a tree."""
        try:
            return decode_tree(self.read_as(oid, TREE))
        except ValueError as error:
            raise MissingSnapshotError(oid.hex(), str(error)) from error


def _close_all(packs: dict[str, PackReader]) -> None:
    while packs:
        packs.popitem()[1].close()
