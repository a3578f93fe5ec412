"""What kind of file system a device is, and so how far its notifications and time stamps can be relied on."""

from __future__ import annotations

import os
import re
from pathlib import Path

_ESCAPE = re.compile(rb"\\([0-7]{3})")
_LOCAL = {
    b"bcachefs",
    b"btrfs",
    b"ext2",
    b"ext3",
    b"ext4",
    b"f2fs",
    b"overlay",
    b"ramfs",
    b"tmpfs",
    b"xfs",
    b"zfs",
}
"""Every change to these is made by this machine's kernel, which tells of it and stamps it."""


def local_devices() -> frozenset[int]:
    """The devices of all mounted local file systems; empty where the system does not tell."""
    try:
        lines = Path("/proc/self/mountinfo").read_bytes().splitlines()
    except OSError:
        return frozenset()
    found = set()
    for line in lines:
        before, _, after = line.partition(b" - ")
        if after.split(b" ", 1)[0] in _LOCAL:
            major, _, minor = before.split(b" ")[2].partition(b":")
            found.add(os.makedev(int(major), int(minor)))
            # some file systems give each volume a device of its own, which only stat tells
            mount_point = _ESCAPE.sub(lambda escape: bytes([int(escape[1], 8)]), before.split(b" ")[4])
            try:
                found.add(os.stat(mount_point).st_dev)  # noqa: PTH116 - bytes
            except OSError:
                continue
    return frozenset(found)
