"""Ends a child process just before the n-th of its changes to the disk."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator

CHANGES = {
    "os.rename",
    "os.remove",
    "os.mkdir",
    "os.rmdir",
    "os.link",
    "os.symlink",
    "os.chmod",
    "os.utime",
    "os.truncate",
    "os.setxattr",
    "os.removexattr",
}


def killed_at(number: int, action: Callable[[], None]) -> bool:
    """Run in a child that dies just before its change of that number; whether it got so far."""
    child = os.fork()
    if child == 0:
        _die_at(number)
        status = 1
        try:
            action()
            status = 0
        finally:
            os._exit(status)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert code in (0, -signal.SIGKILL)
    return code != 0


def _die_at(number: int) -> None:
    count = 0

    def change() -> bool:
        nonlocal count
        count += 1
        return count == number

    def hook(event: str, arguments: tuple[object, ...]) -> None:
        creates = event == "open" and isinstance(arguments[2], int) and arguments[2] & os.O_CREAT
        if (event in CHANGES or creates) and change():
            os.kill(os.getpid(), signal.SIGKILL)

    real_write = os.write

    def write(handle: int, data: bytes) -> int:
        if change():
            real_write(handle, bytes(data)[: len(data) // 2])
            os.kill(os.getpid(), signal.SIGKILL)
        return real_write(handle, data)

    os.write = write  # type: ignore[assignment]
    sys.addaudithook(hook)


def numbers() -> Iterator[int]:
    number = 1
    while True:
        yield number
        number += 1
