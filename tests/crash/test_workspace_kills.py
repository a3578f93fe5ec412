"""Kills a process at each of its changes to the disk and looks at what the next one finds."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from agentrewind.records import CommitId
from agentrewind.workspace import maintenance
from agentrewind.workspace.contents import LARGE
from agentrewind.workspace.maintenance import collect, consolidate
from agentrewind.workspace.policy import TEMPORARY_PREFIX
from agentrewind.workspace.restore import restore_into
from agentrewind.workspace.snapshots import SnapshotStore
from agentrewind.workspace.soundness import verify
from tests.crash.changes import killed_at, numbers
from tests.workspace.disk import Fact, differences, git, manifest
from tests.workspace.stage import Stage, staged

SOAK = bool(os.environ.get("AGENTREWIND_SOAK"))


@pytest.fixture
def base(tmp_path: Path) -> Iterator[Path]:
    """A place in memory where there is one: hundreds of rounds need not wait for a disk to sync."""
    memory = Path("/dev/shm")
    try:
        place = Path(tempfile.mkdtemp(prefix="agentrewind-kills-", dir=memory))
    except OSError:
        yield tmp_path
        return
    try:
        os.setxattr(place, "user.probe", b"")
    except OSError:  # an older kernel's
        yield tmp_path
    else:
        yield place
    finally:
        clear(place)
        place.rmdir()


def furnish(root: Path, version: int) -> None:
    """A small workspace of every kind of thing, in two versions."""
    text = str(version)
    (root / f"only-{text}").write_text(text)
    (root / "both").write_text(f"both {text}" * 20)
    (root / "swap").mkdir()
    if version == 1:
        (root / "swap" / "inner").write_text("inner")
        (root / "empty").mkdir()
    else:
        (root / "swap").rmdir()
        (root / "swap").write_text("now a file")
    os.link(root / "both", root / f"twin-{text}")
    (root / "link").symlink_to(f"target-{text}")
    (root / "ro").mkdir()
    (root / "ro" / "f").write_text(text)
    for path in (root / "both", root / "ro", root / "ro" / "f"):
        os.setxattr(path, "user.version", text.encode())
    (root / "ro").chmod(0o555)
    with (root / "large").open("wb") as file:
        file.write(os.urandom(10))
        file.truncate(LARGE + 1)
    # without the sample hooks, so that there are few changes to be killed at, of every kind
    git(root, "init", "-q", "--template=")
    git(root, "commit", "-q", "--allow-empty", "-m", text)
    os.utime(root, ns=(0, version * 10**9))


def clear(root: Path) -> None:
    for path in sorted(root.rglob("*"), reverse=True):
        if path.is_dir() and not path.is_symlink():
            path.chmod(0o700)
            path.rmdir()
        else:
            path.unlink()


def two_versions(stage: Stage) -> list[tuple[CommitId, dict[bytes, Fact]]]:
    found: list[tuple[CommitId, dict[bytes, Fact]]] = []
    for version in (1, 2):
        clear(stage.root)
        furnish(stage.root, version)
        time.sleep(0.03)
        found.append((CommitId(stage.take()), manifest(stage.root)))
    return found


def no_temporaries(root: Path) -> bool:
    return not [path for path in root.rglob("*") if path.name.startswith(TEMPORARY_PREFIX)]


@pytest.mark.slow
@pytest.mark.timeout(900)  # two hundred rounds; some twenty seconds where nothing else runs
def test_a_restore_that_was_killed_anywhere_is_completed_by_the_next(base: Path) -> None:
    with staged(base) as stage:
        versions = two_versions(stage)

    def restore(commit: CommitId) -> None:
        with staged(base) as stage:
            stage.workspace.restore(commit)

    rounds = [0, 0]
    quiet = 0
    for number in numbers():
        killed = [False, False]
        # to one and fro to the other, each of the two killed at each of its changes; without a soak in turns
        turns = range(2) if SOAK else (number % 2,)
        for turn in turns:
            commit, expected = versions[turn]
            killed[turn] = killed_at(number, partial(restore, commit))
            for path in (base / "ws").rglob("both"):
                assert path.read_text() in ("both 1" * 20, "both 2" * 20)
            if killed[turn] and number % 5 == 0:
                killed_at(number // 5, partial(restore, commit))
            with staged(base) as stage:
                assert stage.workspace.restore(commit).verified
                assert differences(manifest(stage.root), expected) == []
                assert no_temporaries(stage.root)
            rounds[turn] += killed[turn]
        quiet = 0 if any(killed) else quiet + 1
        if quiet == 2:
            break
    assert min(rounds) > (60 if SOAK else 30)


def test_a_snapshot_that_was_killed_anywhere_names_nothing_incomplete(base: Path) -> None:
    with staged(base) as stage:
        ((one, _), _) = two_versions(stage)
    rounds = 0

    def snapshot() -> None:
        with staged(base) as stage:
            stage.take()

    for number in numbers():
        (base / "ws" / f"more-{number}").write_text(str(number) * 100)
        (base / "ws" / "both").write_text(str(number))
        killed = killed_at(number, snapshot)
        rounds += killed
        store = SnapshotStore.open(base / "store.git")
        tip = store.ref("refs/runs/test")
        assert tip is not None
        assert store.is_ancestor(one, tip)
        assert list(store.entries(tip))
        store.close()
        with staged(base) as stage:
            commit = CommitId(stage.take())
            expected = manifest(stage.root)
            copy = base / f"copy-{number}"
            restore_into(stage.store, commit, copy)
            assert differences(manifest(copy), expected) == []
        if not killed:
            break
    store = SnapshotStore.open(base / "store.git")
    assert verify(store) == []
    collect(store)
    assert [path.name for path in store.packs.iterdir() if path.name.startswith("tmp")] == []
    store.close()
    assert rounds > 5


@pytest.mark.parametrize("job", ["collect", "consolidate"])
def test_a_gc_that_was_killed_anywhere_loses_nothing(
    base: Path, job: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(maintenance, "MANY", 5)
    rounds = 0

    def work() -> None:
        store = SnapshotStore.open(base / "store.git")
        collect(store) if job == "collect" else consolidate(store)

    with staged(base) as stage:
        ((one, expected), _) = two_versions(stage)
    for number in numbers():
        with staged(base, ref="refs/runs/gone") as stage:
            for turn in range(4):
                (stage.root / "both").write_text(f"{number} {turn}")
                stage.take()
            stage.store.delete_ref("refs/runs/gone")
        killed = killed_at(number, work)
        rounds += killed
        store = SnapshotStore.open(base / "store.git")
        assert verify(store) == []
        copy = base / f"copy-{number}"
        restore_into(store, one, copy)
        assert manifest(copy) == expected
        store.close()
        if number > 30 or (not killed and number > 3):
            break
    store = SnapshotStore.open(base / "store.git")
    report = collect(store)
    assert report.size_after <= report.size_before
    assert len(store.pack_names()) == 1
    assert verify(store) == []
    assert {path.suffix for path in store.packs.iterdir()} == {".idx", ".pack"}
    store.close()
    assert rounds > 2
