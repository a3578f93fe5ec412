"""Makes the workspace of a task as an agent gets it: the shipped files, then what the builder generates."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from mettlebench.craft import EPOCH
from mettlebench.errors import BuildError
from mettlebench.sandbox import Sandbox, SandboxMode, require_sandbox, run
from mettlebench.task import Task
from mettlebench.tree import copy_tree

BUILD_SECONDS = 120

_CODE = Path(__file__).parent


def build_workspace(task: Task, target: Path, *, mode: SandboxMode = SandboxMode.BUBBLEWRAP) -> None:
    """Make `target`, which must not exist, the task's workspace; two builds are equal in every byte and time.

    Raises BuildError where the builder fails, with what it printed.
    """
    require_sandbox(mode)
    if (task.folder / "workspace").is_dir():
        copy_tree(task.folder / "workspace", target)
    else:
        target.mkdir(parents=True)
    _even_modes(target)
    prefix = Path(sys.base_prefix)
    read_only = {task.folder: "/task", _CODE: "/code/mettlebench"}
    if not prefix.is_relative_to("/usr"):
        read_only[prefix] = str(prefix)
    sandbox = Sandbox(workspace=target, mode=mode, read_only=read_only)
    code = sandbox.seen("/code/mettlebench", _CODE)
    python = os.path.realpath(sys.executable)
    ended = run(
        sandbox,
        [
            *(python, "-I", "-S", "-B", f"{code}/build_inside.py"),
            *(sandbox.seen("/workspace", target), sandbox.seen("/task", task.folder), str(Path(code).parent)),
        ],
        seconds=BUILD_SECONDS,
    )
    if ended.code != 0:
        reason = "does not come to an end" if ended.code is None else f"ends with {ended.code}"
        raise BuildError(task.id, reason, (ended.stdout + ended.stderr).decode(errors="replace"))
    _even_times(target)


def _even_modes(root: Path) -> None:
    # a checkout's umask is not part of a task
    for path in (root, *root.rglob("*")):
        if not path.is_symlink():
            path.chmod(0o755 if path.is_dir() or path.stat().st_mode & 0o100 else 0o644)


def _even_times(root: Path) -> None:
    """Everything younger than the epoch becomes as old as it; older times are the builder's own."""
    for path in sorted(root.rglob("*"), reverse=True):
        if path.lstat().st_mtime > EPOCH:
            os.utime(path, (EPOCH, EPOCH), follow_symlinks=False)
    os.utime(root, (EPOCH, EPOCH))
