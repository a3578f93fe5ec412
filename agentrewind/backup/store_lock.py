"""Keeps apart those who preserve or restore, any number of them at once, and the one who drops backups."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from fcntl import LOCK_EX, LOCK_NB, LOCK_SH, flock
from pathlib import Path

from agentrewind.durable import make_directory

_NAME = "lock"
_PAUSE = 0.05


@contextmanager
def at_work(directory: Path) -> Iterator[None]:
    """Nothing is dropped meanwhile; waits for a collection that has begun. A process that dies ends it."""
    handle = _opened(directory)
    try:
        flock(handle, LOCK_SH)
        yield
    finally:
        os.close(handle)


@contextmanager
def alone(directory: Path, *, seconds: float) -> Iterator[bool]:
    """Whether nobody was at work any more within so many seconds; nobody begins meanwhile."""
    handle = _opened(directory)
    try:
        yield _taken(handle, seconds)
    finally:
        os.close(handle)


def _opened(directory: Path) -> int:
    make_directory(directory)
    # a descriptor of its own each time: threads of one process count one by one
    return os.open(directory / _NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


def _taken(handle: int, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while True:
        try:
            flock(handle, LOCK_EX | LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                return False
            time.sleep(_PAUSE)
        else:
            return True
