"""Runs whose files are a copy that the agent sees at the recorded path: starts our command line inside of it.

The process gets a mount namespace of its own in which the copy covers the workspace; the network stays.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from agentrewind.copy_enclosure import EXIT_NO_ENCLOSURE, enclosed
from agentrewind.errors import DamagedError, ProtectedError
from agentrewind.run_files import copy_of, declared_root
from agentrewind.run_store import Run

INSIDE = "AGENTREWIND_INSIDE_COPY"
"""Set to the run's id in the process that sees the copy at the recorded path."""

_COMMAND_LINE = "from agentrewind.cli import main; main()"


def needs_enclosure(run: Run, environment: Mapping[str, str]) -> bool:
    """Whether the run has a copy and this process does not see it at the recorded path yet."""
    return copy_of(run.timeline()) is not None and environment.get(INSIDE) != run.run_id


def refuse_outside(run: Run, environment: Mapping[str, str]) -> None:
    """Raise ProtectedError where going on here would move the original's files instead of the run's own."""
    if needs_enclosure(run, environment):
        raise ProtectedError(
            f"run {run.run_id} works in a copy of its own, which this process does not see at the recorded "
            f"path; go on with: agentrewind run --resume {run.run_id}"
        )


def go_inside(run: Run, arguments: Sequence[str], *, home: Path, environment: Mapping[str, str]) -> int:
    """`agentrewind ARGUMENTS` where the copy covers the recorded path; returns its exit code.

    Raises:
        DamagedError: the copy is gone.
        ProtectedError: this system cannot lay the copy over the path; the original is never used instead.
    """
    timeline = run.timeline()
    copy = copy_of(timeline)
    assert copy is not None
    root = declared_root(timeline)
    if not copy.is_dir():
        raise DamagedError(f"the files of run {run.run_id} are gone: there is no folder {copy}")
    command = [sys.executable, "-P", "-c", _COMMAND_LINE, *arguments]
    child = subprocess.Popen(
        enclosed(copy, root, command, online=True),
        env={**environment, INSIDE: run.run_id, "AGENTREWIND_HOME": str(home)},
    )
    with _left_to(child):
        code = child.wait()
    if code == EXIT_NO_ENCLOSURE:
        raise ProtectedError(
            f"this system cannot show a copy at {root}, and the original is never used instead; it needs "
            "root or user namespaces. --in-place goes back in the original workspace"
        )
    return code


@contextmanager
def _left_to(child: subprocess.Popen[bytes]) -> Iterator[None]:
    """While this lasts, requests to stop are the child's business, which keeps the run resumable.

    A terminal sends its Ctrl-C to the child as well; what is sent to this process alone is handed on.
    """
    handlers: Mapping[int, Callable[[int, FrameType | None], None]] = {
        signal.SIGINT: lambda _number, _frame: None,
        signal.SIGTERM: lambda number, _frame: child.send_signal(number),
    }
    previous = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
