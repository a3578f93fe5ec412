"""How changes are found: none may be missed once it is quiet, with hints and without."""

from __future__ import annotations

import mmap
import multiprocessing
import os
import random
import shutil
import time
from pathlib import Path

import pytest

from agentrewind.records import CommitId
from agentrewind.workspace.policy import Policy
from agentrewind.workspace.restore import restore_into
from agentrewind.workspace.snapshots import SnapshotStore
from tests.workspace.disk import differences, manifest
from tests.workspace.stage import Stage, staged

with_and_without_hints = pytest.mark.parametrize("watch", [True, False])


def is_exact(stage: Stage, base: Path) -> None:
    """The next snapshot holds what is on the disk now."""
    commit = CommitId(stage.take())
    copy = base / "copy"
    restore_into(stage.store, commit, copy)
    assert differences(manifest(copy), manifest(stage.root)) == []
    shutil.rmtree(copy)


@with_and_without_hints
def test_an_unchanged_workspace_gives_the_same_commit_and_no_objects(tmp_path: Path, watch: bool) -> None:
    with staged(tmp_path, watch=watch) as stage:
        (stage.root / "a").write_text("a")
        first = stage.take()
        time.sleep(0.03)
        size = sum(path.stat().st_size for path in stage.store.packs.iterdir())
        assert [stage.take() for _ in range(3)] == [first] * 3
        assert sum(path.stat().st_size for path in stage.store.packs.iterdir()) == size
    with staged(tmp_path, watch=watch) as stage:
        assert stage.take() == first


@with_and_without_hints
def test_edits_of_equal_size_within_the_clock_tick(tmp_path: Path, watch: bool) -> None:
    with staged(tmp_path, watch=watch) as stage:
        file = stage.root / "f"
        file.write_bytes(b"0000")
        status = file.stat()
        for number in range(300):
            with file.open("r+b") as handle:
                handle.write(b"%04d" % number)
            os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
            commit = CommitId(stage.take())
            assert stage.store.read_file(commit, b"f") == b"%04d" % number


def _write_madly(root: str, seed: int, until: float) -> None:
    rng = random.Random(seed)
    while time.monotonic() < until:
        path = Path(root) / rng.choice("abcdefgh") / rng.choice("xyz")
        try:
            match rng.randrange(6):
                case 0:
                    path.parent.mkdir(exist_ok=True)
                case 1 | 2 | 3:
                    path.write_bytes(rng.randbytes(8))
                case 4:
                    path.unlink()
                case _:
                    shutil.rmtree(path.parent)
        except OSError:
            continue


@with_and_without_hints
def test_nothing_is_missed_once_concurrent_writers_are_quiet(tmp_path: Path, watch: bool) -> None:
    with staged(tmp_path, watch=watch) as stage:
        for turn in range(6):
            until = time.monotonic() + 0.25
            writers = [
                multiprocessing.get_context("fork").Process(
                    target=_write_madly, args=(str(stage.root), turn * 10 + number, until)
                )
                for number in range(2)
            ]
            for writer in writers:
                writer.start()
            while time.monotonic() < until:
                stage.workspace.snapshot(label="meanwhile")
            for writer in writers:
                writer.join()
            is_exact(stage, tmp_path)


def test_a_queue_that_ran_over_is_made_up_for(tmp_path: Path) -> None:
    with staged(tmp_path) as stage:
        (stage.root / "d").mkdir()
        stage.take()
        walks = stage.workspace.tally.walks
        for number in range(9000):
            path = stage.root / "d" / f"f{number % 100}"
            path.write_bytes(b"x")
            path.unlink()
        (stage.root / "d" / "last").write_bytes(b"last")
        is_exact(stage, tmp_path)
        assert stage.workspace.tally.walks == walks + 1


def test_directories_made_in_one_go_and_renamed_at_once(tmp_path: Path) -> None:
    with staged(tmp_path) as stage:
        stage.take()
        for number in range(20):
            deep = stage.root / f"a{number}" / "b" / "c"
            deep.mkdir(parents=True)
            (deep / "f").write_text(str(number))
            (stage.root / f"a{number}").rename(stage.root / f"r{number}")
            (stage.root / f"r{number}" / "b" / "g").write_text("later")
            is_exact(stage, tmp_path)
            (stage.root / f"r{number}" / "b" / "c" / "f").write_text("through the new name")
            is_exact(stage, tmp_path)


def test_a_write_through_a_name_outside_is_seen(tmp_path: Path) -> None:
    with staged(tmp_path) as stage:
        (stage.root / "f").write_text("one")
        os.link(stage.root / "f", tmp_path / "outside")
        stage.take()
        (tmp_path / "outside").write_text("two")
        assert stage.store.read_file(CommitId(stage.take()), b"f") == b"two"


def test_a_store_through_a_shared_mapping_is_seen(tmp_path: Path) -> None:
    with staged(tmp_path) as stage:
        (stage.root / "f").write_bytes(b"0" * 4096)
        stage.take()
        with (stage.root / "f").open("r+b") as file, mmap.mmap(file.fileno(), 4096) as mapped:
            for value in (b"1", b"2", b"3"):
                mapped[0:1] = value
                # mapped files are asked for at a small share of the time only
                until = time.monotonic() + 20
                while time.monotonic() < until:
                    if stage.store.read_file(CommitId(stage.take()), b"f")[:1] == value:
                        break
                    time.sleep(0.05)
                else:
                    pytest.fail("the store was not seen")


def test_a_growing_log_is_no_reason_for_a_partial_snapshot(tmp_path: Path) -> None:
    with staged(tmp_path) as stage:
        log = stage.root / "log"
        log.write_bytes(b"")
        until = time.monotonic() + 0.5
        writer = multiprocessing.get_context("fork").Process(target=_append, args=(str(log), until))
        writer.start()
        while time.monotonic() < until:
            assert stage.workspace.snapshot(label="x").partial == ()
        writer.join()
        is_exact(stage, tmp_path)


def _append(path: str, until: float) -> None:
    with Path(path).open("ab", buffering=0) as file:
        while time.monotonic() < until:
            file.write(b"a line of a log\n")


def test_a_damaged_or_foreign_cache_is_the_same_as_none(tmp_path: Path) -> None:
    with staged(tmp_path) as stage:
        (stage.root / "a").write_text("a")
        commit = stage.take()
    (cache,) = (tmp_path / "store.git").glob("stat-cache-*")
    data = cache.read_bytes()
    for damaged in (b"", data[:40], data[:-1], data[:60] + b"\0" + data[61:]):
        cache.write_bytes(damaged)
        with staged(tmp_path) as stage:
            assert stage.take() == commit


def test_without_the_store_a_cache_is_worth_nothing(tmp_path: Path) -> None:
    with staged(tmp_path) as stage:
        (stage.root / "a").write_text("a")
        stage.take()
    for pack in (tmp_path / "store.git" / "objects" / "pack").iterdir():
        pack.unlink()
    shutil.rmtree(tmp_path / "store.git" / "refs")
    with staged(tmp_path, policy=Policy.default()) as stage:
        is_exact(stage, tmp_path)


def test_another_run_keeps_its_own_snapshots(tmp_path: Path) -> None:
    """A commit that one run's ref keeps may go with that run; another must not rely on it."""
    with staged(tmp_path, ref="refs/runs/one") as stage:
        (stage.root / "a").write_text("a")
        one = stage.take()
    with staged(tmp_path, ref="refs/runs/two") as stage:
        two = CommitId(stage.take("of the second run"))
        assert two != one
        assert stage.store.ref("refs/runs/two") == two
        assert stage.workspace.restore(CommitId(one)).verified
        assert stage.take() == two


@pytest.mark.parametrize(("idle", "most"), [(True, 60), (False, 200)])
def test_snapshots_stay_few_in_files(tmp_path: Path, idle: bool, most: int) -> None:
    """They are put together when nobody waits, and in the end also where somebody always does."""
    with staged(tmp_path) as stage:
        for number in range(300):
            (stage.root / "f").write_text(str(number))
            stage.take()
            if idle and number % 5 == 0:
                stage.workspace.catch_up()
            assert len(stage.store.pack_names()) < most
        assert stage.store.read_file(CommitId(stage.take()), b"f") == b"299"
    store = SnapshotStore.open(tmp_path / "store.git")
    tip = store.ref("refs/runs/test")
    assert tip is not None
    count = 0
    while tip is not None:
        count += 1
        parents = store.commit(tip).parents
        tip = parents[0] if parents else None
    store.close()
    assert count == 300
