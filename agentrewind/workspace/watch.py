"""Asks the kernel which names of the workspace may have changed; a hint that saves looking at all others.

Where a hint cannot be had (no inotify, too many directories, a remote file system) or was lost (a queue that
ran over), the answer is None and everything is looked at.
"""

from __future__ import annotations

import ctypes
import os
import struct
from typing import TypeAlias

from agentrewind.workspace.inventory import Directory

_MODIFY = 0x2
_ATTRIB = 0x4
_CLOSE_WRITE = 0x8
_MOVED_FROM = 0x40
_MOVED_TO = 0x80
_CREATE = 0x100
_DELETE = 0x200
_DELETE_SELF = 0x400
_MOVE_SELF = 0x800
_OVERFLOW = 0x4000
_IGNORED = 0x8000
_ONLY_DIRECTORIES = 0x0100_0000
_IS_DIRECTORY = 0x4000_0000

_CHANGES = _MODIFY | _ATTRIB | _CLOSE_WRITE | _MOVED_FROM | _MOVED_TO | _CREATE | _DELETE
_MASK = _CHANGES | _DELETE_SELF | _MOVE_SELF | _ONLY_DIRECTORIES
_RENEWED = _MOVED_FROM | _MOVED_TO | _CREATE | _DELETE

_EVENT = struct.Struct("iIII")
_BUFFER = 1 << 18

Doubts: TypeAlias = dict[Directory, dict[str, bool]]
"""Names to look at, by directory; True where the name may be another directory than before."""


class Watcher:
    """Watches the directories it is shown; single-threaded like the inventory it speaks of.

    Attributes:
        broken: why no hints can be had any more, None while they can.
    """

    def __init__(self, *, local_devices: frozenset[int]) -> None:
        self.broken: str | None = None
        self._local_devices = local_devices
        self._directories: dict[int, Directory] = {}
        self._watches: dict[Directory, tuple[int, int]] = {}
        self._handle = -1
        self._lost = True
        try:
            self._libc = ctypes.CDLL(None, use_errno=True)
            self._handle = self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        except (OSError, AttributeError) as error:
            self._break(f"this system has no inotify ({error})")
            return
        if self._handle < 0:
            self._break(f"no inotify instance: {os.strerror(ctypes.get_errno())}")

    def close(self) -> None:
        """Stop watching."""
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1
        self._directories.clear()
        self._watches.clear()
        self._lost = True
        self.broken = self.broken or "closed"

    def observe(self, handle: int, directory: Directory) -> None:
        """Watch an open directory from now on; called before it is listed, so nothing falls in between."""
        if self._handle < 0:
            return
        status = os.fstat(handle)
        known = self._watches.get(directory)
        if known is not None and known[1] == status.st_ino and self._directories.get(known[0]) is directory:
            return
        if status.st_dev not in self._local_devices:
            self._break("a file system that other machines may change")
            return
        # by descriptor: the directory that is listed is the one that is watched, whatever its name is by now
        path = f"/proc/self/fd/{handle}".encode()
        watch = self._libc.inotify_add_watch(self._handle, path, _MASK)
        if watch < 0:
            self._break(f"cannot watch a directory: {os.strerror(ctypes.get_errno())}")
            return
        self._directories[watch] = directory
        self._watches[directory] = (watch, status.st_ino)

    def forget(self, directory: Directory) -> None:
        """Stop watching a directory that is gone from the workspace."""
        known = self._watches.pop(directory, None)
        if known is None or self._directories.get(known[0]) is not directory:
            return
        del self._directories[known[0]]
        self._libc.inotify_rm_watch(self._handle, known[0])

    def restart(self) -> None:
        """Forget all directories; the next full walk shows them anew."""
        self._directories.clear()
        self._watches.clear()
        self._lost = True

    def start(self) -> None:
        """From here on hints are complete: a full walk showed every directory, or begins right after."""
        self._lost = False

    def take(self) -> Doubts | None:
        """All names that may have changed since the last call; None when only a full walk can tell."""
        doubts: Doubts = {}
        while self._handle >= 0:
            try:
                events = os.read(self._handle, _BUFFER)
            except BlockingIOError:
                break
            except OSError as error:
                self._break(f"events cannot be read: {error.strerror}")
                break
            self._sort(events, doubts)
        if self._lost or self._handle < 0:
            return None
        return doubts

    def _sort(self, events: bytes, doubts: Doubts) -> None:
        position, end = 0, len(events)
        while position < end:
            watch, mask, _, length = _EVENT.unpack_from(events, position)
            position += _EVENT.size + length
            if mask & _OVERFLOW:
                self._lost = True
                continue
            directory = self._directories.get(watch)
            if directory is None:
                continue
            if mask & _IGNORED:
                del self._directories[watch]
                continue
            names = doubts.setdefault(directory, {})
            if length:
                name = os.fsdecode(events[position - length : position].rstrip(b"\0"))
                renewed = bool(mask & _IS_DIRECTORY and mask & _RENEWED)
                names[name] = renewed or names.get(name, False)

    def _break(self, reason: str) -> None:
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1
        self._directories.clear()
        self._watches.clear()
        self._lost = True
        self.broken = reason
