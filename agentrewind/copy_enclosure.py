"""Encloses a command: lays a copy of the workspace over the recorded path, where only the command sees it.

Started as `python -P -m agentrewind.copy_enclosure [--seal | --network] COPY ROOT COMMAND…`, which `enclosed`
puts together. Linux only. The network is cut off where the system allows it. Sealed, nothing but the folder
that holds COPY can be written: tools that pass the layer by reach nothing. With --network only the copy is
laid over, for commands that a person gives and for forks.
"""

from __future__ import annotations

import ctypes
import errno
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

EXIT_NO_ENCLOSURE = 79
"""Exit code where the enclosure could not be made; the command was not started."""

_MODULE = "agentrewind.copy_enclosure"

_CLONE_NEWNS = 0x00020000
_CLONE_NEWUSER = 0x10000000
_CLONE_NEWNET = 0x40000000
_MS_BIND = 0x1000
_MS_REC = 0x4000
_MS_PRIVATE = 0x40000
_SYS_MOUNT_SETATTR = 442
_AT_FDCWD = -100
_AT_RECURSIVE = 0x8000
_ATTRIBUTE_READ_ONLY = 0x1


def enclosed(
    copy: Path, root: Path, command: Sequence[str], *, sealed: bool = False, online: bool = False
) -> list[str]:
    """The command line that runs `command` where `copy` is seen at `root`; see `enclose`."""
    options = ["--seal"] if sealed else ["--network"] if online else []
    return [sys.executable, "-P", "-m", _MODULE, *options, str(copy), str(root), *command]


def obstacle(root: Path) -> str:
    """Why no copy can be laid over `root` here; empty where one can."""
    probe = enclosed(Path("/"), root, ["/bin/true"], online=True)
    done = subprocess.run(probe, cwd="/", stdin=subprocess.DEVNULL, capture_output=True, check=False)
    return "" if done.returncode == 0 else done.stdout.decode("utf-8", "replace").strip() or "not allowed"


def main(arguments: Sequence[str]) -> NoReturn:
    """Make the enclosure and become the command in it; exits where that fails."""
    sealed, online = arguments[0] == "--seal", arguments[0] == "--network"
    copy, root, *command = arguments[1:] if sealed or online else arguments
    try:
        enclose(Path(copy), Path(root), sealed=sealed, online=online)
    except OSError as error:
        print(error.strerror or error)  # noqa: T201 - the caller reads it from the log
        sys.exit(EXIT_NO_ENCLOSURE)
    os.chdir(root)
    os.execvp(command[0], command)


def enclose(copy: Path, root: Path, *, sealed: bool = False, online: bool = False) -> None:
    """From here on this process and what it starts see `copy` at `root`, and no network if possible.

    Sealed, every other file is read-only to them, and the network is gone for certain; online it stays.

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
    _make_place(libc, root)
    if sealed:
        _seal(libc, copy.parent)
    _call(libc.mount(os.fsencode(copy), os.fsencode(root), None, _MS_BIND, None))
    if online:
        return
    alone = libc.unshare(_CLONE_NEWNET)
    if sealed:
        _call(alone)  # elsewhere the layer still lets no call out


def _make_place(libc: ctypes.CDLL, root: Path) -> None:
    """Have a folder at `root` for us to see where there is none, without making one that others see.

    The nearest folder above it is covered with one of our own that shows what is in it, and the place.
    """
    if root.is_dir():
        return
    above = next(folder for folder in root.parents if folder.is_dir())
    if above == above.parent:
        raise OSError(errno.ENOENT, f"no folder {root}, and none above it but {above}")
    covered = os.open(above, os.O_PATH | os.O_DIRECTORY)
    names = [path.name for path in above.iterdir()]
    _call(libc.mount(b"none", os.fsencode(above), b"tmpfs", 0, b"mode=0755"))
    for name in names:
        _show(libc, Path(f"/proc/self/fd/{covered}/{name}"), above / name)
    os.close(covered)
    root.mkdir(parents=True)


def _show(libc: ctypes.CDLL, hidden: Path, place: Path) -> None:
    """Let a covered path be seen at its place again."""
    try:
        if hidden.is_symlink():
            place.symlink_to(hidden.readlink())
            return
        if hidden.is_dir():
            place.mkdir()
        else:
            place.touch()
    except OSError as error:
        if error.errno == errno.ENOENT:  # gone meanwhile
            return
        raise
    _call(libc.mount(os.fsencode(hidden), os.fsencode(place), None, _MS_BIND | _MS_REC, None))


def _seal(libc: ctypes.CDLL, writable: Path) -> None:
    """Make every mount read-only, and one folder writable again."""
    path = os.fsencode(writable)
    read_only = (ctypes.c_uint64 * 4)(_ATTRIBUTE_READ_ONLY, 0, 0, 0)
    writing = (ctypes.c_uint64 * 4)(0, _ATTRIBUTE_READ_ONLY, 0, 0)
    size = ctypes.sizeof(read_only)
    _call(libc.syscall(_SYS_MOUNT_SETATTR, _AT_FDCWD, b"/", _AT_RECURSIVE, ctypes.byref(read_only), size))
    _call(libc.mount(path, path, None, _MS_BIND, None))
    _call(libc.syscall(_SYS_MOUNT_SETATTR, _AT_FDCWD, path, 0, ctypes.byref(writing), size))


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
