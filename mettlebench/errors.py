"""The tree of errors that MettleBench raises.

```text
MettleBenchError
├── UnknownTaskError            exit 2   no task has this id
├── TaskFormatError             exit 2   a task's file is malformed: file, line, what was expected
├── SandboxUnavailableError     exit 1   this machine cannot make the sandbox that was asked for
├── BuildError                  exit 1   a task's builder failed
├── StepError                   exit 1   a step of a reference script failed
├── HarborTaskError             exit 2   a Harbor task that this cannot be done with
├── ExportTargetError           exit 2   something is already where a task is to be exported to
├── WorkspaceCopyError          exit 1   a workspace cannot be copied for grading
└── EvaluatorError              exit 1   an evaluator raised, hung or answered garbage: never a verdict
```
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path


class MettleBenchError(Exception):
    """Root of every error of this package; `exit_code` is what the command line ends with."""

    exit_code = 1


class UnknownTaskError(MettleBenchError):
    """No task of the folder has this id."""

    exit_code = 2

    def __init__(self, task_id: str, folder: Path, known: Sequence[str]) -> None:
        self.task_id = task_id
        self.known = tuple(known)
        shown = ", ".join(self.known) or "none"
        super().__init__(f"no task is called {task_id!r} in {folder}; there are: {shown}")


class TaskFormatError(MettleBenchError):
    """A task's file is not what the format asks for."""

    exit_code = 2

    def __init__(self, file: Path, line: int | None, message: str) -> None:
        self.file = file
        self.line = line
        where = f"{file}:{line}" if line else f"{file}"
        super().__init__(f"{where}: {message}")


class SandboxUnavailableError(MettleBenchError):
    """The sandbox cannot be made here."""


class BuildError(MettleBenchError):
    """The builder of a task's workspace failed; `log` holds what it printed."""

    def __init__(self, task_id: str, reason: str, log: str) -> None:
        self.task_id = task_id
        self.log = log
        super().__init__(f"the builder of {task_id} {reason}; its output:\n{log.rstrip()}")


class StepError(MettleBenchError):
    """A step of a script that has to succeed did not."""

    def __init__(self, *, script: str, step: str, code: int | None, log: str) -> None:
        self.script = script
        self.step = step
        self.code = code
        self.log = log
        ended = "did not end in time" if code is None else f"ended with {code}"
        super().__init__(f"{script}, step {step!r}, {ended}; its output:\n{log.rstrip()}")


class HarborTaskError(MettleBenchError):
    """A Harbor task that what was asked for cannot be done with; the message says what can."""

    exit_code = 2


class ExportTargetError(MettleBenchError):
    """Something is already there; nothing is ever written over."""

    exit_code = 2

    def __init__(self, target: Path) -> None:
        self.target = target
        super().__init__(f"{target} exists; name a folder where nothing of that name is yet")


class WorkspaceCopyError(MettleBenchError):
    """The workspace cannot be copied, so there is nothing to grade."""


class EvaluatorError(MettleBenchError):
    """The evaluator is at fault, so there is no verdict; `log` holds what it printed."""

    def __init__(self, task_id: str, reason: str, log: str = "") -> None:
        self.task_id = task_id
        self.reason = reason
        self.log = log
        tail = f"; its output:\n{log.rstrip()}" if log.strip() else ""
        super().__init__(f"the evaluator of {task_id} {reason}{tail}")
