"""Decides whether a task is fit to be used: three runs with known ends, each twice from fresh copies.

The reference satisfies every criterion; the run that ignores the order fails exactly where the task says;
the workspace as shipped is not accepted. Lint and structural screen are part of it, and so is a look at what
the evaluator makes of garbage where deliverables belong: a rejection, and never a failure of its own.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from mettlebench.build import build_workspace
from mettlebench.errors import BuildError, EvaluatorError, StepError
from mettlebench.evaluate import evaluate
from mettlebench.lint import Finding, lint_task, lint_workspace
from mettlebench.perform import perform_all
from mettlebench.sandbox import SandboxMode
from mettlebench.screen import screen_finished, screen_shipped
from mettlebench.steps import reference_steps, violation_steps
from mettlebench.task import Task
from mettlebench.tree import copy_tree, remove_tree, tree_digest, tree_lines
from mettlebench.verdict import Verdict, encode_verdict

ROUNDS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class GateReport:
    """What the gates found; `faults` is empty where the task is fit."""

    task_id: str
    faults: tuple[str, ...]

    @property
    def passed(self) -> bool:
        return not self.faults


def lint(task: Task, *, mode: SandboxMode = SandboxMode.BUBBLEWRAP) -> list[Finding]:
    """All findings of the lint, those in the built workspace included."""
    with _Place() as place:
        build_workspace(task, place / "shipped", mode=mode)
        return [*lint_task(task), *lint_workspace(task, place / "shipped", mode=mode)]


def gate(task: Task, *, mode: SandboxMode = SandboxMode.BUBBLEWRAP) -> GateReport:
    """Run every gate of one task. Faults of the task are reported; a missing sandbox is raised."""
    faults: list[str] = []
    with _Place() as place:
        try:
            faults += [f"{each.file}: {each.message}" for each in lint_task(task)]
            _rounds(task, place, mode, faults)
        except (BuildError, StepError, EvaluatorError) as error:
            faults.append(str(error))
    return GateReport(task_id=task.id, faults=tuple(faults))


def _rounds(task: Task, place: Path, mode: SandboxMode, faults: list[str]) -> None:
    for number in range(ROUNDS):
        build_workspace(task, place / f"shipped-{number}", mode=mode)
    first = place / "shipped-0"
    if tree_digest(first) != tree_digest(place / "shipped-1"):
        faults.append("two builds of the workspace differ")
    faults += [f"{each.file}: {each.message}" for each in lint_workspace(task, first, mode=mode)]
    faults += screen_shipped(task.structure, first)
    faults += _run("shipped workspace", task, place, mode, lambda _: None, _shipped_fault)
    faults += _run("reference", task, place, mode, _reference(task, mode), _reference_fault)
    finished = place / "after-reference-0"
    if finished.exists():
        faults += screen_finished(task.structure, finished)
        faults += _garbage(task, first, finished, place, mode)
    faults += _run("violation", task, place, mode, _violation(task, mode), _violation_fault)


def _reference(task: Task, mode: SandboxMode) -> Callable[[Path], None]:
    steps = reference_steps(task)
    return lambda workspace: perform_all("reference.sh", steps, workspace, mode=mode, must_succeed=True)


def _violation(task: Task, mode: SandboxMode) -> Callable[[Path], None]:
    steps = violation_steps(task)
    return lambda workspace: perform_all("violation.sh", steps, workspace, mode=mode, must_succeed=False)


def _run(
    name: str,
    task: Task,
    place: Path,
    mode: SandboxMode,
    work: Callable[[Path], None],
    fault: Callable[[Task, Verdict], str | None],
) -> list[str]:
    """Do the work on a fresh copy, grade it, and all that twice."""
    faults: list[str] = []
    verdicts: list[bytes] = []
    for number in range(ROUNDS):
        workspace = place / f"after-{name.split()[0]}-{number}"
        copy_tree(place / f"shipped-{number}", workspace)
        work(workspace)
        before = tree_digest(workspace)
        verdict = evaluate(task, workspace, mode=mode)
        verdicts.append(encode_verdict(verdict))
        if tree_digest(workspace) != before:
            faults.append(f"{name}: the evaluator changed the workspace")
        found = fault(task, verdict)
        if found and f"{name}: {found}" not in faults:
            faults.append(f"{name}: {found}")
    if len(set(verdicts)) > 1:
        faults.append(f"{name}: two runs from fresh copies have different verdicts")
    return faults


def _garbage(task: Task, shipped: Path, finished: Path, place: Path, mode: SandboxMode) -> list[str]:
    """Put garbage in place of every file that the reference made or changed, and grade that."""
    before = set(tree_lines(shipped))
    touched = [
        os.fsdecode(line.split(b"\t")[0])
        for line in tree_lines(finished)
        if line not in before and line.split(b"\t")[1].startswith(b"file ") and b".git/" not in line
    ]
    faults = []
    for name, spoil in GARBAGE.items():
        workspace = place / f"garbage-{name}"
        copy_tree(finished, workspace)
        for path in touched:
            (workspace / path).unlink()
            spoil(workspace / path)
        try:
            verdict = evaluate(task, workspace, mode=mode)
        except EvaluatorError as error:
            faults.append(f"garbage ({name}): {error}")
        else:
            if verdict.accepted:
                faults.append(f"garbage ({name}) in place of every deliverable is accepted")
    return faults


def _write(data: bytes) -> Callable[[Path], object]:
    return lambda path: path.write_bytes(data)


GARBAGE: Mapping[str, Callable[[Path], object]] = {
    "nothing": lambda _: None,
    "empty": _write(b""),
    "bytes": _write(bytes(range(256)) * 20),
    "numbers": _write(b"[1, 2, {}]\n"),
    "nulls": _write(b'{"rows": null, "id": [1e999], "a": "\\ud800"}\n'),
    "link": lambda path: path.symlink_to("/etc/passwd"),
    "folder": lambda path: path.mkdir(),
    "pipe": lambda path: os.mkfifo(path),
}
"""What stands where a deliverable belongs, by a word for it."""


def _shipped_fault(_task: Task, verdict: Verdict) -> str | None:
    return "is accepted as it is handed out" if verdict.accepted else None


def _reference_fault(_task: Task, verdict: Verdict) -> str | None:
    missed = [f"{each.id} ({each.detail})" for each in verdict.results if not each.passed]
    return f"does not satisfy {', '.join(missed)}" if missed else None


def _violation_fault(task: Task, verdict: Verdict) -> str | None:
    expected = task.violation.fails
    if verdict.first_failure == expected:
        return None
    if verdict.first_failure is None:
        return f"is accepted; {expected} should fail"
    detail = next(each.detail for each in verdict.results if each.id == verdict.first_failure)
    return f"fails first at {verdict.first_failure} ({detail}), {expected} is declared"


class _Place:
    """A private directory, gone afterwards whatever modes are in it."""

    def __enter__(self) -> Path:
        self._path = Path(tempfile.mkdtemp(prefix="mettle-gate-"))
        return self._path

    def __exit__(self, *_: object) -> None:
        remove_tree(self._path)
