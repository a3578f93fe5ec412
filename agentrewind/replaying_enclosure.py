"""Encloses a replay: lays a scratch copy over the recorded path, cuts the network off, becomes the command.

Started as `python -P -m agentrewind.replaying_enclosure SCRATCH ROOT COMMAND…`. Linux only.
"""

from __future__ import annotations

import ctypes
import errno
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

EXIT_NO_ENCLOSURE = 79
"""Exit code where the enclosure could not be made; the command was not started."""

_CLONE_NEWNS = 0x00020000
_CLONE_NEWUSER = 0x10000000
_CLONE_NEWNET = 0x40000000
_MS_BIND = 0x1000
_MS_REC = 0x4000
_MS_PRIVATE = 0x40000


def main(arguments: Sequence[str]) -> NoReturn:
    """Make the enclosure and become the command in it; exits where that fails."""
    scratch, root, *command = arguments
    try:
        enclose(Path(scratch), Path(root))
    except OSError as error:
        print(error.strerror or error)  # noqa: T201 - the caller reads it from the log
        sys.exit(EXIT_NO_ENCLOSURE)
    os.chdir(root)
    os.execvp(command[0], command)


def enclose(scratch: Path, root: Path) -> None:
    """From here on this process and what it starts see `scratch` at `root`, and no network if possible.

    Raises:
        OSError: the system does not allow it; where it says so, nothing is changed for anybody else.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    try:
        _call(libc.unshare(_CLONE_NEWNS))
    except OSError as error:
        if error.errno != errno.EPERM:
            raise
        _become_owner(libc)
    _call(libc.mount(b"none", b"/", None, _MS_REC | _MS_PRIVATE, None))
    _call(libc.mount(os.fsencode(scratch), os.fsencode(root), None, _MS_BIND, None))
    libc.unshare(_CLONE_NEWNET)  # where this fails the layer still lets no call out


def _become_owner(libc: ctypes.CDLL) -> None:
    """A user namespace in which an ordinary user may mount, with the same user and group as outside."""
    user, group = os.geteuid(), os.getegid()
    _call(libc.unshare(_CLONE_NEWUSER | _CLONE_NEWNS))
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
    Path("/proc/self/gid_map").write_text(f"{group} {group} 1")


def _call(result: int) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


if __name__ == "__main__":
    main(sys.argv[1:])
