"""Lets a call wait until the log has been served to the others."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import TypeVar

from agentrewind.errors import DivergenceError
from agentrewind.replay_decisions import Wait

T = TypeVar("T")

STALL_S = 60.0
"""How long nobody may have gone on before a call that waits is refused."""

_SLICE_S = 0.05
_OURS = "snapshot"
_IN_LOOP = " (it held up its event loop while it waited for the others: await it, or make it in a thread)"


class Turns:
    """Calls that are decided again whenever another one has gone on. Safe for threads.

    Args:
        check: raises the signal of a process that is to end.
        stall: seconds.
    """

    def __init__(self, *, check: Callable[[], None], stall: float = STALL_S) -> None:
        self._check = check
        self._stall = stall
        self._passed = 0
        self._moved = threading.Condition()

    def decided(self, decide: Callable[[], T | Wait]) -> T:
        """What `decide` says once it no longer says to wait.

        Raises DivergenceError where nobody is left who could go on, and the signal of a process that ends.
        """
        while True:
            seen = self._passed
            found = decide()
            if not isinstance(found, Wait):
                self._go_on()
                return found
            if not _others():
                raise _refused(found)
            waited = 0.0
            while seen == self._passed:
                self._check()
                if waited >= self._stall:
                    raise _refused(found, hint=_IN_LOOP if _in_loop() else "")
                with self._moved:
                    self._moved.wait_for(lambda: seen != self._passed, _SLICE_S)  # noqa: B023 - used at once
                waited += _SLICE_S

    async def adecided(self, decide: Callable[[], T | Wait]) -> T:
        """The same without holding up an event loop."""
        while True:
            seen = self._passed
            found = decide()
            if not isinstance(found, Wait):
                self._go_on()
                return found
            if not _others() and len(asyncio.all_tasks()) == 1:
                raise _refused(found)
            waited, pause = 0.0, 0.001
            while seen == self._passed:
                self._check()
                if waited >= self._stall:
                    raise _refused(found)
                await asyncio.sleep(pause)
                waited, pause = waited + pause, min(2 * pause, _SLICE_S)

    def _go_on(self) -> None:
        with self._moved:
            self._passed += 1
            self._moved.notify_all()


def _others() -> bool:
    """Whether another thread could make a call."""
    here = threading.current_thread()
    return any(each is not here and not each.name.startswith(_OURS) for each in threading.enumerate())


def _in_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _refused(wait: Wait, *, hint: str = "") -> DivergenceError:
    refusal = wait.otherwise
    return DivergenceError(record_uid=refusal.record_uid, difference=refusal.difference + hint)
