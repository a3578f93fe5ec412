"""What the demo's tests share: a fresh workspace, real bash in it, and the checker's verdict on it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from harness_adapters.demo import build_workspace, checker_path

HOSTILE_CONFIG = "[commit]\n\tgpgsign = true\n[tag]\n\tgpgsign = true\n[core]\n\thooksPath = /nowhere\n"


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    build_workspace(tmp_path / "workspace")
    return tmp_path / "workspace"


@pytest.fixture(scope="session")
def bash(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Path, str], subprocess.CompletedProcess[str]]:
    """Runs a command in a workspace as a user would whose own git configuration wants other things."""
    home = tmp_path_factory.mktemp("home")
    (home / ".gitconfig").write_text(HOSTILE_CONFIG)
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    environment = {**kept, "HOME": str(home), "XDG_CONFIG_HOME": str(home), "GIT_CONFIG_NOSYSTEM": "1"}

    def run(directory: Path, command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["bash", "-c", command],
            cwd=directory,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            check=False,
        )

    return run


@pytest.fixture(scope="session")
def check() -> Callable[[Path], subprocess.CompletedProcess[str]]:
    def run(directory: Path) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, str(checker_path())]
        return subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False)

    return run
