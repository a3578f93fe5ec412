"""Carries out the steps of a task's script on a workspace, one shell call each, as an agent would."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mettlebench.errors import StepError
from mettlebench.sandbox import Sandbox, SandboxMode, run
from mettlebench.steps import Step

STEP_SECONDS = 300
LOG_TAIL = 3000


@dataclass(frozen=True, slots=True, kw_only=True)
class StepResult:
    """How one step ended; `code` is None where it did not end in time."""

    step: Step
    code: int | None
    output: str


def perform_step(step: Step, workspace: Path, *, mode: SandboxMode = SandboxMode.BUBBLEWRAP) -> StepResult:
    """Run one step in a sandbox of its own; what it started ends with it."""
    ended = run(
        Sandbox(workspace=workspace, mode=mode),
        ["bash", "-euo", "pipefail", "-c", step.script],
        seconds=STEP_SECONDS,
    )
    return StepResult(
        step=step, code=ended.code, output=(ended.stdout + ended.stderr).decode(errors="replace")
    )


def perform_all(
    script: str,
    steps: Sequence[Step],
    workspace: Path,
    *,
    mode: SandboxMode = SandboxMode.BUBBLEWRAP,
    must_succeed: bool,
) -> None:
    """Run steps in order. Raises StepError at the first that fails, if they must succeed."""
    for step in steps:
        result = perform_step(step, workspace, mode=mode)
        if must_succeed and result.code != 0:
            raise StepError(script=script, step=step.name, code=result.code, log=result.output[-LOG_TAIL:])
