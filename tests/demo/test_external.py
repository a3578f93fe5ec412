"""The demo's story about state outside the workspace, as a person runs it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from agentrewind.records import RewindDone
from agentrewind.run_store import Run

pytestmark = pytest.mark.slow


def test_a_dropped_column_and_a_deleted_folder_are_back_after_the_rewind(tmp_path: Path) -> None:
    home = tmp_path / "home"
    environment = {
        **{name: os.environ[name] for name in ("PATH",)},
        "HOME": str(tmp_path),
        "AGENTREWIND_HOME": str(home),
    }
    command = [sys.executable, "-m", "agentrewind.cli", "demo", "--story", "external", "--json"]
    command += ["--workspace", str(tmp_path / "workspace")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=280)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout.splitlines()[-1])
    assert (told["state"], told["rewinds"], told["submissions"]) == ("accepted", 1, 2)
    timeline = Run(home / "runs" / told["run_id"]).timeline()
    (rewound,) = [event for event in timeline.events(1) if isinstance(event, RewindDone)]
    external = rewound.report["external"]
    assert isinstance(external, list)
    states = {str(each["what"]): each["state"] for each in external if isinstance(each, dict)}
    assert set(states.values()) == {"restored"}
    assert any(name.startswith("database shop") for name in states)
    assert any(name.endswith("/letters") for name in states)


def test_the_story_cannot_be_told_without_rewind(tmp_path: Path) -> None:
    environment = {**os.environ, "AGENTREWIND_HOME": str(tmp_path / "home")}
    command = [
        sys.executable,
        "-m",
        "agentrewind.cli",
        "demo",
        "--story",
        "external",
        "--strategy",
        "continue",
    ]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "--story external" in done.stderr
