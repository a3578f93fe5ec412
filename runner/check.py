"""The check of a submission: grades the workspace, keeps the whole verdict, tells the first failure alone.

Run by the agent's process in the workspace. Prints `criterion: ID` and the criterion's feedback. Exit codes:
0 accepted, 1 rejected, 125 the evaluator failed, so that there is no verdict.
"""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path

from agentrewind.processes import die_with_parent
from mettlebench.errors import MettleBenchError
from mettlebench.evaluate import evaluate
from mettlebench.load import load_task
from mettlebench.sandbox import SandboxMode
from mettlebench.task import Task
from mettlebench.verdict import Verdict, decode_verdict, encode_verdict

VERDICTS_FILE = "verdicts.jsonl"
"""In the cell's folder: every verdict of the cell in order, a line each."""


def command(*, task_id: str, tasks: Path, folder: Path, mode: SandboxMode) -> str:
    """The check as the run's options hold it."""
    parts = [sys.executable, "-P", "-m", "runner.check", task_id, str(tasks), str(folder), mode.value]
    # the shell that runs it makes way, so that the judge is a child of the agent process and ends with it
    return f"exec {shlex.join(parts)}"


def read_verdicts(folder: Path) -> tuple[Verdict, ...]:
    """Every verdict of the cell so far."""
    try:
        data = (folder / VERDICTS_FILE).read_bytes()
    except FileNotFoundError:
        return ()
    return tuple(decode_verdict(line) for line in data.splitlines() if line)


def judge(task: Task, workspace: Path, *, folder: Path, mode: SandboxMode) -> tuple[int, str]:
    """The check's exit code and what it prints; the verdict joins those of the folder."""
    earlier = read_verdicts(folder)
    try:
        verdict = evaluate(task, workspace, mode=mode, previous=earlier[-1] if earlier else None)
    except MettleBenchError as error:
        return _cannot_judge(), str(error)
    with (folder / VERDICTS_FILE).open("ab") as log:
        log.write(encode_verdict(verdict))
    if verdict.accepted:
        return 0, ""
    return 1, f"criterion: {verdict.first_failure}\n{verdict.feedback}"


def _cannot_judge() -> int:
    # every verdict is a process of its own, and this import takes as long as all others together
    from agentrewind.submission import CANNOT_JUDGE

    return CANNOT_JUDGE


def main(arguments: list[str]) -> int:
    """Judge the current directory."""
    die_with_parent(os.getppid())
    task_id, tasks, folder, mode = arguments[0], Path(arguments[1]), Path(arguments[2]), arguments[3]
    try:
        task = load_task(task_id, tasks)
    except MettleBenchError as error:
        print(error)  # noqa: T201 - what the run's log will hold
        return _cannot_judge()
    code, said = judge(task, Path.cwd(), folder=folder, mode=SandboxMode(mode))
    print(said)  # noqa: T201 - the check's answer
    return code


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except Exception as failure:  # noqa: BLE001 - a broken judge must never look like a rejection
        print(f"{type(failure).__name__}: {failure}")  # noqa: T201
        sys.exit(_cannot_judge())
