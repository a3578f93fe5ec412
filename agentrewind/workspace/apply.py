"""Carries out the steps of a restore, each through descriptors of the directories above and never in place.

A file is written under a temporary name and renamed once complete, so no path ever holds half a file; a
restore that was killed is completed by planning and applying again.
"""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterable
from typing import assert_never

from agentrewind.errors import RestoreError
from agentrewind.workspace.attributes import Attributes, Place, at, read_attributes, set_attributes
from agentrewind.workspace.contents import PIECE, ZERO_PIECE
from agentrewind.workspace.inventory import FileEntry
from agentrewind.workspace.open_path import OPEN_DIRECTORY
from agentrewind.workspace.pack_writer import write_all
from agentrewind.workspace.policy import TEMPORARY_PREFIX
from agentrewind.workspace.removal import names_below, remove_all
from agentrewind.workspace.steps import (
    HardLink,
    MakeDirectory,
    Remove,
    RemoveDirectory,
    RemoveSpecial,
    RemoveVolatile,
    SetAside,
    SetDirectory,
    SetFile,
    Step,
    Write,
)
from agentrewind.workspace.views import Directories, EntryKind, SnapshotEntry, shown

_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class MovedError(Exception):
    """Something is not as it was when the plan was made; a new plan is due."""


class Applier:
    """Applies steps below one root; close it to release descriptors.

    `refused` collects the extended attributes that the system does not let us set: by path and name, why.
    `moved` collects what was set aside: by its path now, where it stood.
    """

    def __init__(self, root: int, store: Directories) -> None:
        self.refused: dict[bytes, dict[bytes, str]] = {}
        self.moved: dict[bytes, bytes] = {}
        self._root = root
        self._store = store
        self._open: list[tuple[bytes, int]] = []

    def close(self) -> None:
        self._shorten(0)

    def apply(self, steps: Iterable[Step]) -> None:
        """Carry the steps out in order.

        Raises:
            MovedError: something changed since the plan was made; nothing unseen was overwritten.
            RestoreError: the system refuses a step.
        """
        for step in steps:
            try:
                self._step(step)
            except (FileNotFoundError, FileExistsError, NotADirectoryError, IsADirectoryError) as error:
                raise MovedError from error
            except OSError as error:
                raise RestoreError(
                    f"cannot restore {shown(step.path)!r}: {error.strerror or error}; "
                    "what was done so far is kept, restore again once the cause is removed",
                    [shown(step.path)],
                ) from error

    def _step(self, step: Step) -> None:  # noqa: C901 - one line per kind of step
        match step:
            case Remove():
                self._remove(step.path, step.entry)
            case RemoveSpecial():
                self._remove_special(step.path)
            case RemoveVolatile():
                self._remove_volatile(step)
            case RemoveDirectory():
                self._remove_directory(step)
            case SetAside():
                self._set_aside(step)
            case MakeDirectory():
                os.mkdir(_name(step.path), 0o700, dir_fd=self._parent(step.path))
            case Write():
                self._write(step)
            case SetFile():
                self._set_file(step)
            case HardLink():
                self._hard_link(step)
            case SetDirectory():
                self._set_directory(step)
            case _:
                assert_never(step)

    # directories

    def _parent(self, path: bytes) -> int:
        return self._directory(path.rpartition(b"/")[0], writable=True)

    def _directory(self, path: bytes, *, writable: bool) -> int:
        """A descriptor of a directory, reached from the root without following links."""
        names = path.split(b"/") if path else []
        common = 0
        while common < min(len(names), len(self._open)) and self._open[common][0] == names[common]:
            common += 1
        self._shorten(common)
        handle = self._open[-1][1] if self._open else self._root
        for name in names[common:]:
            handle = os.open(name, OPEN_DIRECTORY, dir_fd=handle)
            self._open.append((name, handle))
        if writable:
            mode = os.fstat(handle).st_mode
            if mode & 0o700 != 0o700:
                os.fchmod(handle, stat.S_IMODE(mode) | 0o700)
        return handle

    def _shorten(self, depth: int) -> None:
        while len(self._open) > depth:
            os.close(self._open.pop()[1])

    # removing

    def _check(self, path: bytes, entry: FileEntry | None) -> None:
        """See that what is about to go is what was seen, and so is in the snapshot that was taken before."""
        parent, name = self._parent(path), _name(path)
        if entry is None:
            if _exists(parent, name):
                raise MovedError
            return
        status = os.stat(name, dir_fd=parent, follow_symlinks=False)
        if not entry.same_stat(status) and not _only_links_differ(entry, status):
            raise MovedError

    def _remove(self, path: bytes, entry: FileEntry | None) -> None:
        self._check(path, entry)
        if entry is not None:
            os.unlink(_name(path), dir_fd=self._parent(path))

    def _remove_special(self, path: bytes) -> None:
        parent, name = self._parent(path), _name(path)
        kind = stat.S_IFMT(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode)
        if kind in (stat.S_IFREG, stat.S_IFLNK, stat.S_IFDIR):
            raise MovedError
        os.unlink(name, dir_fd=parent)

    def _remove_directory(self, step: RemoveDirectory) -> None:
        parent, name = self._parent(step.path), _name(step.path)
        status = os.stat(name, dir_fd=parent, follow_symlinks=False)
        if (status.st_dev, status.st_ino) != (step.dev, step.ino):
            raise MovedError
        try:
            os.rmdir(name, dir_fd=parent)
        except OSError as error:
            if names_below(parent, name):
                raise MovedError from error
            raise

    def _remove_volatile(self, step: RemoveVolatile) -> None:
        parent, name = self._parent(step.path), _name(step.path)
        remove_all(parent, name, step.path, frozenset(step.spared))

    def _set_aside(self, step: SetAside) -> None:
        parent, name = self._parent(step.path), _name(step.path)
        target, number = step.name, 1
        while _exists(parent, target):
            number += 1
            target = step.name + b"-%d" % number
        os.rename(name, target, src_dir_fd=parent, dst_dir_fd=parent)
        self.moved[step.path[: len(step.path) - len(name)] + target] = step.path

    # making

    def _write(self, step: Write) -> None:
        parent, name = self._parent(step.path), _name(step.path)
        temporary = f"{TEMPORARY_PREFIX}{secrets.token_hex(8)}".encode()
        try:
            if step.entry.kind is EntryKind.LINK:
                os.symlink(self._store.blob(step.entry.oid), temporary, dir_fd=parent)
                self._set_attributes(step.path, at(parent, temporary), step.entry.attributes)
                _set_time(temporary, step.entry.mtime_ns, parent)
            else:
                self._fill(parent, temporary, step.entry)
            self._check(step.path, step.replaced)
            os.rename(temporary, name, src_dir_fd=parent, dst_dir_fd=parent)
        except BaseException:
            if _exists(parent, temporary):
                os.unlink(temporary, dir_fd=parent)
            raise

    def _fill(self, parent: int, name: bytes, entry: SnapshotEntry) -> None:
        handle = os.open(name, _CREATE, 0o600, dir_fd=parent)
        try:
            if entry.pieces is None:
                write_all(handle, self._store.blob(entry.oid))
            else:
                self._fill_pieces(handle, entry.pieces)
            # before the mode, which may forbid it; a list of the directory's may have been inherited
            self._set_attributes(entry.path, handle, entry.attributes)
            os.fchmod(handle, entry.mode)
            os.utime(handle, ns=(entry.mtime_ns, entry.mtime_ns))
        finally:
            os.close(handle)

    def _fill_pieces(self, handle: int, pieces: bytes) -> None:
        end = 0
        for item in self._store.tree(pieces):
            if item.oid == ZERO_PIECE:
                end = os.lseek(handle, PIECE, os.SEEK_CUR)
            else:
                write_all(handle, self._store.blob(item.oid))
                end = os.lseek(handle, 0, os.SEEK_CUR)
        os.ftruncate(handle, end)

    def _hard_link(self, step: HardLink) -> None:
        parent, name = self._parent(step.path), _name(step.path)
        source = os.dup(parent)
        temporary = f"{TEMPORARY_PREFIX}{secrets.token_hex(8)}".encode()
        try:
            first = self._directory(step.first.rpartition(b"/")[0], writable=False)
            os.link(_name(step.first), temporary, src_dir_fd=first, dst_dir_fd=source, follow_symlinks=False)
            try:
                self._remove(step.path, step.replaced)
                os.rename(temporary, name, src_dir_fd=source, dst_dir_fd=source)
            except BaseException:
                os.unlink(temporary, dir_fd=source)
                raise
        finally:
            os.close(source)

    # setting

    def _set_file(self, step: SetFile) -> None:
        parent = self._directory(step.path.rpartition(b"/")[0], writable=False)
        name = _name(step.path)
        if not _alike(step.expected, os.stat(name, dir_fd=parent, follow_symlinks=False)):
            raise MovedError
        if step.entry.kind is EntryKind.LINK:
            self._set_attributes(step.path, at(parent, name), step.entry.attributes)
            _set_time(name, step.entry.mtime_ns, parent)
            return
        # a descriptor that needs no permission on the file, so that one of mode 000 can be set as well
        handle = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
        try:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                raise MovedError
            path = f"/proc/self/fd/{handle}"
            attributes = step.expected.attributes != step.entry.attributes
            if attributes:
                # they can only be set by whom the mode lets write
                os.chmod(path, step.expected.mode | 0o600)  # noqa: PTH101
                self._set_attributes(step.path, os.fsencode(path), step.entry.attributes, follow=True)
            if attributes or step.expected.mode != step.entry.mode:
                os.chmod(path, step.entry.mode)  # noqa: PTH101 - through a descriptor
            os.utime(path, ns=(step.entry.mtime_ns, step.entry.mtime_ns))
        finally:
            os.close(handle)

    def _set_directory(self, step: SetDirectory) -> None:
        handle = self._directory(step.path, writable=False)
        if read_attributes(handle) != step.attributes:
            os.fchmod(handle, step.mode | 0o700)
            self._set_attributes(step.path, handle, step.attributes)
        if stat.S_IMODE(os.fstat(handle).st_mode) != step.mode:
            os.fchmod(handle, step.mode)
        os.utime(handle, ns=(step.mtime_ns, step.mtime_ns))
        if step.path:
            self._shorten(len(self._open) - 1)

    def _set_attributes(self, path: bytes, place: Place, wanted: Attributes, *, follow: bool = False) -> None:
        refused = set_attributes(place, wanted, follow=follow)
        if refused:
            self.refused.setdefault(path, {}).update(refused)


def _name(path: bytes) -> bytes:
    return path.rpartition(b"/")[2]


def _exists(parent: int, name: bytes) -> bool:
    try:
        os.stat(name, dir_fd=parent, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


def _only_links_differ(entry: FileEntry, status: os.stat_result) -> bool:
    """Removing one name of a file, or adding one, changes the link count and ctime of the others."""
    return entry.nlink != status.st_nlink and _alike(entry, status)


def _alike(entry: FileEntry, status: os.stat_result) -> bool:
    return (entry.ino, entry.size, entry.mtime_ns, entry.mode) == (
        status.st_ino,
        status.st_size,
        status.st_mtime_ns,
        status.st_mode & 0o7777,
    )


def _set_time(name: bytes, mtime_ns: int, parent: int) -> None:
    os.utime(name, ns=(mtime_ns, mtime_ns), dir_fd=parent, follow_symlinks=False)
