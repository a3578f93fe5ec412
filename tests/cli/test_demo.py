"""`demo`: the story on a terminal and for programs; with and without rewind."""

from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path

import pytest

from tests.cli.desk import PROGRAM, Desk

pytest.importorskip("minisweagent")

pytestmark = pytest.mark.slow


def test_the_demo_succeeds_by_going_back(desk: Desk) -> None:
    command = f"{' '.join(PROGRAM)} demo --workspace {desk.workspace}"
    done = subprocess.run(
        ["script", "-qec", f"stty cols 120 rows 40; {command}", "/dev/null"],
        env=desk.environment(TERM="xterm-256color"),
        cwd=desk.base,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, done.stdout
    end = done.stdout[done.stdout.rindex("\x1b[?25h") :]  # after the live part, whose cursor is shown again
    for part in ("abandoned", "rejected at archive", "rewind to rec_", "submission 2 accepted", "put back"):
        assert part in end
    assert "scripted" in end
    assert str(desk.workspace) in end
    run_id = desk.only_run().run_id
    assert f"agentrewind log {run_id}" in end
    replayed = desk.json("replay", "last")
    assert (replayed["live"], replayed["divergence"]) == (0, None)
    assert desk.json("verify")["sound"] is True


def test_a_demo_that_was_killed_is_resumed_with_its_scripted_model(desk: Desk) -> None:
    child = subprocess.Popen(
        [*PROGRAM, "demo", "--workspace", str(desk.workspace), "--json"],
        env=desk.environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and not (desk.workspace / "docs/migrations/002.md").exists():
        time.sleep(0.02)
    child.kill()
    child.wait()
    document = desk.json("run", "--resume", "last")
    assert (document["state"], document["rewinds"]) == ("accepted", 1)
    assert "a fresh process goes on (resume)" in desk.call("log", "last").stdout


def test_the_demo_takes_no_folder_that_is_in_use(desk: Desk) -> None:
    desk.workspace.mkdir()
    (desk.workspace / "mine").write_text("mine")
    done = desk.call("demo", "--workspace", str(desk.workspace))
    assert done.returncode == 2
    assert "empty or absent" in done.stderr
    assert desk.files() == {"mine": b"mine"}


def test_an_unknown_harness_leaves_nothing_behind(desk: Desk, tmp_path: Path) -> None:
    done = desk.call("demo", "--harness", "no-such", "--workspace", str(desk.workspace), "--json")
    assert done.returncode == 2
    assert json.loads(done.stdout)["error"]["type"] == "UnknownHarnessError"
    assert not desk.workspace.exists()
