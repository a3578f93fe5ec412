"""Extended attributes and access control lists: captured, restored exactly, named where that is refused."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from agentrewind.records import Change, CommitId
from agentrewind.workspace.restore import restore_into
from tests.workspace.disk import (
    ORDINARY,
    access_list,
    as_ordinary_user,
    attributes,
    differences,
    manifest,
    open_base,
)
from tests.workspace.stage import staged

LIST = access_list(7, 5, {ORDINARY: 6})
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root may")


@pytest.mark.parametrize("name", ["file", "directory", ""])
@pytest.mark.parametrize(
    ("attribute", "value"),
    [("user.a", b"1"), ("user.b", b""), ("user.c", b"\0\n"), ("system.posix_acl_access", LIST)],
)
def test_attributes_alone_are_a_change_and_are_set_without_rewriting(
    tmp_path: Path, name: str, attribute: str, value: bytes
) -> None:
    with staged(tmp_path) as stage:
        (stage.root / "file").write_text("x")
        (stage.root / "directory").mkdir()
        path = stage.root / name
        bare, nothing = CommitId(stage.take()), manifest(stage.root)
        os.setxattr(path, attribute, value)
        dressed, all_of_it = CommitId(stage.take()), manifest(stage.root)
        assert bare != dressed
        assert attributes(os.fsencode(path))
        if name:
            assert stage.workspace.changes(bare, dressed) == (Change(status="M", path=name.encode()),)
        inode = path.stat().st_ino
        for commit, expected in ((bare, nothing), (dressed, all_of_it), (bare, nothing)):
            report = stage.workspace.restore(commit)
            assert (report.modified, report.kept) == ((), ())
            assert report.touched == ((name,) if name else ())
            assert differences(manifest(stage.root), expected) == []
            assert path.stat().st_ino == inode
            assert stage.take() == commit


def test_what_inherits_a_list_gets_its_own_back(tmp_path: Path) -> None:
    with staged(tmp_path) as stage:
        (stage.root / "d" / "inner").mkdir(parents=True)
        (stage.root / "d" / "f").write_text("made before the list")
        before, expected = CommitId(stage.take()), manifest(stage.root)
        os.setxattr(stage.root, "system.posix_acl_default", LIST)
        os.setxattr(stage.root / "d", "system.posix_acl_default", LIST)
        (stage.root / "d" / "f").unlink()
        (stage.root / "d" / "f").write_text("made with it")
        (stage.root / "d" / "inner").rmdir()
        (stage.root / "d" / "inner").mkdir()
        after, heirs = CommitId(stage.take()), manifest(stage.root)
        assert heirs[b"d/f"].attributes
        for commit, wanted in ((before, expected), (after, heirs)):
            stage.workspace.restore(commit)
            assert differences(manifest(stage.root), wanted) == []
            restore_into(stage.store, commit, tmp_path / f"copy-{commit}")
            assert differences(manifest(tmp_path / f"copy-{commit}"), wanted) == []


def test_attributes_of_what_may_not_be_written() -> None:
    """An ordinary owner may only set attributes where the mode lets the owner write."""

    def scenario() -> None:
        with staged(base) as stage:
            (stage.root / "d").mkdir()
            for path in (stage.root / "f", stage.root / "d" / "g"):
                path.write_text("x")
                os.setxattr(path, "user.a", b"1")
                path.chmod(0o444)
            os.setxattr(stage.root / "d", "user.a", b"1")
            (stage.root / "d").chmod(0o555)
            before, expected = CommitId(stage.take()), manifest(stage.root)
            for path in (stage.root / "d", stage.root / "f", stage.root / "d" / "g"):
                mode = path.stat().st_mode
                path.chmod(mode | 0o700)
                os.setxattr(path, "user.a", b"2")
                os.setxattr(path, "user.b", b"2")
                path.chmod(mode)
            assert stage.workspace.restore(before).kept == ()
            assert differences(manifest(stage.root), expected) == []

    with open_base() as base:
        as_ordinary_user(scenario)


@as_root
def test_what_the_system_refuses_is_named_and_holds_nothing_up() -> None:
    def scenario() -> None:
        with staged(base) as stage:
            (stage.root / "rewritten").write_text("changed")
            report = stage.workspace.restore(commit)
            assert report.verified
            assert [line for line in report.kept if "trusted.a (Operation not permitted)" in line] == list(
                report.kept
            )
            assert {line.partition(":")[0] for line in report.kept} == {"rewritten", "kept", "link", "d"}
            assert (stage.root / "rewritten").read_text() == "rewritten"
            again = stage.workspace.restore(commit)
            assert again.verified
            assert (again.modified, again.kept) == ((), report.kept)

    with open_base() as base:
        with staged(base) as stage:
            for name in ("rewritten", "kept"):
                (stage.root / name).write_text(name)
            (stage.root / "link").symlink_to("kept")
            (stage.root / "d").mkdir()
            for name in ("rewritten", "kept", "link", "d"):
                os.setxattr(stage.root / name, "trusted.a", b"1", follow_symlinks=False)
            commit = CommitId(stage.take())
            expected = manifest(stage.root)
            stage.workspace.restore(commit)
            assert differences(manifest(stage.root), expected) == []
        subprocess.run(["chown", "-hR", f"{ORDINARY}:{ORDINARY}", str(base)], check=True)
        as_ordinary_user(scenario)


@pytest.fixture
def without_attributes(tmp_path: Path) -> Iterator[Path]:
    """A file system that holds no attributes."""
    place = tmp_path / "bare"
    place.mkdir()
    if subprocess.run(["mount", "-t", "ramfs", "ramfs", str(place)], capture_output=True).returncode != 0:
        pytest.skip("this machine does not let the tests mount a file system")
    yield place
    subprocess.run(["umount", str(place)], check=True)


@as_root
def test_where_there_are_no_attributes_all_else_is_the_same(tmp_path: Path, without_attributes: Path) -> None:
    with staged(without_attributes) as bare, staged(tmp_path / "dressed") as stage:
        for root in (bare.root, stage.root):
            (root / "d").mkdir()
            (root / "d" / "f").write_text("x")
            (root / "link").symlink_to("d")
        plain, expected = CommitId(bare.take()), manifest(bare.root)
        (bare.root / "d" / "f").write_text("y")
        bare.take()
        assert bare.workspace.restore(plain).kept == ()
        assert differences(manifest(bare.root), expected) == []
        os.setxattr(stage.root / "d" / "f", "user.a", b"1")
        os.setxattr(stage.root / "d", "user.a", b"1")
        commit = CommitId(stage.take())
        report = restore_into(stage.store, commit, without_attributes / "copy")
        assert report.verified
        assert len(report.kept) == 2
        assert all("user.a (Operation not supported)" in line for line in report.kept)
        assert (without_attributes / "copy" / "d" / "f").read_text() == "x"


@pytest.mark.parametrize("name", ["file", "directory", "link", ""])
@pytest.mark.parametrize("there", [True, False])
def test_what_changed_while_nobody_looked_is_seen(tmp_path: Path, name: str, there: bool) -> None:
    """Between two processes the inventory rests in a file."""
    attribute = "trusted.a" if name == "link" else "user.a"
    if name == "link" and os.geteuid() != 0:
        pytest.skip("only root may give a link an attribute")

    def put(value: bytes) -> None:
        os.setxattr(tmp_path / "ws" / name, attribute, value, follow_symlinks=False)

    with staged(tmp_path) as stage:
        (stage.root / "file").write_text("x")
        (stage.root / "directory").mkdir()
        (stage.root / "link").symlink_to("file")
        if there:
            put(b"1")
        time.sleep(0.05)
        first, expected = CommitId(stage.take()), manifest(stage.root)
    with staged(tmp_path) as stage:
        assert stage.take() == first
    if there:
        os.removexattr(tmp_path / "ws" / name, attribute, follow_symlinks=False)
    else:
        put(b"2")
    with staged(tmp_path) as stage:
        assert stage.take() != first
        stage.workspace.restore(first)
        assert differences(manifest(stage.root), expected) == []
