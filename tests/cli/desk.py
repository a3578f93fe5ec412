"""Calls the command line as a user does: a process of its own, a home, a workspace."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentrewind.run_store import Run, RunStore

REPOSITORY = Path(__file__).resolve().parents[2]
HARNESS = "tests.cli.tiny:Tiny"
PROGRAM = [sys.executable, "-m", "agentrewind.cli"]


@dataclass(frozen=True)
class Desk:
    """A place to work at; everything it makes lies below `base`."""

    base: Path

    @property
    def home(self) -> Path:
        return self.base / "home"

    @property
    def workspace(self) -> Path:
        return self.base / "workspace"

    @property
    def counter(self) -> Path:
        return self.base / "counter"

    def environment(self, **extra: str | None) -> dict[str, str]:
        """The user's: with our home, without anything of the real one."""
        found: dict[str, str | None] = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(REPOSITORY),
            "HOME": str(self.base / "user"),
            "AGENTREWIND_HOME": str(self.home),
            "LANG": "C.UTF-8",
            **extra,
        }
        return {name: value for name, value in found.items() if value is not None}

    def call(
        self, *arguments: str, cwd: Path | None = None, environment: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """The finished process, its output as text."""
        return subprocess.run(
            [*PROGRAM, *arguments],
            cwd=cwd or self.base,
            env=dict(environment or self.environment()),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="surrogateescape",
            timeout=100,
            check=False,
        )

    def json(self, *arguments: str, code: int = 0) -> Any:
        """The document of a call with `--json`, which must be the only line, and end with this code."""
        done = self.call(*arguments, "--json")
        assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
        lines = done.stdout.splitlines()
        assert len(lines) == 1, done.stdout
        return json.loads(lines[0])

    def run_arguments(self, plan: Sequence[str], back: Sequence[str] = (), **more: Any) -> list[str]:
        """`run` with the tiny harness."""
        self.workspace.mkdir(exist_ok=True)
        task = json.dumps({"plan": list(plan), "back": list(back), "counter": str(self.counter), **more})
        return [
            "run",
            "--harness",
            HARNESS,
            "--model",
            "tiny-1",
            "--workspace",
            str(self.workspace),
            "--task",
            task,
        ]

    def live_calls(self) -> int:
        """How often the provider was asked."""
        return len(self.counter.read_text().splitlines()) if self.counter.exists() else 0

    def files(self) -> dict[str, bytes]:
        """What stands in the workspace."""
        return tree(self.workspace)

    def only_run(self) -> Run:
        (run,) = RunStore(self.home).runs()
        return run


def tree(directory: Path) -> dict[str, bytes]:
    """Every file below a directory, by its path there."""
    return {
        str(path.relative_to(directory)): path.read_bytes() for path in directory.rglob("*") if path.is_file()
    }


REWINDING = (
    ["sh echo one > a.txt", "sh echo two > b.txt; rm a.txt", "submit", "candidates", "commit 2 Keep a.txt."],
    ["sh echo one > a.txt", "sh echo two > b.txt", "submit"],
)
"""Two files are wanted; the agent deletes one, is rejected, goes back to its second answer, and keeps it."""

CHECK = (
    "test -f a.txt && test -f b.txt || { echo 'criterion: both'; echo 'a.txt or b.txt is missing'; exit 1; }"
)


def tell_story(desk: Desk) -> dict[str, Any]:
    """The run with one rewind, as `run --json` reports it."""
    found: dict[str, Any] = desk.json(*desk.run_arguments(*REWINDING), "--check", CHECK)
    return found
