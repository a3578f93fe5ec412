"""Descriptors of one directory and those above it, reached from the root without following links."""

from __future__ import annotations

import os

from agentrewind.workspace.inventory import Directory

OPEN_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class OpenPath:
    """The way to the directory that was asked for last; close it to release descriptors."""

    def __init__(self, root: int) -> None:
        self._root = root
        self._open: list[tuple[Directory, int]] = []

    def close(self) -> None:
        self._shorten(0)

    def to(self, directory: Directory) -> int | None:
        """A descriptor of a known directory; None when something else stands on the way to it now."""
        chain: list[Directory] = []
        node = directory
        while node.parent is not None:
            chain.append(node)
            node = node.parent
        chain.reverse()
        common = 0
        while common < min(len(chain), len(self._open)) and self._open[common][0] is chain[common]:
            common += 1
        self._shorten(common)
        for step in chain[common:]:
            try:
                handle = os.open(step.name, OPEN_DIRECTORY, dir_fd=self._last())
            except OSError:
                return None
            self._open.append((step, handle))
            status = os.fstat(handle)
            if (status.st_dev, status.st_ino) != (step.dev, step.ino):
                return None
        return self._last()

    def _last(self) -> int:
        return self._open[-1][1] if self._open else self._root

    def _shorten(self, depth: int) -> None:
        while len(self._open) > depth:
            os.close(self._open.pop()[1])
