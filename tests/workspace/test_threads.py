"""Threads and processes that write to one store at the same time do not get in each other's way."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

from agentrewind.clock import SystemClock
from agentrewind.records import CommitId
from agentrewind.workspace.maintenance import collect
from agentrewind.workspace.pack_writer import replace_file
from agentrewind.workspace.policy import Policy
from agentrewind.workspace.power import sync
from agentrewind.workspace.refs import read_synced
from agentrewind.workspace.snapshots import SnapshotStore
from agentrewind.workspace.soundness import verify
from agentrewind.workspace.stat_cache import CachedInventory, load_inventory, save_inventory
from agentrewind.workspace.tracker import Workspace
from tests.workspace.stage import staged

REF = "refs/runs/test"
SECONDS = 0.4


def at_once(*acts: Callable[[], object], seconds: float = SECONDS) -> None:
    """Repeats each act in a thread of its own for a while; the first error of any is raised."""
    errors: list[Exception] = []
    end = time.monotonic() + seconds

    def repeat(act: Callable[[], object]) -> None:
        try:
            while time.monotonic() < end and not errors:
                act()
        except Exception as error:  # noqa: BLE001
            errors.append(error)

    threads = [threading.Thread(target=repeat, args=(act,)) for act in acts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not [thread for thread in threads if thread.is_alive()], "they wait for each other"
    if errors:
        raise errors[0]


def leftovers(store: Path) -> list[str]:
    return [path.name for path in store.rglob("*") if path.name.startswith((".tmp", "tmp_pack_"))]


def test_many_may_write_one_file_at_once(tmp_path: Path) -> None:
    with staged(tmp_path) as stage:
        commit = CommitId(stage.take())
        stage.workspace.close()
        (cache,) = stage.store.git_dir.glob("stat-cache-*")
        found = load_inventory(cache)
        assert found is not None
        cached = CachedInventory(inventory=found.inventory, commit=commit, ref=REF)
        acts = (
            lambda: sync(stage.store, (), REF, commit),
            lambda: save_inventory(cache, cached),
            lambda: replace_file(stage.store.git_dir / "generation", b"0123456789abcdef"),
        )
        at_once(*acts, *acts, *acts)
        assert read_synced(stage.store.git_dir) == {REF: commit}
        assert load_inventory(cache) is not None
        assert leftovers(stage.store.git_dir) == []


def test_equal_packs_of_two_threads(tmp_path: Path) -> None:
    """Two runs that begin with equal files at the same second make the same pack."""
    store = SnapshotStore.open(tmp_path / "store.git")
    for number in range(40):
        writers = [store.new_pack() for _ in range(4)]
        for writer in writers:
            writer.add(3, b"%d" % number)
        threads = [threading.Thread(target=writer.publish) for writer in writers]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        store.reload()
        assert len(store.ids()) == number + 1
    assert len(store.pack_names()) == 40
    assert leftovers(store.git_dir) == []
    store.close()


def test_syncs_while_idle_and_before_files_move(tmp_path: Path) -> None:
    """And a gc of another process, which sweeps leftovers, in the midst of it."""
    with staged(tmp_path) as stage:
        first = CommitId(stage.take())
        other = SnapshotStore.open(tmp_path / "store.git")
        second = SnapshotStore.open(tmp_path / "store.git")
        (tmp_path / "ws2").mkdir()
        beside = Workspace(
            root=tmp_path / "ws2",
            store=second,
            policy=Policy.default(),
            ref="refs/runs/beside",
            clock=SystemClock(),
        )
        counter = iter(range(1 << 30))

        def work() -> None:
            (stage.root / "file").write_text(f"{next(counter)}")
            stage.workspace.snapshot(label="turn")

        def work_beside() -> None:
            (tmp_path / "ws2" / "file").write_text(f"{next(counter)}")
            beside.pin(beside.snapshot(label="turn").commit, "refs/runs/pinned")

        idle = stage.workspace.catch_up
        at_once(
            work,
            lambda: stage.workspace.pin(first, "refs/runs/first"),
            idle,
            idle,
            work_beside,
            lambda: collect(other),
            seconds=1.5,
        )
        stage.workspace.pin(first, "refs/runs/first")
        assert read_synced(stage.store.git_dir)[REF] == stage.store.ref(REF)
        beside.close()
        assert verify(other) == []
        other.close()
        second.close()
    assert leftovers(tmp_path / "store.git") == []
