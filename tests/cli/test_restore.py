"""`restore` and `undo`: what comes back, what is never lost, and what is refused."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from agentrewind.records import MAIN_WORKSPACE, Json, Metadata, RewindAsked, SafetySnapshot, WorkspaceSpan
from agentrewind.workspace.lock import WorkspaceLock
from tests import records
from tests.cli.desk import Desk, tree

BOTH = {"a.txt": b"one\n", "b.txt": b"two\n"}
FIRST = {"a.txt": b"one\n"}


def test_the_files_of_a_node_in_a_folder_of_their_own(told: Desk, tmp_path: Path) -> None:
    before = told.files()
    done = told.json("restore", "last", "rec_000003", "--into", str(tmp_path / "there"))
    assert tree(tmp_path / "there") == FIRST
    assert (done["created"], done["verified"]) == (["a.txt"], True)
    assert {"created", "modified", "deleted", "kept", "outside", "verified"} <= done.keys()
    told.json("restore", "last", "rec_000004", "--after", "--into", str(tmp_path / "after"))
    assert tree(tmp_path / "after") == {"b.txt": b"two\n"}
    assert told.files() == before


def test_a_dry_run_makes_nothing(told: Desk, tmp_path: Path) -> None:
    done = told.json("restore", "last", "rec_000003", "--into", str(tmp_path / "there"), "--dry-run")
    assert (done["created"], done["verified"]) == (["a.txt"], None)
    assert not (tmp_path / "there").exists()


@pytest.mark.parametrize("where", ["full", "file", "inside", "store"])
def test_folders_that_are_refused(told: Desk, tmp_path: Path, where: str) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine").write_text("mine")
    (tmp_path / "file").write_text("mine")
    target = {
        "full": tmp_path / "full",
        "file": tmp_path / "file",
        "inside": told.workspace / "new",
        "store": told.home / "new",
    }[where]
    done = told.call("restore", "last", "rec_000003", "--into", str(target))
    assert done.returncode == (2 if where == "file" else 5), done.stderr
    assert tree(tmp_path) == {"full/mine": b"mine", "file": b"mine"}
    assert not (told.workspace / "new").exists()


def test_somebody_has_to_say_where(told: Desk) -> None:
    assert told.call("restore", "last", "rec_000003").returncode == 2
    assert told.call("restore", "last", "rec_000003", "--in-place", "--into", "x").returncode == 2
    assert told.call("restore", "last", "rec_000003", "--into", "x", "--outside", "keep").returncode == 2


def test_in_place_and_back_and_forth(rewound: Desk) -> None:
    done = rewound.json("restore", "last", "rec_000003", "--in-place")
    assert rewound.files() == FIRST
    assert (done["deleted"], done["outside"], done["verified"]) == (["b.txt"], [], True)
    assert rewound.json("undo", "last")["created"] == ["b.txt"]
    assert rewound.files() == BOTH
    rewound.json("undo", "last")
    assert rewound.files() == FIRST
    log = rewound.call("log", "last").stdout
    assert "restore by a person to rec_000003: 1 deleted" in log
    assert rewound.json("list")[0]["state"] == "accepted"
    assert rewound.json("verify")["sound"] is True


def test_a_dry_run_in_place_shows_what_stands_in_the_way(rewound: Desk) -> None:
    (rewound.workspace / "b.txt").write_text("mine")
    done = rewound.json("restore", "last", "rec_000003", "--in-place", "--dry-run")
    assert (done["deleted"], done["outside"]) == (["b.txt"], ["b.txt"])
    assert rewound.files() == {**BOTH, "b.txt": b"mine"}
    command = ("restore", "last", "rec_000003", "--in-place", "--dry-run")
    told = rewound.call(*command)
    assert told.returncode == 0
    assert "would stop, with exit code 5" in told.stdout
    for choice in ("keep", "revert"):
        assert "would stop" not in rewound.call(*command, "--outside", choice).stdout
    assert rewound.files() == {**BOTH, "b.txt": b"mine"}
    rewound.json("restore", "last", "rec_000003", "--in-place", code=5)
    rewound.json("restore", "last", "rec_000003", "--in-place", "--outside", "revert")
    assert "would stop" not in rewound.call(*command).stdout


def test_changes_from_outside_stop_a_restore_unless_somebody_says(rewound: Desk) -> None:
    (rewound.workspace / "mine.txt").write_text("mine")
    stopped = rewound.json("restore", "last", "rec_000003", "--in-place", code=5)["error"]
    assert stopped["type"] == "OutsideChangesError"
    assert "mine.txt" in stopped["message"]
    assert rewound.files() == {**BOTH, "mine.txt": b"mine"}
    kept = rewound.json("restore", "last", "rec_000003", "--in-place", "--outside", "keep")
    assert kept["outside"] == ["mine.txt"]
    assert any("mine.txt" in each for each in kept["kept"])
    assert rewound.files() == {**FIRST, "mine.txt": b"mine"}
    reverted = rewound.json("restore", "last", "rec_000003", "--in-place", "--outside", "revert")
    assert "mine.txt" in reverted["deleted"]
    assert rewound.files() == FIRST
    rewound.json("undo", "last")
    assert rewound.files() == {**FIRST, "mine.txt": b"mine"}


def test_a_change_from_outside_during_the_run_counts_too(desk: Desk) -> None:
    """The provider writes into the workspace while it answers, which no tool call did."""
    mine = desk.workspace / "mine.txt"
    touch = f"touch {mine} {desk.home / 'runs'}"
    desk.json(*desk.run_arguments(["sh true", touch, "sh echo two > b.txt", "say done"]), code=1)
    error = desk.json("restore", "last", "rec_000001", "--in-place", code=5)["error"]
    assert "mine.txt" in error["message"]
    desk.json("restore", "last", "rec_000001", "--in-place", "--outside", "keep")
    assert mine.exists()
    assert not (desk.workspace / "b.txt").exists()


def test_a_change_that_the_restore_would_not_touch_stops_nothing(rewound: Desk) -> None:
    (rewound.workspace / "a.txt").write_text("mine")
    (rewound.workspace / "a.txt").write_text("one\n")
    rewound.json("restore", "last", "rec_000003", "--in-place")
    assert rewound.files() == FIRST


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_looking_at_a_repository_is_no_change(desk: Desk) -> None:
    git = "git -c user.name=x -c user.email=x@x -c commit.gpgsign=false"
    plan = [
        "sh git init -q && echo one > a.txt && git add . && " + git + " commit -qm one",
        "sh echo two > b.txt && git add . && " + git + " commit -qm two",
        "say done",
    ]
    desk.json(*desk.run_arguments(plan), code=1)
    os.utime(desk.workspace / "a.txt")
    subprocess.run(["git", "status"], cwd=desk.workspace, check=True, capture_output=True)
    done = desk.json("restore", "last", "rec_000003", "--in-place")
    assert done["outside"] == []
    assert not (desk.workspace / "b.txt").exists()
    (desk.workspace / "staged").write_text("staged")
    subprocess.run(["git", "add", "staged"], cwd=desk.workspace, check=True)
    (desk.workspace / "staged").unlink()
    assert ".git/index" in desk.json("undo", "last", code=5)["error"]["message"]


# --- undo of a rewind ---


def test_undo_of_a_rewind_brings_files_and_branch_back(rewound: Desk) -> None:
    done = rewound.json("undo", "last")
    assert done["undone"] == "the rewind to rec_000003"
    assert rewound.files() == {"b.txt": b"two\n"}
    timeline = rewound.only_run().timeline()
    path = [node.record_uid for node in timeline.path()]
    assert path == [records.uid(number) for number in range(1, 11)]
    assert rewound.json("list")[0]["state"] == "interrupted"
    rewound.json("undo", "last")
    assert rewound.files() == BOTH
    timeline = rewound.only_run().timeline()
    assert [node.record_uid for node in timeline.path()][-1] == "rec_000014"
    rewound.json("undo", "last")
    assert rewound.files() == {"b.txt": b"two\n"}
    assert rewound.json("verify")["sound"] is True


def test_the_run_goes_on_where_an_undo_brought_it(rewound: Desk) -> None:
    rewound.json("undo", "last")
    asked = rewound.live_calls()
    report = rewound.json("run", "--resume", "last", code=1)
    assert report["state"] == "stopped"
    assert rewound.live_calls() == asked + 1
    assert rewound.files() == {"b.txt": b"two\n"}
    log = rewound.call("log", "last").stdout
    assert "I am done." in log
    assert log.index("rec_000010") < log.index("I am done.")


def test_nothing_to_undo(desk: Desk) -> None:
    desk.json(*desk.run_arguments(["submit"]))
    error = desk.json("undo", "last", code=2)["error"]
    assert "no restore and no rewind" in error["message"]


def test_an_interrupted_restore_is_undone_to_what_stood_before_it(rewound: Desk) -> None:
    """As a kill leaves it: the safety snapshot is written down, the files are half moved."""
    run = rewound.only_run()
    rewound.json("restore", "last", "rec_000003", "--in-place")
    rewound.json("undo", "last")
    last = run.timeline().events()[-2]
    assert isinstance(last, SafetySnapshot)
    present = rewound.json("show", "last", "rec_000014", "--after")["commit"]
    span = WorkspaceSpan(before_commit=present)
    with run.writer(run.timeline().head) as writer:
        writer.append(
            SafetySnapshot(segment=None, workspaces={MAIN_WORKSPACE: span}, at=records.AT), durable=True
        )
    (rewound.workspace / "b.txt").unlink()
    done = rewound.json("undo", "last")
    assert done["undone"] == "the interrupted restore"
    assert rewound.files() == BOTH


# --- refusals ---


def test_a_live_owner_is_named(rewound: Desk) -> None:
    root = rewound.workspace.resolve()
    before = rewound.files()
    owner: dict[str, Json] = {"run": "another-run", "pid": os.getpid()}
    with WorkspaceLock.acquire(rewound.home, root, owner=owner):
        for command in (("restore", "last", "rec_000003", "--in-place"), ("undo", "last")):
            done = rewound.call(*command)
            assert done.returncode == 5
            assert "another-run" in done.stderr
    assert rewound.files() == before


def test_a_rewind_that_waits_is_finished_first(rewound: Desk) -> None:
    run = rewound.only_run()
    asked = RewindAsked(
        segment=2,
        target=records.uid(11),
        memory="m",
        reason="",
        asked_by=None,
        by="agent",
        at=records.AT,
    )
    with run.writer(1) as writer:
        writer.append(asked, durable=True)
    for command in (("restore", "last", "rec_000003", "--in-place"), ("undo", "last")):
        done = rewound.call(*command)
        assert done.returncode == 5
        assert f"agentrewind run --resume {run.run_id}" in done.stderr


def test_snapshots_that_are_gone_are_missing_data(rewound: Desk, tmp_path: Path) -> None:
    before = rewound.files()
    (store,) = rewound.home.glob("workspaces/*/snapshots.git")
    pack = max(store.glob("objects/pack/*.pack"), key=lambda path: path.stat().st_size)
    for path in store.glob("objects/pack/pack-*"):
        path.unlink()
    assert not pack.exists()
    for where in (["--in-place"], ["--into", str(tmp_path / "there")]):
        error = rewound.json("restore", "last", "rec_000003", *where, code=4)["error"]
        assert error["type"] == "MissingSnapshotError"
    shutil.rmtree(store)
    error = rewound.json("restore", "last", "rec_000003", "--in-place", code=4)["error"]
    assert "are gone" in error["message"]
    assert rewound.files() == before


def test_a_partial_snapshot_is_refused_with_its_reason(desk: Desk, tmp_path: Path) -> None:
    desk.json(*desk.run_arguments(["sh echo one > a.txt", "submit"]))
    run = desk.only_run()
    timeline = run.timeline()
    node = timeline.path()[0]
    span = WorkspaceSpan(
        before_commit=node.metadata.workspaces["ws0"].before_commit, partial=("locked (cannot be read)",)
    )
    partial = records.llm(9, meta=Metadata(created_at=records.AT, latency_ms=1, workspaces={"ws0": span}))
    with run.writer(0) as writer:
        writer.append(partial, durable=True)
    done = desk.call("restore", "last", "rec_000009", "--into", str(tmp_path / "there"))
    assert done.returncode == 4
    assert "locked (cannot be read)" in done.stderr
    missing = desk.call("restore", "last", "rec_000009", "--after", "--into", str(tmp_path / "there"))
    assert missing.returncode == 4
    assert "no snapshot after rec_000009" in missing.stderr


def test_an_unknown_node(told: Desk) -> None:
    assert told.call("restore", "last", "rec_9", "--in-place").returncode == 2
