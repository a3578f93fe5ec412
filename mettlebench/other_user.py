"""Programs under a user of their own, for places where root is at hand and no sandbox can be made.

A stand-in for the sandbox within somebody's container: such a program reads nothing that root keeps to
itself, writes only what it was lent, and leaves no process behind. It has the container's network and sees
the names of its processes.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PROGRAM_USER = 61853
"""A user id that nobody has: all of its processes are programs under evaluation."""


@contextmanager
def lent(root: Path, user: int) -> Iterator[None]:
    """Let `user` own a tree for a while; afterwards it belongs to the caller again."""
    _give(root, user)
    try:
        yield
    finally:
        _give(root, os.geteuid())


def end_all_of(user: int) -> None:
    """End every process of a user, however it was started; the caller is root and `user` is not."""
    if user == os.geteuid():
        raise ValueError(f"user {user} is the caller's own")
    # one signal to all that this user may reach: nothing that is being started slips through
    subprocess.run(
        ["/bin/sh", "-c", "kill -KILL -1 2>/dev/null; :"],
        check=True,
        stdin=subprocess.DEVNULL,
        cwd="/",
        user=user,
        group=user,
        extra_groups=[],
    )


def _give(root: Path, user: int) -> None:
    os.chown(root, user, user, follow_symlinks=False)
    for folder, folders, files in os.walk(root):
        for name in (*folders, *files):
            os.chown(Path(folder) / name, user, user, follow_symlinks=False)
