"""Which files are mapped writable and shared by a live process, and so change without a trace."""

from __future__ import annotations

import os
import re
from pathlib import Path

_SHARED_WRITABLE = re.compile(rb"^\S+ .w.s \S+ \S+ [1-9]\d*\s+(/.*)$", re.MULTILINE)
_ESCAPE = re.compile(rb"\\([0-7]{3})")


def shared_mappings(root: Path) -> frozenset[bytes]:
    """Paths relative to the root of files that some process may change through memory.

    Processes of other users that may not be looked at are passed over.
    """
    prefix = os.fsencode(root).rstrip(b"/") + b"/"
    found = set()
    try:
        processes = [entry.name for entry in os.scandir("/proc") if entry.name.isdigit()]
    except OSError:
        return frozenset()
    for process in processes:
        try:
            with open(f"/proc/{process}/maps", "rb") as file:  # noqa: PTH123 - a hot loop
                text = file.read()
        except OSError:
            continue
        if b"s " not in text or prefix not in text:
            continue
        for match in _SHARED_WRITABLE.finditer(text):
            path = _ESCAPE.sub(lambda escape: bytes([int(escape[1], 8)]), match[1])
            if path.startswith(prefix):
                found.add(path[len(prefix) :])
    return frozenset(found)
