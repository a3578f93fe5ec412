"""Measures what an action costs the thread that does it, without what goes on beside it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from workspace import Cost


@dataclass
class Meter:
    """Cost of an action to the thread that does it; that of the thread that takes snapshots is apart."""

    camera: float = 0.0

    def measure(self, action: Callable[[], Any]) -> tuple[Cost, Any]:
        calm()  # litellm goes on in threads of its own after an answer
        before = camera_cpu()
        wall, cpu = time.perf_counter(), time.thread_time()
        value = action()
        cpu, wall = time.thread_time() - cpu, time.perf_counter() - wall
        self.camera = (camera_cpu() - before) * 1e3
        return Cost(wall * 1e3, cpu * 1e3), value


def calm() -> None:
    """Wait until this process does nothing more in the background."""
    before, now = -1.0, time.process_time()
    while now - before > 0.0005:
        time.sleep(0.002)
        before, now = now, time.process_time()


def camera_cpu() -> float:
    """CPU seconds of the thread that takes snapshots while the model thinks."""
    return sum(
        time.clock_gettime(time.pthread_getcpuclockid(thread.ident))
        for thread in threading.enumerate()
        if thread.name.startswith("snapshot") and thread.ident is not None
    )
