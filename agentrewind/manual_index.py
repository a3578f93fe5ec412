"""Tells whether two index files of git stage the same, whatever git has noted beside it. Pure.

Looking at a repository (`git status`) rewrites its index with fresh times and inode numbers. That is nothing
that a person could lose.
"""

from __future__ import annotations

from collections.abc import Iterator

_HEADER = 12
_STAT = 24  # ctime, mtime, device, inode
_MODE = 4
_OWNER = 12  # user, group, size, which git sets to nought where it does not trust its own times
_ID = 20
_FLAGS = 2
_EXTENDED = 0x4000
_LONG_NAME = 0xFFF


def is_index(path: bytes) -> bool:
    """Whether a path is that of an index in a repository, worktrees and submodules included."""
    *above, name = path.split(b"/")
    return name == b"index" and b".git" in above


def stages_the_same(one: bytes, other: bytes) -> bool:
    """Whether both stage the same files with the same contents, modes and marks; False where unsure."""
    try:
        return list(_entries(one)) == list(_entries(other))
    except ValueError:
        return False


def _entries(data: bytes) -> Iterator[bytes]:
    version, count = int.from_bytes(data[4:8]), int.from_bytes(data[8:_HEADER])
    if data[:4] != b"DIRC" or version not in (2, 3):
        raise ValueError("not an index of version 2 or 3")
    place = _HEADER
    for _ in range(count):
        start = place
        kept = data[place + _STAT : place + _STAT + _MODE]
        place += _STAT + _MODE + _OWNER
        flags = int.from_bytes(data[place + _ID : place + _ID + _FLAGS])
        fixed = _ID + _FLAGS + (2 if flags & _EXTENDED else 0)
        end = data.index(b"\0", place + fixed)
        if flags & _LONG_NAME != min(end - place - fixed, _LONG_NAME):
            raise ValueError("an entry whose name has another length than it says")
        yield kept + data[place:end]
        # entries end on a multiple of eight bytes, with at least one NUL
        place = start + ((end - start) // 8 + 1) * 8
