"""Collects the objects of one snapshot and makes them one pack, which appears whole or not at all."""

from __future__ import annotations

import hashlib
import os
import tempfile
import zlib
from collections.abc import Collection, Container, Iterator
from contextlib import contextmanager
from pathlib import Path

from agentrewind.durable import sync_directory
from agentrewind.errors import StorageError
from agentrewind.workspace.objects import IndexEntry, encode_index, object_id, pack_entry, pack_header

_BUFFER = 4 << 20
TEMPORARY = "tmp_pack_"


class PackWriter:
    """A pack in the making; nothing of it can be found in the store until `publish`.

    Args:
        directory: the store's `objects/pack`.
        known: ids of the objects that are stored already; they are not written again.
    """

    def __init__(self, directory: Path, known: Container[bytes]) -> None:
        self._directory = directory
        self._known = known
        self._entries: dict[bytes, IndexEntry] = {}
        self._buffer: list[bytes | memoryview] = []
        self._buffered = 0
        self._offset = len(pack_header(0))
        self._file: int | None = None
        self._path: Path | None = None

    def add(self, kind: int, data: bytes) -> bytes:
        """The object's id; it is written unless the store or this pack holds it.

        Raises:
            StorageError: the disk is full or the store cannot be written.
        """
        oid = object_id(kind, data)
        if oid not in self._known and oid not in self._entries:
            self.add_raw(oid, pack_entry(kind, data))
        return oid

    def add_raw(self, oid: bytes, entry: bytes | memoryview) -> None:
        """Add an object in its packed form, as it stands in another pack."""
        self._entries[oid] = IndexEntry(oid, self._offset, zlib.crc32(entry))
        self._offset += len(entry)
        self._buffer.append(entry)
        self._buffered += len(entry)
        if self._buffered > _BUFFER:
            with storage_errors(self._directory):
                self._flush()

    @property
    def size(self) -> int:
        """Bytes of the pack so far."""
        return self._offset

    @property
    def ids(self) -> Collection[bytes]:
        """The objects added so far, until `abandon`."""
        return self._entries.keys()

    def publish(self, *, durable: bool = False) -> Path | None:
        """Move the pack into the store and return its path without suffix; None if nothing was added.

        One that is durable outlasts a power failure once this returns.

        Raises:
            StorageError: it could not be written; nothing of it is left.
        """
        if not self._entries:
            return None
        try:
            with storage_errors(self._directory):
                return self._publish(durable=durable)
        except BaseException:
            self.abandon()
            raise

    def abandon(self) -> None:
        """Throw away what was collected."""
        if self._file is not None:
            os.close(self._file)
            self._file = None
        if self._path is not None:
            self._path.unlink(missing_ok=True)
            self._path = None
        self._buffer.clear()
        self._entries.clear()

    def _flush(self) -> int:
        if self._file is None:
            self._file, name = tempfile.mkstemp(prefix=TEMPORARY, dir=self._directory)
            self._path = Path(name)
            write_all(self._file, pack_header(0))
        write_all(self._file, b"".join(self._buffer))
        self._buffer.clear()
        self._buffered = 0
        return self._file

    def _publish(self, *, durable: bool) -> Path:
        header = pack_header(len(self._entries))
        if self._file is None:
            body = header + b"".join(self._buffer)
            checksum = hashlib.sha1(body, usedforsecurity=False).digest()
            self._buffer = [body[len(header) :], checksum]
            file = self._flush()
        else:
            file = self._flush()
            checksum = _rehash(file, header)
            write_all(file, checksum)
        os.lseek(file, 0, os.SEEK_SET)
        write_all(file, header)
        assert self._path is not None
        target = self._directory / f"pack-{checksum.hex()}"
        index = self._path.with_name(self._path.name + ".idx")
        try:
            write_new(index, encode_index(self._entries.values(), checksum), durable=durable)
            if durable:
                os.fsync(file)
            # the index last: a pack without one is not part of the store yet
            self._path.rename(target.with_suffix(".pack"))
            index.rename(target.with_suffix(".idx"))
            if durable:
                sync_directory(self._directory)
        except BaseException:
            index.unlink(missing_ok=True)
            raise
        self._path = None
        os.close(file)
        self._file = None
        return target


def _rehash(file: int, header: bytes) -> bytes:
    digest = hashlib.sha1(header, usedforsecurity=False)
    position = len(header)
    while block := os.pread(file, 1 << 20, position):
        digest.update(block)
        position += len(block)
    return digest.digest()


def write_all(handle: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(handle, view) :]


def write_new(path: Path, data: bytes, *, durable: bool) -> None:
    """Write a file that only its owner can read; what was under the name is overwritten."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        write_all(handle, data)
        if durable:
            os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def storage_errors(directory: Path) -> Iterator[None]:
    """Name the store in errors of the operating system, as `StorageError`."""
    try:
        yield
    except OSError as error:
        raise StorageError(
            f"the snapshot store {directory} cannot be written: {error.strerror or error}; "
            "make room or check its permissions, then resume"
        ) from error


def replace_file(path: Path, data: bytes, *, durable: bool = False) -> None:
    """Put a file, readable by its owner only, in the place of what is there; whole or not at all."""
    temporary = path.with_name(f".tmp-{os.getpid()}-{path.name}")
    try:
        write_new(temporary, data, durable=durable)
        temporary.replace(path)
        if durable:
            sync_directory(path.parent)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
