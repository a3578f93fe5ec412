"""Reads one file or symbolic link of the workspace into objects, without following anything.

A file up to `LARGE` bytes is one blob. A larger one is cut into pieces of `PIECE` bytes that are blobs of
their own, so that memory stays flat, a changed page costs one piece, and a hole costs nothing; the blob under
its name then only describes it.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterator
from typing import NamedTuple, Protocol

from agentrewind.workspace.attributes import Attributes, at, read_attributes
from agentrewind.workspace.objects import BLOB, MODE_FILE, TREE, TreeItem, encode_tree, object_id
from agentrewind.workspace.sidecar import FileKind, Omission

LARGE = 8 << 20
PIECE = 1 << 20
_ZEROS = bytes(PIECE)
ZERO_PIECE = object_id(BLOB, _ZEROS)

_OPEN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_ATTEMPTS = 4


class Sink(Protocol):
    """Where objects go; `add` gives their id and stores what is not stored yet."""

    def add(self, kind: int, data: bytes) -> bytes: ...


class HashOnly:
    """A sink that keeps nothing."""

    def add(self, kind: int, data: bytes) -> bytes:
        return object_id(kind, data)


class Captured(NamedTuple):
    """What was read, and the stat data that held while it was read."""

    kind: FileKind
    status: os.stat_result
    oid: bytes
    pieces: bytes | None
    attributes: Attributes = ()
    settled: bool = True


def capture_link(directory: int, name: str, status: os.stat_result, sink: Sink) -> Captured | None:
    """The target of a symbolic link; None when the name vanished or is no link any more."""
    try:
        target = os.readlink(os.fsencode(name), dir_fd=directory)
        attributes = read_attributes(at(directory, os.fsencode(name)))
        after = os.stat(name, dir_fd=directory, follow_symlinks=False)
    except OSError:
        return None
    if (after.st_ino, after.st_ctime_ns) != (status.st_ino, status.st_ctime_ns):
        return None
    return Captured(FileKind.LINK, status, sink.add(BLOB, target), None, attributes)


def capture_file(
    directory: int, name: str, sink: Sink, *, limit: int, late: Callable[[], bool]
) -> Captured | Omission | None:
    """The contents of a regular file; None when the name vanished or is no regular file any more.

    A file that changes meanwhile is read again. One that only grows, such as a log, is taken as it was when
    reading began and is not trusted; one that keeps changing otherwise is left out as unstable. A large
    file that is not read in full when `late` says so is left out as late.
    """
    captured: Captured | Omission | None = None
    for _ in range(_ATTEMPTS):
        try:
            handle = os.open(name, _OPEN, dir_fd=directory)
        except PermissionError:
            return Omission.UNREADABLE
        except OSError:
            return None
        try:
            captured = _capture(handle, sink, limit, late)
        except OSError:
            return Omission.UNREADABLE
        finally:
            os.close(handle)
        moving = not captured.settled if isinstance(captured, Captured) else captured is Omission.UNSTABLE
        if not moving:
            break
    return captured


def _capture(handle: int, sink: Sink, limit: int, late: Callable[[], bool]) -> Captured | Omission | None:
    before = os.fstat(handle)
    size = before.st_size
    if not stat.S_ISREG(before.st_mode):
        return None
    if size > limit:
        return Omission.TOO_LARGE
    if size > LARGE:
        captured = _read_pieces(handle, before, sink, late)
        if not isinstance(captured, Captured):
            return captured or Omission.UNSTABLE
    else:
        data = _read_exactly(handle, size)
        if data is None:
            return Omission.UNSTABLE
        captured = Captured(FileKind.FILE, before, sink.add(BLOB, data), None)
    attributes = read_attributes(handle)
    after = os.fstat(handle)
    if attributes:
        captured = captured._replace(attributes=attributes)
    if _same(before, after):
        return captured
    return captured._replace(settled=False) if after.st_size > size else Omission.UNSTABLE


def _same(before: os.stat_result, after: os.stat_result) -> bool:
    return (before.st_size, before.st_mtime_ns, before.st_ctime_ns) == (
        after.st_size,
        after.st_mtime_ns,
        after.st_ctime_ns,
    )


def _read_exactly(handle: int, size: int) -> bytes | None:
    data = os.read(handle, size) if size else b""
    while len(data) < size:
        more = os.read(handle, size - len(data))
        if not more:
            return None
        data += more
    return data


def _read_pieces(
    handle: int, status: os.stat_result, sink: Sink, late: Callable[[], bool]
) -> Captured | Omission | None:
    items = []
    zeros_added = False
    for number, (length, is_hole) in enumerate(_pieces(handle, status.st_size)):
        if is_hole and length == PIECE:
            oid = ZERO_PIECE
            if not zeros_added:
                sink.add(BLOB, _ZEROS)
                zeros_added = True
        elif late():
            return Omission.LATE
        else:
            os.lseek(handle, number * PIECE, os.SEEK_SET)
            data = _read_exactly(handle, length)
            if data is None:
                return None
            oid = sink.add(BLOB, data)
        items.append(TreeItem(MODE_FILE, b"%010d" % number, oid))
    pieces = sink.add(TREE, encode_tree(items))
    description = describe_pieces(status.st_size, pieces)
    return Captured(FileKind.PIECES, status, sink.add(BLOB, description), pieces)


def describe_pieces(size: int, pieces: bytes) -> bytes:
    """What stands under the name of a large file in a plain view of the snapshot."""
    return b"agentrewind-pieces 1\nsize %d\npieces %s\n" % (size, pieces.hex().encode())


def _pieces(handle: int, size: int) -> Iterator[tuple[int, bool]]:
    """The length of each piece and whether it lies wholly in a hole."""
    data_at = _next_data(handle, 0)
    for start in range(0, size, PIECE):
        end = min(start + PIECE, size)
        if data_at < start:
            data_at = _next_data(handle, start)
        yield end - start, data_at >= end


def _next_data(handle: int, offset: int) -> int:
    try:
        return os.lseek(handle, offset, os.SEEK_DATA)
    except OSError as error:
        # ENXIO: nothing but a hole up to the end; anything else: this file system does not tell
        return 1 << 62 if error.errno == errno.ENXIO else offset
