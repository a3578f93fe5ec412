"""The shell of an agent on a task: one sandbox for each agent process, reviewed commands, no endless wait.

It runs in the agent process, which holds the provider's credentials; what the commands see is the sandbox
alone. Everything that a command leaves running ends with the process.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from agentrewind.current import current_layer
from agentrewind.errors import HarnessError
from agentrewind.fields import Fields
from agentrewind.processes import descendants
from agentrewind.records import JsonObject
from harness_adapters.shell import ShellResult, shown, timed_out
from mettlebench.errors import MettleBenchError
from mettlebench.sandbox import Sandbox, SandboxMode
from mettlebench.session import Session, SessionEndedError
from runner.monitor import Monitor
from runner.order import number

STUCK_FILE = "stuck.json"
"""Stands in the cell's folder once a command was ended because nothing ran in it any more."""

BLOCKED = 126
KILLED = 137
BROUGHT_DOWN = "The command ended every process of its shell; whatever was still running has ended too."
_LOOKS_PER_WAIT = 8


class CommandStuckError(HarnessError):
    """A command waits for something that never comes; the cell is ended and run again."""


def open_shell(workspace: Path, settings: JsonObject) -> SandboxShell:
    """The shell that the setting `shell` of the run describes."""
    fields = Fields(settings, "shell")
    sandbox = Sandbox(
        workspace=workspace, mode=SandboxMode(fields.text("sandbox")), network=fields.flag("network")
    )
    return SandboxShell(
        sandbox,
        folder=Path(fields.text("folder")),
        stuck_seconds=number(fields, "stuck_seconds"),
        monitor=fields.optional("monitor", Monitor.of),
    )


class SandboxShell:
    """Runs an agent's commands in one sandbox, started with the first of them."""

    def __init__(
        self, sandbox: Sandbox, *, folder: Path, stuck_seconds: float, monitor: Monitor | None = None
    ) -> None:
        self._sandbox = sandbox
        self._folder = folder
        self._stuck_seconds = stuck_seconds
        self._monitor = monitor
        self._lock = threading.Lock()
        self._session: Session | None = None

    @property
    def directory(self) -> str:
        return self._sandbox.seen(self._sandbox.inside, self._sandbox.workspace)

    def run(self, command: str, timeout: float | None) -> ShellResult:
        """Run a command unless the monitor forbids it.

        A sandbox that cannot be made is the machine's failure and not the agent's: the run stops.
        """
        if self._monitor is not None:
            review = self._monitor.review(command)
            if not review.safe:
                return ShellResult(output=review.observation(), exit_code=BLOCKED)
        try:
            session = self._opened()
            with self._watched(session, command) as stuck:
                ended = session.run(command, seconds=timeout)
        except SessionEndedError:
            self.close()  # the command itself has killed what it ran in; the next one gets a new sandbox
            return ShellResult(output=BROUGHT_DOWN, exit_code=KILLED)
        except MettleBenchError as error:
            raise _stop(HarnessError(f"the agent's sandbox failed: {error}")) from error
        if stuck():
            raise _stop(
                CommandStuckError(
                    f"nothing ran in a command for {self._stuck_seconds:g} seconds, as if it waited for input"
                )
            )
        output = shown(ended.output)
        return (
            timed_out(output, timeout) if ended.stopped else ShellResult(output=output, exit_code=ended.code)
        )

    def close(self) -> None:
        with self._lock:
            if self._session is not None:
                self._session.close()
                self._session = None

    def _opened(self) -> Session:
        with self._lock:
            if self._session is None:
                self._session = Session(self._sandbox)
            return self._session

    @contextmanager
    def _watched(self, session: Session, command: str) -> Iterator[Callable[[], bool]]:
        """Ends the command when for so long no process of the sandbox has used any time."""
        over, ended = threading.Event(), threading.Event()

        def watch() -> None:
            last, since = _work_done(session.pid), 0.0
            wait = self._stuck_seconds / _LOOKS_PER_WAIT
            while not over.wait(wait):
                now = _work_done(session.pid)
                since = since + wait if now == last else 0.0
                last = now
                if since >= self._stuck_seconds:
                    ended.set()
                    (self._folder / STUCK_FILE).write_text(json.dumps({"command": command}))
                    session.interrupt()
                    return

        watcher = threading.Thread(target=watch, name="stuck-watch", daemon=True)
        watcher.start()
        try:
            yield ended.is_set
        finally:
            over.set()
            watcher.join()


def _work_done(pid: int) -> tuple[tuple[int, bytes], ...]:
    """Who runs below the sandbox and how much processor time each has used; equal where nothing ran."""
    found = []
    for process in descendants(pid):
        try:
            stat = Path(f"/proc/{process.pid}/stat").read_bytes()
        except OSError:
            continue
        times = stat[stat.rindex(b")") + 2 :].split()[11:15]
        found.append((process.pid, b" ".join(times)))
    return tuple(sorted(found))


def _stop(error: HarnessError) -> BaseException:
    """What ends this process for good: harnesses tell an ordinary error to the agent and go on."""
    layer = current_layer()
    return error if layer is None else layer.latch.stop(error)
