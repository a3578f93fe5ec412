"""Opens Python's debugger inside the harness, at the call that a recorded node answers."""

from __future__ import annotations

import inspect
import os
import pdb
import sys
from collections.abc import Callable
from types import FrameType

_OURS = ("agentrewind", "harness_adapters")
_AROUND = ("contextlib", "contextvars", "functools", "asyncio", "threading", "concurrent")


class HarnessDebugger(pdb.Pdb):
    """A debugger that stands at the harness's own call, and steps over what is the layer's.

    `leave` is called when the person quits; the process ends there, and nothing of the harness runs on.
    """

    def __init__(self, leave: Callable[[], None]) -> None:
        super().__init__(skip=[f"{name}{rest}" for name in _OURS for rest in ("", ".*")])
        self._leave = leave
        self.prompt = "(agentrewind) "

    def open(self, frame: FrameType, title: str) -> None:
        """Let the person look around in this frame; returns when the harness is to go on."""
        self.message(title)
        self.reset()
        self.set_next(frame)
        each: FrameType | None = frame
        while each is not None:
            each.f_trace = self.trace_dispatch
            self.botframe = each
            each = each.f_back
        self.interaction(frame, None)
        going_on = self.stoplineno == -1 and not self.breaks
        if not going_on:
            sys.settrace(self.trace_dispatch)

    def do_quit(self, arg: str) -> bool | None:
        """End the replay here."""
        del arg
        self._leave()
        sys.stdout.flush()
        os._exit(0)

    do_q = do_quit
    do_exit = do_quit
    do_EOF = do_quit  # noqa: N815 - the name that the base class looks for


def harness_frame() -> FrameType:
    """The caller's nearest frame that is neither the layer's, nor an adapter's, nor the library's glue."""
    frame = inspect.currentframe()
    nearest = frame
    while frame is not None:
        top = str(frame.f_globals.get("__name__", "")).partition(".")[0]
        if top not in _OURS and top not in _AROUND:
            return frame
        frame = frame.f_back
    assert nearest is not None, "this interpreter keeps no frames"
    return nearest


def break_into(title: str, leave: Callable[[], None]) -> None:
    """Open the debugger at the harness's call."""
    HarnessDebugger(leave).open(harness_frame(), title)
