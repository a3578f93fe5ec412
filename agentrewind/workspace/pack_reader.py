"""Reads objects from one pack: by itself those that we wrote, by dulwich what another program packed."""

from __future__ import annotations

import mmap
import zlib
from contextlib import suppress
from pathlib import Path

from dulwich.errors import ApplyDeltaError, ChecksumMismatch, NotGitRepository
from dulwich.object_format import DEFAULT_OBJECT_FORMAT
from dulwich.objects import ObjectID
from dulwich.pack import Pack

_IDS = 1032
_WHOLE = (1, 2, 3)
"""The kinds of object that stand in a pack as they are: commit, tree, blob."""


class PackReader:
    """A pack and its index, by their common path without suffix; mapped when something is first read.

    Safe for threads. What is no pack raises ValueError or OSError, from `read` as well.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._index: mmap.mmap | None = None
        self._data: mmap.mmap | None = None
        self._foreign: Pack | None = None

    def close(self) -> None:
        """Release the files."""
        for mapped in (self._data, self._index):
            if mapped is not None:
                with suppress(BufferError):  # another thread still reads; it is released after that
                    mapped.close()
        self._data = self._index = None
        if self._foreign is not None:
            self._foreign.close()

    def read(self, oid: bytes) -> tuple[int, bytes]:
        """The kind and bytes of an object; raises KeyError where the pack has none of this id."""
        index, data = self._index, self._data
        if index is None or data is None:
            index = self._index = _mapped(f"{self._path}.idx")
            data = self._data = _mapped(f"{self._path}.pack")
        position = _find(index, oid)
        byte = data[position]
        kind, size, shift = byte >> 4 & 7, byte & 15, 4
        while byte & 0x80:
            position += 1
            byte = data[position]
            size |= (byte & 0x7F) << shift
            shift += 7
        if kind not in _WHOLE:
            return self._read_foreign(oid)
        with memoryview(data) as view:
            found = zlib.decompress(view[position + 1 :], bufsize=size or 1)
        if len(found) != size:
            raise ValueError(f"{len(found)} bytes instead of {size}")
        return kind, found

    def _read_foreign(self, oid: bytes) -> tuple[int, bytes]:
        """An object that is a difference from another one, or of a kind that we do not write."""
        if self._foreign is None:
            self._foreign = Pack(self._path, object_format=DEFAULT_OBJECT_FORMAT)
        try:
            kind, data = self._foreign.get_raw(ObjectID(oid.hex().encode()))
        except (ApplyDeltaError, ChecksumMismatch, NotGitRepository) as error:
            raise ValueError(str(error)) from error
        return kind, data if isinstance(data, bytes) else b"".join(data)


def _mapped(path: str) -> mmap.mmap:
    with Path(path).open("rb") as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


def _find(index: mmap.mmap, oid: bytes) -> int:
    """Where a version 2 index says that the object begins."""
    if index[:8] != b"\xfftOc\0\0\0\2":
        raise ValueError("not a version 2 pack index")
    first = 8 + 4 * oid[0]
    low = int.from_bytes(index[first - 4 : first], "big") if oid[0] else 0
    high = int.from_bytes(index[first : first + 4], "big")
    middle = low
    while low < high:
        middle = (low + high) // 2
        start = _IDS + 20 * middle
        there = index[start : start + 20]
        if there == oid:
            break
        if there < oid:
            low = middle + 1
        else:
            high = middle
    else:
        raise KeyError(oid)
    count = int.from_bytes(index[_IDS - 4 : _IDS], "big")
    start = _IDS + 24 * count + 4 * middle
    offset = int.from_bytes(index[start : start + 4], "big")
    if offset >> 31:
        start = _IDS + 28 * count + 8 * (offset & 0x7FFF_FFFF)
        offset = int.from_bytes(index[start : start + 8], "big")
    return offset
