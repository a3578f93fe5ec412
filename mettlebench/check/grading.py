"""What a criterion is handed: the workspace to read, scratch copies to run code in, the task's own files."""

from __future__ import annotations

from pathlib import Path

from mettlebench.check.scratch import Broker, Ran, Scratch
from mettlebench.check.view import View


class Grading(View):
    """The graded workspace. It is never changed: what has to run, runs in a scratch copy."""

    def __init__(self, root: Path, *, scratches: Path, task: Path, broker: Broker) -> None:
        super().__init__(root)
        self._scratches = scratches
        self._task = task
        self._broker = broker

    def scratch(self) -> Scratch:
        """A fresh copy of the workspace."""
        number = self._broker.ask(op="scratch")["scratch"]
        return Scratch(self._scratches / str(number), number, self._broker)

    def git(self, repository: str, *arguments: str, stdin: str = "") -> Ran:
        """Run one git command in a fresh copy."""
        return self.scratch().git(repository, *arguments, stdin=stdin)

    def hidden(self, name: str) -> bytes:
        """A file of the task's `hidden/` folder."""
        return (self._task / "hidden" / name).read_bytes()

    def shipped(self, name: str) -> bytes:
        """A file of the task's `workspace/` folder as it was handed out."""
        return (self._task / "workspace" / name).read_bytes()
