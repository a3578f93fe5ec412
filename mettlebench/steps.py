"""Splits a task's script into steps: each a bash text that stands alone, run in the workspace.

A script is bash with two kinds of directive line. `### step: NAME` begins a step; `[irreversible]` after the
name marks the act that cannot be taken back. `### use: NAME`, in `violation.sh` only, stands for the step of
that name in `reference.sh`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from mettlebench.errors import TaskFormatError
from mettlebench.task import Task

_DIRECTIVE = re.compile(r"###\s*(step|use)\s*:\s*(.*?)\s*(\[irreversible\])?\s*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One call of a shell: `script` runs with `bash -euo pipefail` in the workspace."""

    name: str
    script: str
    irreversible: bool


def reference_steps(task: Task) -> tuple[Step, ...]:
    """The steps of the forward-only reference."""
    return parse_steps(task.folder / "reference.sh", {})


def violation_steps(task: Task) -> tuple[Step, ...]:
    """The steps of the run that ignores the order of the criteria; a step of it may fail."""
    known = {step.name: step for step in reference_steps(task)}
    return parse_steps(task.folder / "violation.sh", known)


def parse_steps(path: Path, known: Mapping[str, Step]) -> tuple[Step, ...]:
    """The steps of one script; `known` holds those that `use` may name. Raises TaskFormatError."""
    lines = path.read_text(encoding="utf-8").splitlines()
    heads = [number for number, line in enumerate(lines) if line.startswith("###")]
    for number, line in enumerate(lines[: heads[0] if heads else len(lines)]):
        if line.strip() and not line.startswith("#"):
            raise TaskFormatError(path, number + 1, "this line stands before the first `### step: NAME`")
    if not heads:
        raise TaskFormatError(path, None, "the script has no step: write `### step: NAME` and bash below it")
    return tuple(
        _step(path, head + 1, lines[head], "\n".join(lines[head + 1 : end]), known)
        for head, end in zip(heads, [*heads[1:], len(lines)], strict=True)
    )


def _step(path: Path, number: int, line: str, body: str, known: Mapping[str, Step]) -> Step:
    found = _DIRECTIVE.fullmatch(line)
    if found is None or not found.group(2):
        raise TaskFormatError(path, number, "expected `### step: NAME` or `### use: NAME`")
    verb, name, mark = found.groups()
    if verb == "step":
        return Step(name=name, script=body.strip() + "\n", irreversible=mark is not None)
    if name not in known:
        names = ", ".join(repr(each) for each in known) or "none that may be used here"
        raise TaskFormatError(path, number, f"no step is called {name!r}; there are {names}")
    return known[name]
