"""A restore names the commits of inner repositories that nothing names any more."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from agentrewind.clock import SystemClock
from agentrewind.workspace.policy import Policy
from agentrewind.workspace.snapshots import SnapshotStore
from agentrewind.workspace.tracker import Workspace


def git(directory: Path, *words: str) -> str:
    command = ["git", "-c", "user.name=A", "-c", "user.email=a@example.org", *words]
    return subprocess.run(command, cwd=directory, check=True, capture_output=True, text=True).stdout.strip()


@pytest.mark.parametrize("inner", [".", "deep/repo"])
@pytest.mark.parametrize("act", ["commit", "amend", "branch", "stash", "tag", "none"])
def test_commits_that_a_restore_leaves_without_a_name_are_named(tmp_path: Path, inner: str, act: str) -> None:
    root = tmp_path / "ws"
    repository = root / inner
    repository.mkdir(parents=True)
    git(repository, "init", "-q", "-b", "main")
    (repository / "a").write_text("1")
    git(repository, "add", "a")
    git(repository, "commit", "-qm", "one")
    store = SnapshotStore.open(tmp_path / "store.git")
    workspace = Workspace(
        root=root, store=store, policy=Policy.default(), ref="refs/agentrewind/r/0", clock=SystemClock()
    )
    before = workspace.snapshot(label="before").commit
    (repository / "a").write_text("2")
    expected = set()
    if act in ("commit", "amend"):
        git(repository, "commit", "-qam", "two", *(["--amend"] if act == "amend" else []))
        expected = {git(repository, "rev-parse", "HEAD")}
    elif act == "branch":
        git(repository, "checkout", "-qb", "other")
        git(repository, "commit", "-qam", "two")
        expected = {git(repository, "rev-parse", "HEAD")}
        git(repository, "checkout", "-q", "main")
    elif act == "tag":
        git(repository, "tag", "-a", "v1", "-m", "annotated")
    elif act == "stash":
        git(repository, "stash", "-q")
        expected = {git(repository, "rev-parse", "refs/stash")}
    report = workspace.restore(before)
    assert {entry.split(": ")[1].split(" ")[0] for entry in report.lost_commits} == expected
    assert all(entry.split(": ")[0] == inner for entry in report.lost_commits)
    assert report.verified
    workspace.close()
