"""Collects the objects of one snapshot and makes them one pack, which appears whole or not at all."""

from __future__ import annotations

import hashlib
import os
import secrets
import zlib
from collections.abc import Collection, Container, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from agentrewind.durable import sync_directory
from agentrewind.errors import StorageError
from agentrewind.workspace.objects import IndexEntry, encode_index, object_id, pack_entry, pack_header

_BUFFER = 4 << 20
TEMPORARY = "tmp_pack_"
UNFINISHED = ".tmp-"
"""So begin names of what is being written, packs with the former; gc sweeps what was left of it."""


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
        self._path: str | None = None

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
        size = len(entry)
        self._entries[oid] = IndexEntry(oid, self._offset, zlib.crc32(entry))
        self._offset += size
        self._buffer.append(entry)
        self._buffered += size
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
            # under its final name it may be another writer's by now, who has given it an index
            if not os.path.exists(self._path.removesuffix(".pack") + ".idx"):
                with suppress(FileNotFoundError):
                    os.unlink(self._path)
            self._path = None
        self._buffer.clear()
        self._entries.clear()

    def _flush(self) -> int:
        file = self._file
        if file is None:
            file = self._start(_fresh())
            write_all(file, pack_header(0))
        write_all(file, b"".join(self._buffer))
        self._buffer.clear()
        self._buffered = 0
        return file

    def _start(self, name: str) -> int:
        path = f"{self._directory}/{name}"
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        self._file, self._path = file, path
        return file

    def _publish(self, *, durable: bool) -> Path:
        name = self._write_at_once() if self._file is None else self._finish()
        file, path = self._file, self._path
        assert file is not None
        assert path is not None
        target = f"{self._directory}/{name}"
        index = f"{self._directory}/{_fresh()}"
        try:
            _write_new(index, encode_index(self._entries.values(), bytes.fromhex(name[5:])), durable=durable)
            if durable:
                os.fsync(file)
            # the index last: a pack without one is not part of the store yet
            if path != f"{target}.pack":
                os.rename(path, f"{target}.pack")
            os.rename(index, f"{target}.idx")
            if durable:
                sync_directory(self._directory)
        except BaseException:
            with suppress(FileNotFoundError):
                os.unlink(index)
            raise
        os.close(file)
        self._file = self._path = None
        return Path(target)

    def _write_at_once(self) -> str:
        """A pack that is in memory as a whole gets its own name at once: without an index nobody looks."""
        body = pack_header(len(self._entries)) + b"".join(self._buffer)
        checksum = hashlib.sha1(body, usedforsecurity=False).digest()
        name = f"pack-{checksum.hex()}"
        try:
            file = self._start(f"{name}.pack")
        except FileExistsError:  # a killed process's, or one that is in use
            file = self._start(_fresh())
        write_all(file, body + checksum)
        return name

    def _finish(self) -> str:
        file = self._flush()
        header = pack_header(len(self._entries))
        checksum = _rehash(file, header)
        write_all(file, checksum)
        os.lseek(file, 0, os.SEEK_SET)
        write_all(file, header)
        return f"pack-{checksum.hex()}"


def _rehash(file: int, header: bytes) -> bytes:
    digest = hashlib.sha1(header, usedforsecurity=False)
    position = len(header)
    while block := os.pread(file, 1 << 20, position):
        digest.update(block)
        position += len(block)
    return digest.digest()


def _fresh() -> str:
    """A name that nobody else uses: threads of one process write at the same time as well."""
    return TEMPORARY + secrets.token_hex(8)


def write_all(handle: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(handle, view) :]


def _write_new(path: str, data: bytes, *, durable: bool) -> None:
    """Write a new file that only its owner can read."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
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
            "make room or check its permissions, then try again"
        ) from error


def replace_file(path: Path, data: bytes, *, durable: bool = False) -> None:
    """Put a file, readable by its owner only, in the place of what is there; whole or not at all.

    Of several who do so at the same time the last one counts.
    """
    temporary = f"{path.parent}/{UNFINISHED}{secrets.token_hex(8)}"
    try:
        _write_new(temporary, data, durable=durable)
        os.replace(temporary, path)
        if durable:
            sync_directory(path.parent)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(temporary)
        raise
