"""Removes trees of which no inventory is kept, such as caches, but for what must be spared in them."""

from __future__ import annotations

import os
import stat

from agentrewind.workspace.open_path import OPEN_DIRECTORY
from agentrewind.workspace.policy import PathClass, Policy
from agentrewind.workspace.scan import names_in


def spared_in(root: int, path: bytes, policy: Policy) -> tuple[tuple[bytes, ...], bool]:
    """The excluded paths inside a volatile path, and whether it holds anything else."""
    names = path.split(b"/")
    handle = os.dup(root)
    try:
        for name in names[:-1]:
            inner = os.open(name, OPEN_DIRECTORY, dir_fd=handle)
            os.close(handle)
            handle = inner
        spared: list[bytes] = []
        more = _spared(handle, names[-1], path, policy, spared)
        return tuple(sorted(spared)), more
    except OSError:
        return (), True
    finally:
        os.close(handle)


def _spared(parent: int, name: bytes, path: bytes, policy: Policy, spared: list[bytes]) -> bool:
    try:
        handle = os.open(name, OPEN_DIRECTORY, dir_fd=parent)
    except OSError:
        return True
    try:
        more = False
        before = len(spared)
        for text in names_in(handle):
            inner = path + b"/" + os.fsencode(text)
            if policy.classify(inner, is_dir=False) is PathClass.EXCLUDED:
                spared.append(inner)
            else:
                more = _spared(handle, os.fsencode(text), inner, policy, spared) or more
        return more or len(spared) == before
    finally:
        os.close(handle)


def remove_all(parent: int, name: bytes, path: bytes, spared: frozenset[bytes]) -> bool:
    """Remove what stands under a name but for spared paths; whether all is gone."""
    if path in spared:
        return False
    if not stat.S_ISDIR(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode):
        os.unlink(name, dir_fd=parent)
        return True
    handle = _open_anyhow(parent, name)
    try:
        gone = True
        for text in names_in(handle):
            inner = os.fsencode(text)
            gone = remove_all(handle, inner, path + b"/" + inner, spared) and gone
    finally:
        os.close(handle)
    if gone:
        os.rmdir(name, dir_fd=parent)
    return gone


def _open_anyhow(parent: int, name: bytes) -> int:
    """A descriptor of a directory that is about to be emptied, made accessible first if need be."""
    try:
        handle = os.open(name, OPEN_DIRECTORY, dir_fd=parent)
    except PermissionError:
        make_accessible(parent, name)
        handle = os.open(name, OPEN_DIRECTORY, dir_fd=parent)
    mode = os.fstat(handle).st_mode
    if mode & 0o700 != 0o700:
        os.fchmod(handle, stat.S_IMODE(mode) | 0o700)
    return handle


def make_accessible(parent: int, name: bytes) -> None:
    """Let the owner read (and enter) a file or directory, links not followed.

    Raises:
        OSError: it is not ours to change.
    """
    handle = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
    try:
        mode = os.fstat(handle).st_mode
        if not stat.S_ISLNK(mode):
            wanted = 0o700 if stat.S_ISDIR(mode) else 0o400
            os.chmod(f"/proc/self/fd/{handle}", stat.S_IMODE(mode) | wanted)  # noqa: PTH101
    finally:
        os.close(handle)


def names_below(parent: int, name: bytes) -> list[str]:
    handle = os.open(name, OPEN_DIRECTORY, dir_fd=parent)
    try:
        return names_in(handle)
    finally:
        os.close(handle)
