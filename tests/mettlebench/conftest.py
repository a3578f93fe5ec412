"""A small complete task to try things on, and its finished workspace."""

from __future__ import annotations

from pathlib import Path

import pytest

from mettlebench.build import build_workspace
from mettlebench.load import read_task
from mettlebench.perform import perform_all
from mettlebench.scaffold import new_task
from mettlebench.steps import reference_steps
from mettlebench.task import Task
from mettlebench.tree import copy_tree


@pytest.fixture(scope="session")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Task:
    return new_task(tmp_path_factory.mktemp("tasks") / "sample")


@pytest.fixture(scope="session")
def _finished(sample: Task, tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("finished") / "workspace"
    build_workspace(sample, place)
    perform_all("reference.sh", reference_steps(sample), place, must_succeed=True)
    return place


@pytest.fixture
def finished(_finished: Path, tmp_path: Path) -> Path:
    copy_tree(_finished, tmp_path / "workspace")
    return tmp_path / "workspace"


@pytest.fixture
def task_copy(tmp_path: Path) -> Path:
    """The folder of a task that a test may spoil."""
    return new_task(tmp_path / "tasks" / "spoilt").folder


def with_evaluator(folder: Path, source: str) -> Task:
    (folder / "evaluate.py").write_text(source)
    return read_task(folder)
