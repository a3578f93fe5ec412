"""Writes a task as a Harbor task: image, instruction, verifier, reference; the same bytes each time."""

from __future__ import annotations

import shutil
import stat
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path

from mettlebench.build import build_workspace
from mettlebench.errors import ExportTargetError
from mettlebench.harbor import texts
from mettlebench.sandbox import SandboxMode
from mettlebench.steps import reference_steps
from mettlebench.task import Task

_CODE = Path(__file__).parent.parent
_JUDGE = (
    "__init__.py",
    "craft.py",
    "errors.py",
    "evaluate.py",
    "load.py",
    "other_user.py",
    "sandbox.py",
    "task.py",
    "toml_file.py",
    "tree.py",
    "verdict.py",
    "check",
    "etc",
    "harbor/__init__.py",
    "harbor/grade_inside.py",
)
"""What of this package grades a workspace; all of it does with the standard library."""


def export_task(
    task: Task, target: Path, *, network: bool = False, mode: SandboxMode = SandboxMode.BUBBLEWRAP
) -> None:
    """Make `target`, which must not exist, the Harbor task; it appears whole or not at all.

    `network` lets the agent's container reach it. Raises ExportTargetError, BuildError, TaskFormatError.
    """
    if target.exists():
        raise ExportTargetError(target)
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".export-", dir=target.parent) as place:
        made = Path(place) / target.name
        _write(made / "task.toml", texts.task_toml(task, network=network))
        _write(made / "instruction.md", task.instruction)
        _environment(task, made / "environment", Path(place) / "workspace", mode)
        _tests(task, made / "tests")
        _solution(task, made / "solution")
        made.rename(target)


def _environment(task: Task, folder: Path, workspace: Path, mode: SandboxMode) -> None:
    _write(folder / "Dockerfile", texts.dockerfile())
    build_workspace(task, workspace, mode=mode)
    with tarfile.open(folder / "workspace.tar", "w", format=tarfile.GNU_FORMAT) as archive:
        for path in (workspace, *sorted(workspace.rglob("*"))):
            archive.add(path, f"./{path.relative_to(workspace)}", recursive=False, filter=_of_the_agent)


def _of_the_agent(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.uid = entry.gid = texts.AGENT_USER_ID
    entry.uname = entry.gname = texts.AGENT_USER
    return entry


def _tests(task: Task, folder: Path) -> None:
    _write(folder / "test.sh", texts.test_script(task), executable=True)
    for name in _JUDGE:
        source = _CODE / name
        for path in _files(source) if source.is_dir() else (source,):
            _copy(path, folder / "mettlebench" / path.relative_to(_CODE))
    for path in _files(task.folder):
        _copy(path, folder / task.id / path.relative_to(task.folder))


def _solution(task: Task, folder: Path) -> None:
    _write(folder / "solve.sh", texts.solve_script(task), executable=True)
    for number, step in enumerate(reference_steps(task), start=1):
        _write(folder / "steps" / f"{number:02}.sh", texts.step_script(task, step))


def _files(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            yield path


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)
    target.chmod(0o755 if source.stat().st_mode & stat.S_IXUSR else 0o644)


def _write(path: Path, text: str, *, executable: bool = False) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755 if executable else 0o644)
