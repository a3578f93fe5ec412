"""Stores that older versions wrote are read forever, and marked before they are written to."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from agentrewind.records import Change, CommitId
from agentrewind.workspace.restore import restore_into
from agentrewind.workspace.snapshots import STORE_FORMAT, SnapshotStore
from agentrewind.workspace.soundness import verify
from tests.workspace.disk import manifest
from tests.workspace.stage import staged

GOLDEN = Path(__file__).parents[1] / "golden" / "store-format-1"
ONE = CommitId("da1eaaff0d346cd00d954394789bd925f0e8d2af")
TWO = CommitId("f9d2068e360f4d76938c3bf0075a3d1766dfc1cd")
TIME_NS = 10**18 + 7
LARGE = b"x" + bytes((8 << 20) + 4)


@pytest.fixture
def base(tmp_path: Path) -> Path:
    shutil.copytree(GOLDEN, tmp_path / "store.git")
    return tmp_path


def test_all_of_it_comes_back(base: Path) -> None:
    store = SnapshotStore.open(base / "store.git")
    assert verify(store) == []
    restore_into(store, ONE, base / "copy")
    facts = manifest(base / "copy")
    assert {path: (fact.kind, fact.mode) for path, fact in facts.items() if fact.kind != "link"} == {
        b"": ("dir", 0o755),
        b"deep": ("dir", 0o750),
        b"deep/er": ("dir", 0o755),
        b"deep/er/f": ("file", 0o640),
        b"deep/g": ("file", 0o644),
        b"empty": ("dir", 0o755),
        b"large": ("file", 0o644),
        b"twin": ("file", 0o644),
    }
    assert {fact.mtime_ns for fact in facts.values()} == {TIME_NS}
    assert facts[b"twin"].twins == (b"deep/g", b"twin")
    assert os.readlink(base / "copy" / "link") == "deep/g"
    assert (base / "copy" / "large").read_bytes() == LARGE
    assert (base / "copy" / "deep" / "er" / "f").read_text() == "f\n" * 300
    assert [text.split(" ")[0] for text in store.left_out(ONE)] == [".env", "fifo"]
    changes = (Change(status="M", path=b"deep/g"), Change(status="M", path=b"twin"))
    assert store.diff(ONE, TWO) == changes
    store.close()
    assert (base / "store.git" / "agentrewind-store").read_text() == "1\n"


def test_work_goes_on_in_it(base: Path) -> None:
    store = SnapshotStore.open(base / "store.git")
    restore_into(store, TWO, base / "ws")
    store.close()
    with staged(base) as stage:
        (stage.root / "new").write_text("new")
        commit = CommitId(stage.take())
        assert (base / "store.git" / "agentrewind-store").read_text() == f"{STORE_FORMAT}\n"
        assert stage.store.commit(commit).parents == (TWO,)
        assert stage.workspace.changes(TWO, commit) == (Change(status="A", path=b"new"),)
        stage.workspace.restore(ONE)
        assert (stage.root / "twin").read_text() == "g"
        stage.workspace.restore(commit)
        assert (stage.root / "twin").read_text() == "changed"
        assert verify(stage.store) == []
