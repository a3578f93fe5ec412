"""The two signals that end an agent process, and the latch that makes sure they do.

A signal is a `BaseException` with a constant text: harnesses catch `Exception`, and one of them retries
whatever looks like a rate limit by its text (paper, Appendix C.1). Code that swallows it all the same
meets the latch at its next call.
"""

from __future__ import annotations

import threading
from enum import StrEnum

from agentrewind.errors import AgentRewindError


class LayerSignal(BaseException):
    """Root of the signals; never caught by this package outside the agent process's main."""


class RewindSignal(LayerSignal):
    """A rewind was decided and written down; this process has nothing more to do."""

    def __init__(self) -> None:
        super().__init__("the agent goes back to an earlier checkpoint")


class StopSignal(LayerSignal):
    """The layer cannot go on truthfully (divergence, storage failure); the reason is in the latch."""

    def __init__(self) -> None:
        super().__init__("the runtime layer stopped this process")


class EndReason(StrEnum):
    """Why the latch fell."""

    REWIND = "rewind"
    STOP = "stop"


class Latch:
    """Falls once and stays down: every later hook raises the same signal again."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._reason: EndReason | None = None
        self._error: AgentRewindError | None = None

    @property
    def reason(self) -> EndReason | None:
        """Why the latch fell, or None while it is up."""
        return self._reason

    @property
    def error(self) -> AgentRewindError | None:
        """The error behind a stop."""
        return self._error

    def rewind(self) -> RewindSignal:
        """Let the latch fall for a rewind; returns the signal to raise."""
        with self._lock:
            self._reason = self._reason or EndReason.REWIND
        return RewindSignal()

    def stop(self, error: AgentRewindError) -> StopSignal:
        """Let the latch fall because of `error`; returns the signal to raise. The first error stays."""
        with self._lock:
            if self._reason is None:
                self._reason, self._error = EndReason.STOP, error
        return StopSignal()

    def check(self) -> None:
        """Raise the signal again if the latch is down."""
        match self._reason:
            case None:
                return
            case EndReason.REWIND:
                raise RewindSignal
            case EndReason.STOP:
                raise StopSignal
