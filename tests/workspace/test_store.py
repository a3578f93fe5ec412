"""The store: what it refuses, what it notices, and that a full disk half-records nothing."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
from pathlib import Path

import pytest

from agentrewind.errors import MissingSnapshotError, StorageError, UnsupportedFormatError, UsageError
from agentrewind.records import Change, CommitId
from agentrewind.workspace.maintenance import collect
from agentrewind.workspace.objects import TreeItem, decode_index, decode_tree, encode_tree
from agentrewind.workspace.restore import restore_into
from agentrewind.workspace.snapshots import SnapshotStore
from agentrewind.workspace.soundness import verify
from tests.workspace.disk import as_ordinary_user, differences, git, manifest, open_base
from tests.workspace.stage import staged


def test_a_full_disk_is_an_error_and_the_next_snapshot_is_whole() -> None:
    def scenario() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        with staged(base) as stage:
            (stage.root / "small").write_text("small")
            before = stage.take()
            (stage.root / "noise").write_bytes(os.urandom(300_000))
            resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, resource.RLIM_INFINITY))
            for _ in range(2):
                with pytest.raises(StorageError, match="cannot be written"):
                    stage.workspace.snapshot(label="too much")
            assert stage.store.ref("refs/runs/test") == before
            resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
            after = CommitId(stage.take())
            assert verify(stage.store) == []
            restore_into(stage.store, after, base / "copy")
            assert differences(manifest(base / "copy"), manifest(stage.root)) == []

    with open_base() as base:
        as_ordinary_user(scenario)


def test_damage_is_found_and_named_and_gc_drops_nothing_over_it(tmp_path: Path) -> None:
    with staged(tmp_path) as stage:
        (stage.root / "precious").write_bytes(os.urandom(5000))
        commit = CommitId(stage.take())
        assert verify(stage.store) == []
    (pack,) = (tmp_path / "store.git" / "objects" / "pack").glob("*.pack")
    data = bytearray(pack.read_bytes())
    data[3000] ^= 0xFF
    pack.chmod(0o600)
    pack.write_bytes(data)
    store = SnapshotStore.open(tmp_path / "store.git")
    (damage,) = verify(store)
    assert commit in damage
    assert "files/precious" in damage
    with pytest.raises(MissingSnapshotError, match="damaged"):
        restore_into(store, commit, tmp_path / "copy")
    assert not list((tmp_path / "copy").iterdir())
    store.close()
    (pack.with_suffix(".idx")).unlink()
    store = SnapshotStore.open(tmp_path / "store.git")
    with pytest.raises(MissingSnapshotError):
        collect(store)
    assert pack.exists()
    store.close()


def test_a_store_of_a_newer_version_is_refused_by_number(tmp_path: Path) -> None:
    SnapshotStore.open(tmp_path / "s.git").close()
    (tmp_path / "s.git" / "agentrewind-store").write_text("3\n")
    with pytest.raises(UnsupportedFormatError, match="2"):
        SnapshotStore.open(tmp_path / "s.git")


def test_refs(tmp_path: Path) -> None:
    with staged(tmp_path) as stage:
        commit = CommitId(stage.take())
        store = stage.store
        stage.workspace.pin(commit, "refs/agentrewind/run-1/safety-0001")
        stage.workspace.set_ref("refs/agentrewind/run-1/segment-0001")
        assert store.refs() == {
            "refs/runs/test": commit,
            "refs/agentrewind/run-1/safety-0001": commit,
            "refs/agentrewind/run-1/segment-0001": commit,
        }
        git(store.git_dir, "pack-refs", "--all")
        assert store.ref("refs/runs/test") == commit
        store.delete_ref("refs/runs/test")
        assert store.ref("refs/runs/test") is None
        assert len(store.refs()) == 2
        for bad in ("HEAD", "refs/../x", "refs/a/.b", "refs/a b", "refs/x.lock"):
            with pytest.raises(UsageError, match="ref name"):
                store.set_ref(bad, commit)


def test_packs_that_git_made_are_read_and_survive_gc(tmp_path: Path) -> None:
    with staged(tmp_path) as stage:
        text = b"".join(b"line %d\n" % number for number in range(2000))
        commits = []
        for number in range(5):
            (stage.root / "f").write_bytes(text + b"%d" % number)
            commits.append(CommitId(stage.take()))
        subprocess.run(["git", "-C", str(stage.store.git_dir), "repack", "-adfq"], check=True)
        stage.store.reload()
        collect(stage.store)
        assert [stage.store.read_file(commit, b"f")[-1:] for commit in commits] == [
            b"%d" % n for n in range(5)
        ]
        assert verify(stage.store) == []


def test_changes_name_modes_types_and_empty_directories(tmp_path: Path) -> None:
    with staged(tmp_path) as stage:
        root = stage.root
        (root / "mode").write_text("m")
        (root / "type").write_text("t")
        (root / "gone").mkdir()
        (root / "full").mkdir()
        (root / "full" / "x").write_text("x")
        (root / "time").write_text("time")
        before = CommitId(stage.take())
        (root / "mode").chmod(0o600)
        (root / "type").unlink()
        (root / "type").symlink_to("mode")
        (root / "gone").rmdir()
        (root / "full" / "x").unlink()
        (root / "full").rmdir()
        (root / "new").mkdir()
        (root / "time").touch()
        (root / b"\xff".decode("utf-8", "surrogateescape")).write_text("bytes")
        after = CommitId(stage.take())
        assert stage.workspace.changes(before, after) == (
            Change(status="D", path=b"full/x"),
            Change(status="D", path=b"gone"),
            Change(status="M", path=b"mode"),
            Change(status="A", path=b"new"),
            Change(status="T", path=b"type"),
            Change(status="A", path=b"\xff"),
        )


def test_reading_what_is_not_there(tmp_path: Path) -> None:
    with staged(tmp_path) as stage:
        (stage.root / "d").mkdir()
        (stage.root / "link").symlink_to("target")
        commit = CommitId(stage.take())
        assert stage.store.read_file(commit, b"link") == b"target"
        for path in (b"absent", b"d", b"d/absent", b"link/x"):
            with pytest.raises(UsageError, match="holds no file"):
                stage.store.read_file(commit, path)


def test_broken_trees_and_indexes_are_refused() -> None:
    tree = encode_tree([TreeItem(0o100644, b"a", bytes(20))])
    assert decode_tree(tree) == [TreeItem(0o100644, b"a", bytes(20))]
    for bad in (tree[:-1], b"x", b"100644 a"):
        with pytest.raises(ValueError, match=r".*"):
            decode_tree(bad)
    with pytest.raises(ValueError, match="index"):
        decode_index(b"nonsense")
