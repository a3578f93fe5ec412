"""Runs each try as a process of this machine."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from agentrewind.processes import adopt_orphans, descendants, end
from runner.cell import Cell
from runner.executors.executor import Ended
from runner.order import Order

LOG_FILE = "cell.log"
_POLL_SECONDS = 0.05
_GRACE_SECONDS = 20.0


class LocalExecutor:
    """Processes below this one, which adopts what a killed one leaves behind and ends it."""

    def __init__(self, jobs: int, environment: Mapping[str, str]) -> None:
        self.capacity = jobs
        self._environment = dict(environment)
        self._running: dict[Cell, subprocess.Popen[bytes]] = {}
        adopt_orphans()

    def submit(self, order: Order, folder: Path) -> None:
        """Start the process of a cell; what it says goes to `cell.log` in the folder."""
        self._running[order.cell] = start_cell(folder, self._environment)

    def wait(self, seconds: float) -> Sequence[Ended]:
        """The processes that have ended."""
        deadline = time.monotonic() + seconds
        while True:
            ended = [cell for cell, process in self._running.items() if process.poll() is not None]
            if ended or time.monotonic() >= deadline:
                return [self._collect(cell) for cell in ended]
            time.sleep(_POLL_SECONDS)

    def cancel(self, cell: Cell) -> None:
        """Ask the process to end in good order; kill it if it does not."""
        process = self._running.get(cell)
        if process is None:
            return
        stop_cell(process)
        self._end_orphans()

    def close(self) -> None:
        for process in self._running.values():
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
        for cell in list(self._running):
            self.cancel(cell)
        self._running.clear()

    def _collect(self, cell: Cell) -> Ended:
        code = self._running.pop(cell).returncode
        if code >= 0:
            return Ended(cell=cell)
        self._end_orphans()
        return Ended(cell=cell, lost=f"the cell's process was ended by {signal.Signals(-code).name}")

    def _end_orphans(self) -> None:
        """End what is below this process and belongs to no cell that still runs."""

        def orphans() -> list[object]:
            cells = [process.pid for process in self._running.values() if process.poll() is None]
            kept = {each.pid for pid in cells for each in descendants(pid)} | set(cells)
            return [each for each in descendants(os.getpid()) if each.pid not in kept]

        end(orphans)  # type: ignore[arg-type]


def start_cell(folder: Path, environment: Mapping[str, str] | None) -> subprocess.Popen[bytes]:
    """A process that runs the cell of this folder once and dies with the thread that has started it.

    Without an environment it has that of this process.
    """
    command = [sys.executable, "-P", "-m", "runner.cli", "cell", str(folder), "--parent", str(os.getpid())]
    with (folder / LOG_FILE).open("ab") as log:
        return subprocess.Popen(
            command,
            env=None if environment is None else dict(environment),
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def stop_cell(process: subprocess.Popen[bytes]) -> None:
    """Ask a cell's process to end; kill it after twenty seconds. Its children die with it."""
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(_GRACE_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
