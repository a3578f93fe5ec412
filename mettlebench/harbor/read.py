"""Reads somebody's Harbor task: what an agent is told, and the tests as criteria that stand in no order."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from mettlebench.errors import TaskFormatError, UnknownTaskError
from mettlebench.load import is_harbor, load_task, task_ids
from mettlebench.task import Task
from mettlebench.toml_file import Table, TomlFile

FAMILY = "harbor"
REWARD = "reward"
"""The one criterion of a task whose tests are no Python tests."""

ROOT = Path("environment") / "rootfs"
"""In a task's folder: where the unpacked file system of its image is looked for."""

DEFAULT_SECONDS = 600.0

_WORKDIR = re.compile(r"^\s*WORKDIR\s+(.+?)\s*$", re.IGNORECASE | re.MULTILINE)
_TEST_FILE = re.compile(r"test_.*\.py|.*_test\.py")


@dataclass(frozen=True, slots=True, kw_only=True)
class HarborTask:
    """A task of Harbor's format.

    Attributes:
        tests: names of the Python tests, `FILE::TEST`, or `reward` alone.
        workdir: where the agent works in the container; None where the image alone says it.
        seconds: what its verifier may take.
        root: the image's file system, if somebody has unpacked it.
    """

    id: str
    title: str
    category: str
    instruction: str
    tests: tuple[str, ...]
    workdir: PurePosixPath | None
    seconds: float
    root: Path | None
    folder: Path


def load_either(task_id: str, folder: Path) -> Task | HarborTask:
    """The task of this id, ours or Harbor's. Raises UnknownTaskError, TaskFormatError."""
    known = task_ids(folder)
    if task_id not in known:
        raise UnknownTaskError(task_id, folder, known)
    return read_harbor(folder / task_id) if is_harbor(folder / task_id) else load_task(task_id, folder)


def read_harbor(folder: Path) -> HarborTask:
    """The Harbor task in this very folder; raises TaskFormatError for what it cannot be read by."""
    root = TomlFile(folder / "task.toml").root
    if root.has("steps"):
        root.refuse("a task of several steps is not supported", "steps")
    package, metadata, verifier, environment = (
        root.table(name) if root.has(name) else None
        for name in ("task", "metadata", "verifier", "environment")
    )
    place = folder / ROOT
    return HarborTask(
        id=folder.name,
        title=_text(package, "description") or folder.name,
        category=_text(metadata, "category") or "none given",
        instruction=_instruction(folder / "instruction.md"),
        tests=tuple(_tests(folder / "tests")) or (REWARD,),
        workdir=_workdir(_text(environment, "workdir"), folder / "environment" / "Dockerfile"),
        seconds=verifier.real("timeout_sec", least=1)
        if verifier is not None and verifier.has("timeout_sec")
        else DEFAULT_SECONDS,
        root=place if place.is_dir() else None,
        folder=folder,
    )


def _text(table: Table | None, key: str) -> str:
    return table.text(key) if table is not None and table.has(key) and table.value(key) != "" else ""


def _instruction(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").strip() + "\n"
    except (OSError, UnicodeDecodeError) as error:
        raise TaskFormatError(path, None, f"cannot be read as UTF-8 text: {error}") from error


def _workdir(named: str, dockerfile: Path) -> PurePosixPath | None:
    found = [named] if named else []
    if not found and dockerfile.is_file():
        found = _WORKDIR.findall(dockerfile.read_text(encoding="utf-8", errors="replace"))
    place = PurePosixPath("/")
    for each in found:
        # a later one that is relative goes on from the one before
        place /= each.strip("\"'")
    return None if not found or "$" in str(place) or place == PurePosixPath("/") else place


def _tests(folder: Path) -> Iterator[str]:
    for path in sorted(folder.glob("*.py")):
        if not _TEST_FILE.fullmatch(path.name):
            continue
        try:
            tree = ast.parse(path.read_bytes(), str(path))
        except (SyntaxError, ValueError) as error:
            raise TaskFormatError(
                path, getattr(error, "lineno", None), f"this is no Python: {error}"
            ) from error
        for name in _named(tree.body):
            yield f"{path.name}::{name}"


def _named(body: list[ast.stmt]) -> Iterator[str]:
    for each in body:
        if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef) and each.name.startswith("test"):
            yield each.name
        elif isinstance(each, ast.ClassDef) and each.name.startswith("Test"):
            yield from (f"{each.name}::{name}" for name in _named(each.body))
