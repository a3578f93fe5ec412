"""Kills its own process at the n-th system call that writes, as `KILLER` in the environment says.

`KILLER` is JSON: `starts` (a file that counts the processes with it), `process` (which of them dies, from 1),
`call` (at which of its calls), `half` (whether half of a write still happens), `with_parent` (whether the
parent dies too), `counts` (a directory where each process keeps its number of calls so far).
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

NAMES = (
    *("write", "pwrite", "writev", "fsync", "fdatasync", "ftruncate", "truncate"),
    *("replace", "rename", "link", "unlink", "symlink", "mkdir", "rmdir", "utime", "chmod", "open"),
)


class Counted:
    """The calls of this process, counted until the one at which it dies."""

    def __init__(self, order: dict[str, Any]) -> None:
        self.calls = 0
        self.order = order
        self.real: dict[str, Callable[..., Any]] = {name: getattr(os, name) for name in NAMES}
        self.number = _number(order["starts"], self.real)
        # kept up to date, for a process may leave without a word
        self.count = os.open(
            f"{order['counts']}/{self.number}", os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600
        )

    def install(self) -> None:
        for name in NAMES:
            setattr(os, name, self.wrapped(name))

    def wrapped(self, name: str) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            if name != "open" or arguments[1] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
                self.calls += 1
                self.real["pwrite"](self.count, str(self.calls).encode(), 0)
                if self.number == self.order["process"] and self.calls == self.order["call"]:
                    self.die(name, arguments)
            return self.real[name](*arguments, **named)

        return call

    def die(self, name: str, arguments: tuple[Any, ...]) -> None:
        if self.order["half"] and name == "write" and len(arguments[1]) > 1:
            self.real["write"](arguments[0], bytes(arguments[1])[: len(arguments[1]) // 2])
        if self.order["with_parent"]:
            os.kill(os.getppid(), signal.SIGKILL)
        os.kill(os.getpid(), signal.SIGKILL)


def _number(starts: str, real: dict[str, Callable[..., Any]]) -> int:
    """The how-manieth process this is."""
    descriptor = real["open"](starts, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    real["write"](descriptor, b".")
    number = os.fstat(descriptor).st_size
    os.close(descriptor)
    return number


# what the agent starts is no process of the run's own, so the order is for this process only
ORDER = os.environ.pop("KILLER", None)
if ORDER is not None:
    sys.path[:] = [entry for entry in sys.path if Path(entry) != Path(__file__).parent]
    Counted(json.loads(ORDER)).install()
