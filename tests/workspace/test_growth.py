"""A long run over large files: the store grows by what changed, stays few in files, and survives every gc.

By default at a size that takes seconds; with AGENTREWIND_SOAK 500 nodes that each rewrite 20 MB, and
node_modules of 30,000 files that come and go.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
from pathlib import Path

import pytest

from agentrewind.records import CommitId
from agentrewind.workspace.maintenance import MANY, collect, store_size
from agentrewind.workspace.restore import restore_into
from agentrewind.workspace.snapshots import SnapshotStore
from agentrewind.workspace.soundness import verify
from tests.crash.changes import killed_at
from tests.workspace.disk import Fact, differences, manifest
from tests.workspace.stage import Stage, staged

SOAK = bool(os.environ.get("AGENTREWIND_SOAK"))
NODES, SIZE, MODULES, EVERY = (500, 20 << 20, 30_000, 50) if SOAK else (120, 50_000, 300, 20)

Taken = list[tuple[CommitId, dict[bytes, Fact]]]


def install(root: Path, number: int) -> None:
    """Many small files in folders, other ones each time."""
    for module in range(MODULES // 30):
        folder = root / "node_modules" / f"m{module}" / "lib"
        folder.mkdir(parents=True)
        for file in range(30):
            (folder / f"{file}.js").write_text(f"module.exports = {module} * {file} + {number % 2}\n")


def work(stage: Stage) -> tuple[Taken, list[int]]:
    """The nodes, one snapshot each; the manifests of some; how many objects each of the plain nodes added."""
    rng = random.Random(5)
    taken: Taken = []
    added = []
    (stage.root / "src" / "deep").mkdir(parents=True)
    for number in range(NODES):
        (stage.root / "src" / "deep" / "data.bin").write_bytes(rng.randbytes(SIZE))
        comes, goes = number % EVERY == 1, number % EVERY == 2
        if comes:
            install(stage.root, number)
        elif goes:
            shutil.rmtree(stage.root / "node_modules")
        before = stage.store.ids()
        commit = CommitId(stage.take())
        if not (comes or goes) and number:
            added.append(len(stage.store.ids() - before))
        if comes or number % (NODES // 6) == 0 or number == NODES - 1:
            taken.append((commit, manifest(stage.root)))
        if number % 4 == 0:
            stage.workspace.catch_up()
        # half of them written as they are, half put together already
        assert len(stage.store.pack_names()) <= 2 * MANY
    return taken, added


@pytest.mark.slow
@pytest.mark.timeout(0 if SOAK else 300)
def test_the_store_follows_what_changed_and_every_node_survives_gc(tmp_path: Path) -> None:
    with staged(tmp_path) as stage:
        taken, added = work(stage)
        # a node adds what it changed, as the first so the last; a pack that is put together adds nothing
        assert len(set(added)) == 1
        git_dir = stage.store.git_dir
        installs = -(-NODES // EVERY)
        small = 4096 * NODES + 3 * 400 * MODULES * min(installs, 2)
        assert store_size(git_dir) < NODES * SIZE * 1.01 + small

    def gc() -> None:
        store = SnapshotStore.open(git_dir)
        collect(store)

    with staged(tmp_path, ref="refs/runs/gone") as stage:
        for number in range(3):
            (stage.root / "src" / "gone").write_text(str(number))
            stage.take()
        stage.store.delete_ref("refs/runs/gone")
    killed = [killed_at(number, gc) for number in (3, 6, 9)]
    assert any(killed)
    # to be found by refs alone: what only a log names would not survive this
    # it looks for differences between small objects only: for noise in pieces of 1 MiB that takes too long
    settings = ["-c", "core.bigFileThreshold=512k"]
    subprocess.run(["git", "-C", str(git_dir), *settings, "gc", "-q", "--prune=now"], check=True)
    store = SnapshotStore.open(git_dir)
    collect(store)
    assert verify(store) == []
    assert {path.suffix for path in store.packs.iterdir()} <= {".idx", ".pack", ".rev", ".bitmap"}
    for number, (commit, expected) in enumerate(taken):
        copy = tmp_path / f"copy-{number}"
        restore_into(store, commit, copy)
        assert differences(manifest(copy), expected) == []
        shutil.rmtree(copy)
    for ref in store.refs():
        store.delete_ref(ref)
    assert collect(store).size_after < 20_000
    store.close()
