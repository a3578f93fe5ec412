"""Fixtures of the runner's tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.runner.stage import Stage, make_tasks


@pytest.fixture(scope="session")
def tasks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_tasks(tmp_path_factory.mktemp("tasks"))


@pytest.fixture
def stage(tmp_path: Path, tasks: Path) -> Stage:
    return Stage(tmp_path, tasks)
