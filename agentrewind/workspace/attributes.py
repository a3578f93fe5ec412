"""Extended attributes of files, links and directories; POSIX access control lists are such attributes, too.

The names that count are `user.*`, `trusted.*` (which only root sees), the two POSIX access control lists and
file capabilities. Labels that the system gives by itself, such as those of SELinux, are no state of a
workspace.
"""

from __future__ import annotations

import errno
import os
from typing import TypeAlias

Attributes: TypeAlias = tuple[tuple[bytes, bytes], ...]
"""Names and values, sorted by name."""

Place: TypeAlias = int | bytes
"""A descriptor, or a path; its last part is only followed on request."""

_PREFIXES = ("user.", "trusted.")
_NAMES = frozenset({"system.posix_acl_access", "system.posix_acl_default", "security.capability"})
_NONE_HERE = (errno.ENOTSUP, errno.EPERM, errno.EACCES, errno.ENOSYS)


def read_attributes(place: Place, *, follow: bool = False) -> Attributes:
    """The attributes that count; none where the file system has none, or they may not be read.

    Raises:
        OSError: the place is gone, or cannot be read.
    """
    follow = follow or isinstance(place, int)
    try:
        names = os.listxattr(place, follow_symlinks=follow)
    except OSError as error:
        if error.errno in _NONE_HERE:
            return ()
        raise
    if not names:
        return ()
    found = []
    for name in sorted(names):
        if name.startswith(_PREFIXES) or name in _NAMES:
            value = _value(place, name, follow)
            if value is not None:
                found.append((os.fsencode(name), value))
    return tuple(found)


def at(directory: int, name: bytes) -> bytes:
    """The place of a symbolic link, which no descriptor stands for."""
    return b"/proc/self/fd/%d/%s" % (directory, name)


def set_attributes(place: Place, wanted: Attributes, *, follow: bool = False) -> dict[bytes, str]:
    """Make the attributes that count the wanted ones; gives those that the system refuses, with its reason.

    Raises:
        OSError: the place is gone, or cannot be read.
    """
    follow = follow or isinstance(place, int)
    present = dict(read_attributes(place, follow=follow))
    changes: dict[bytes, bytes | None] = dict.fromkeys(present)
    changes.update(wanted)
    refused: dict[bytes, str] = {}
    for name, value in changes.items():
        if present.get(name) == value:
            continue
        try:
            if value is None:
                os.removexattr(place, name, follow_symlinks=follow)
            else:
                os.setxattr(place, name, value, follow_symlinks=follow)
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.ENOTDIR):
                raise
            refused[name] = error.strerror or str(error)
    return refused


def differing(one: Attributes, other: Attributes) -> frozenset[bytes]:
    """The names whose values differ."""
    return frozenset(name for name, _ in set(one) ^ set(other))


def _value(place: Place, name: str, follow: bool) -> bytes | None:  # noqa: FBT001 - as the caller has it
    try:
        return os.getxattr(place, name, follow_symlinks=follow)
    except OSError as error:
        if error.errno in (errno.ENODATA, *_NONE_HERE):
            return None
        raise
