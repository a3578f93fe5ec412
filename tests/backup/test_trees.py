"""Law 1 for state outside the workspace: what was captured comes back exactly, whatever happened to it."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentrewind.backup.kind import CaptureError
from agentrewind.backup.kinds.files import Files
from agentrewind.backup.kinds.files_targets import file_target
from agentrewind.backup.kinds.tree import decode, encode, nothing, scan
from agentrewind.backup.store import BackupStore
from agentrewind.backup.values import Context
from tests.workspace.disk import Worker, as_ordinary_user, differences, manifest, open_base

OPERATIONS = Worker(Path("/nonexistent")).operations()
STEPS = st.lists(st.tuples(st.sampled_from(OPERATIONS), st.integers(0, 2**31)), max_size=30)


def context_of(base: Path, workspace: Path | None = None) -> Context:
    return Context(cwd=base, env={"PATH": os.environ["PATH"]}, home=base, workspace=workspace)


@settings(deadline=None, max_examples=60)
@given(before=STEPS, after=STEPS)
def test_a_tree_comes_back_exactly(before: list[tuple[str, int]], after: list[tuple[str, int]]) -> None:
    base = Path(tempfile.mkdtemp())
    try:
        check_round_trip(base, before, after)
    finally:
        shutil.rmtree(base)


def check_round_trip(base: Path, before: list[tuple[str, int]], after: list[tuple[str, int]]) -> None:
    root = base / "tree"
    root.mkdir()
    files, context, target = Files(), context_of(base), file_target([root])
    with BackupStore(base / "store") as store:
        worker = Worker(root)
        for name, seed in before:
            worker.do(name, seed)
        wanted, mark = manifest(root), files.fingerprint(target, context)
        captured = files.capture(target, store, context)
        assert manifest(root) == wanted
        for name, seed in after:
            worker.do(name, seed)
        outcome = files.restore(target, captured, store, context)
        assert outcome.missing == ()
        assert differences(wanted, manifest(root)) == []
        assert files.fingerprint(target, context) == mark


@settings(deadline=None, max_examples=20)
@given(before=STEPS, after=STEPS)
def test_a_tree_comes_back_exactly_for_an_ordinary_user(
    before: list[tuple[str, int]], after: list[tuple[str, int]]
) -> None:
    # what its owner may not read cannot be preserved, which the capture says
    before = [(name, seed) for name, seed in before if not name.startswith("chmod")]

    def check() -> None:
        with contextlib.suppress(CaptureError):
            check_round_trip(base, before, after)

    with open_base() as base:
        as_ordinary_user(check)


@settings(deadline=None)
@given(steps=STEPS)
def test_a_list_of_paths_is_inverted(steps: list[tuple[str, int]]) -> None:
    root = Path(tempfile.mkdtemp())
    try:
        worker = Worker(root)
        for name, seed in steps:
            worker.do(name, seed)
        items = scan(root, nothing)
        assert decode(encode(items)) == items
    finally:
        shutil.rmtree(root)


def test_absence_is_state_too(tmp_path: Path) -> None:
    files, context, target = Files(), context_of(tmp_path), file_target([tmp_path / "new"])
    with BackupStore(tmp_path / "store") as store:
        captured = files.capture(target, store, context)
        assert files.fingerprint(target, context) == ""
        (tmp_path / "new" / "deep").mkdir(parents=True)
        (tmp_path / "new" / "deep" / "file").write_text("x")
        outcome = files.restore(target, captured, store, context)
    assert outcome.missing == ()
    assert not (tmp_path / "new").exists()


def test_a_file_written_in_place_comes_back_for_all_its_names(tmp_path: Path) -> None:
    files, context, target = Files(), context_of(tmp_path), file_target([tmp_path / "one"])
    (tmp_path / "one").write_text("as it was\n")
    (tmp_path / "other").hardlink_to(tmp_path / "one")
    with BackupStore(tmp_path / "store") as store:
        captured = files.capture(target, store, context)
        (tmp_path / "one").write_text("written in place\n")
        assert files.restore(target, captured, store, context).missing == ()
    assert (tmp_path / "other").read_text() == "as it was\n"
    assert (tmp_path / "one").samefile(tmp_path / "other")
    assert captured.notes != ()


def test_the_workspace_in_a_tree_is_left_to_its_snapshots(tmp_path: Path) -> None:
    workspace = tmp_path / "all" / "ws"
    workspace.mkdir(parents=True)
    (workspace / "inside").write_text("inside")
    (tmp_path / "all" / "beside").write_text("beside")
    files, target = Files(), file_target([tmp_path / "all"], skip=workspace)
    context = context_of(tmp_path)  # whoever restores may know of no workspace
    with BackupStore(tmp_path / "store") as store:
        captured = files.capture(target, store, context)
        (workspace / "inside").write_text("changed")
        shutil.rmtree(tmp_path / "all" / "ws")
        workspace.mkdir()
        (workspace / "newer").write_text("newer")
        (tmp_path / "all" / "beside").unlink()
        assert files.restore(target, captured, store, context).missing == ()
    assert (tmp_path / "all" / "beside").read_text() == "beside"
    assert (workspace / "newer").read_text() == "newer"
    assert any("workspace" in note for note in captured.notes)


def test_no_backup_holds_the_store_itself(tmp_path: Path) -> None:
    with BackupStore(tmp_path / "all" / "store") as store:
        for path in (tmp_path / "all", tmp_path / "all" / "store" / "blobs"):
            with pytest.raises(CaptureError, match="own store"):
                Files().capture(file_target([path]), store, context_of(tmp_path))


def test_a_link_that_came_on_the_way_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "file").write_text("as it was")
    (tmp_path / "elsewhere").mkdir()
    files, context, target = Files(), context_of(tmp_path), file_target([tmp_path / "d" / "file"])
    with BackupStore(tmp_path / "store") as store:
        captured = files.capture(target, store, context)
        shutil.rmtree(tmp_path / "d")
        (tmp_path / "d").symlink_to("elsewhere")
        outcome = files.restore(target, captured, store, context)
    assert outcome.restored == ()
    assert "leads elsewhere" in outcome.missing[0]
    assert list((tmp_path / "elsewhere").iterdir()) == []
