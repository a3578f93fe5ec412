"""Campaigns started as a person starts them, in a process of their own."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from runner.result import Result
from runner.result_form import load_results
from tests.runner.small import NAME
from tests.runner.stage import environment


def write_plan(
    place: Path, tasks: Path, *, strategies: Sequence[str], more: str = "", **root: object
) -> Path:
    """A plan for the small harness; `root` and `more` add to it or take the place of lines."""
    lines = {
        "tasks": '["all"]',
        "tasks_folder": f'"{tasks}"',
        "harnesses": f'["{NAME}"]',
        "strategies": "[" + ", ".join(f'"{each}"' for each in strategies) + "]",
        "progress": "false",
        **{name: str(value) for name, value in root.items()},
    }
    text = "\n".join(f"{name} = {value}" for name, value in lines.items())
    more = more or '[limits]\njobs = 2\n[[models]]\nname = "simulated:reckless"\n'
    path = place / "plan.toml"
    path.write_text(f"{text}\n{more}")
    return path


def runner(*arguments: object) -> subprocess.CompletedProcess[str]:
    """`runner ARGUMENTS`, to its end."""
    return subprocess.run(_command(arguments), env=environment(), capture_output=True, text=True, check=False)


def start(*arguments: object, env: Mapping[str, str] | None = None) -> subprocess.Popen[str]:
    """The same, under way."""
    return subprocess.Popen(
        _command(arguments),
        env={**environment(), **(env or {})},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def results(out: Path) -> dict[str, Result]:
    """The results of a campaign by strategy and run."""
    return {f"{each.cell.strategy}/{each.cell.run}": each for each in load_results(out)}


def timeless(result: Result) -> Result:
    """A result without what differs between two runs of the same agent."""
    return dataclasses.replace(
        result, tries=0, seconds=0.0, storage_bytes=0, started_at="", ended_at="", task_digest=""
    )


def _command(arguments: Sequence[object]) -> list[str]:
    return [sys.executable, "-P", "-m", "runner.cli", *map(str, arguments)]
