"""Keeps what backups preserved: payloads by their hash, files of 0600 below `$AGENTREWIND_HOME/backup`."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import secrets
import shutil
import tempfile
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from agentrewind.backup.kind import CaptureError
from agentrewind.backup.store_lock import at_work
from agentrewind.blobs import Blobs
from agentrewind.durable import make_directory, storage_error, sync_directory
from agentrewind.errors import DamagedError

_PIECE = 1 << 20
_CLONE = 0x40049409
"""The ioctl FICLONE of Linux: share a whole file's blocks, copied when either is written."""

_LINK = "link:"

_ONE_BY_ONE = 8
"""Up to so many files are synced each by itself, more of them together with their file system."""


class BackupStore:
    """The payloads of all backups of one home; any number of processes may use it at once.

    What `put` and `put_file` name is readable at once, and durable after `settle`. It is kept while its user
    is `in_use`, and from then on as long as an entry of the log names it.

    Attributes:
        directory: where everything about backups is kept, readable by its owner only.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._payloads = directory / "blobs"
        self._blobs = Blobs(self._payloads)
        self._scratch: list[Path] = []
        self._unsynced: list[Path] = []
        self._links = directory / "links"
        self._linked = False
        self._made = False

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """From the first payload until the entry that names it is in the log; for a restore as well."""
        with at_work(self.directory):
            self._blobs = Blobs(self._payloads)  # what it knows may have been dropped since
            yield

    def put(self, data: bytes) -> str:
        """The name of these bytes, which are durable on return. Raises StorageError."""
        return self._blobs.put(data)

    def put_file(self, path: Path) -> str:
        """The name of a file's content, read without following a link, by reflink where that is possible.

        Raises CaptureError where it cannot be read or changes while it is read, StorageError where the
        store takes no more.
        """
        if not self._made:
            make_directory(self._payloads)
            self._made = True
        source = _open(path)
        try:
            before = os.fstat(source)
            name = _digest_of(source)
            kept = self._payloads / name
            if not _holds(kept, name):
                self._copy(source, kept, name, path)
            if _stamp(os.fstat(source)) != _stamp(before):
                raise CaptureError(f"{path} was written to while it was being preserved; try again")
        except OSError as error:
            raise CaptureError(f"{path} cannot be read: {error.strerror or error}") from error
        finally:
            os.close(source)
        return f"sha256:{name}"

    def link_file(self, path: Path) -> str | None:
        """The name of a file that is kept by another link to it; None where it lies on another file system.

        Nothing is read or copied. It outlives the removal of the file's own name, and nothing else: whoever
        writes into the file writes into what is kept, which is found out when it is asked for.
        """
        status = path.lstat()
        token = f"{status.st_dev:x}-{status.st_ino:x}-{status.st_mtime_ns:x}-{status.st_size:x}"
        make_directory(self._links)
        try:
            os.link(path, self._links / token, follow_symlinks=False)
        except FileExistsError:
            pass  # kept already, by another call
        except OSError as error:
            if error.errno in (errno.EXDEV, errno.EPERM, errno.EMLINK, errno.EOPNOTSUPP):
                return None
            raise CaptureError(f"{path} cannot be kept: {error.strerror or error}") from error
        self._linked = True
        return f"{_LINK}{token}"

    def get(self, name: str) -> bytes:
        """The bytes of this name. Raises DamagedError where they are missing or altered."""
        if name.startswith(_LINK):
            with self.open(name) as file:
                return file.read()
        return self._blobs.get(name)

    def open(self, name: str) -> IO[bytes]:
        """A payload as a file to read. Raises DamagedError where it is missing, or was written into."""
        if name.startswith(_LINK):
            self.check(name)
            return (self._links / name.removeprefix(_LINK)).open("rb")
        try:
            return (self._payloads / name.removeprefix("sha256:")).open("rb")
        except OSError as error:
            raise DamagedError(f"the payload {name} of a backup cannot be read: {error.strerror}") from error

    def check(self, name: str) -> None:
        """Raises DamagedError unless the payload is there and its bytes have this hash.

        Of a file that is kept by a link, size and time of its last change are compared instead.
        """
        if name.startswith(_LINK):
            self._check_link(name.removeprefix(_LINK))
            return
        digest = name.removeprefix("sha256:")
        if not (self._payloads / digest).exists():
            raise DamagedError(f"the payload {name} of a backup is missing")
        if not _holds(self._payloads / digest, digest):
            raise DamagedError(f"the payload {name} of a backup was altered: its hash does not match")

    def _check_link(self, token: str) -> None:
        try:
            status = (self._links / token).lstat()
        except OSError as error:
            raise DamagedError(f"a file that a backup keeps is missing: {error.strerror or error}") from error
        if token.split("-")[2:] != [f"{status.st_mtime_ns:x}", f"{status.st_size:x}"]:
            raise DamagedError("a file that a backup keeps by a link was written into under another name")

    def settle(self) -> None:
        """Make durable what was put so far. Raises StorageError."""
        if self._linked:
            self._linked = False
            sync_directory(self._links)
        waiting, self._unsynced = self._unsynced, []
        if not waiting:
            return
        try:
            if len(waiting) <= _ONE_BY_ONE:
                for path in waiting:
                    _sync(path)
            else:
                _sync_file_system(self._payloads)
            sync_directory(self._payloads)
        except OSError as error:
            raise storage_error("make durable", self._payloads, error) from error

    def scratch(self) -> Path:
        """A fresh private directory, removed when the store is closed."""
        parent = self.directory / "scratch"
        make_directory(parent)
        made = Path(tempfile.mkdtemp(dir=parent))
        self._scratch.append(made)
        return made

    def room(self) -> int:
        """Bytes that the store's file system has left for us."""
        make_directory(self._payloads)
        return shutil.disk_usage(self._payloads).free

    def size(self, name: str) -> int:
        """Bytes on the disk of a payload; 0 where it is missing."""
        try:
            return self._place(name).lstat().st_size
        except OSError:
            return 0

    def sweep(self, named: Collection[str]) -> int:
        """Remove all payloads but these, and what killed processes left; returns the bytes of them.

        Only for whoever is alone in the store. Raises StorageError.
        """
        freed = 0
        for path in self._unnamed(named):
            freed += path.lstat().st_size
            try:
                path.unlink()
            except OSError as error:
                raise storage_error("remove", path, error) from error
        shutil.rmtree(self.directory / "scratch", ignore_errors=True)
        return freed

    def _unnamed(self, named: Collection[str]) -> Iterator[Path]:
        kept = {self._place(name) for name in named}
        for directory in (self._payloads, self._links):
            if directory.is_dir():
                yield from (path for path in sorted(directory.iterdir()) if path not in kept)

    def _place(self, name: str) -> Path:
        if name.startswith(_LINK):
            return self._links / name.removeprefix(_LINK)
        return self._payloads / name.removeprefix("sha256:")

    def close(self) -> None:
        """Make durable what was put, and remove the scratch directories."""
        self.settle()
        for path in self._scratch:
            shutil.rmtree(path, ignore_errors=True)
        self._scratch.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _copy(self, source: int, kept: Path, name: str, path: Path) -> None:
        temporary = kept.with_name(f".{kept.name}.{secrets.token_hex(6)}.tmp")
        try:
            copy = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            try:
                if not _cloned(copy, source):
                    os.lseek(source, 0, os.SEEK_SET)
                    _pieces(source, lambda piece: _write_all(copy, piece))
                # what counts is what the store holds, not what was read on the way
                if _digest_of(copy) != name:
                    raise CaptureError(f"{path} was written to while it was being preserved; try again")
            finally:
                os.close(copy)
            temporary.replace(kept)
        except OSError as error:
            raise storage_error("preserve a file in", kept, error) from error
        finally:
            with suppress(FileNotFoundError):
                temporary.unlink()
        self._unsynced.append(kept)


def _open(path: Path) -> int:
    try:
        return os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise CaptureError(f"{path} cannot be read: {error.strerror or error}") from error


def _stamp(status: os.stat_result) -> tuple[int, int, int]:
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _holds(path: Path, digest: str) -> bool:
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        return _digest_of(handle) == digest
    finally:
        os.close(handle)


def _digest_of(handle: int) -> str:
    found = sha256()
    os.lseek(handle, 0, os.SEEK_SET)
    _pieces(handle, found.update)
    return found.hexdigest()


def _pieces(handle: int, take: Callable[[bytes], None]) -> None:
    while piece := os.read(handle, _PIECE):
        take(piece)


def _write_all(handle: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(handle, view) :]


def _cloned(copy: int, source: int) -> bool:
    try:
        fcntl.ioctl(copy, _CLONE, source)
    except OSError:
        return False
    return True


def _sync(path: Path) -> None:
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return  # of a backup that failed, and dropped since: no entry names it
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _sync_file_system(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        if ctypes.CDLL(None, use_errno=True).syncfs(handle) != 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))
    finally:
        os.close(handle)
