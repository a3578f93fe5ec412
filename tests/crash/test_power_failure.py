"""Lets the machine stop: of what was not synced any part may be missing, empty, cut short or zeros."""

from __future__ import annotations

import os
import random
import shutil
from pathlib import Path

import pytest

from agentrewind.records import CommitId
from agentrewind.workspace import maintenance
from agentrewind.workspace.maintenance import collect
from agentrewind.workspace.objects import index_ids
from agentrewind.workspace.power import BOOT, losses
from agentrewind.workspace.refs import write_synced
from agentrewind.workspace.restore import restore_into
from agentrewind.workspace.soundness import verify
from tests.workspace.disk import Fact, Worker, differences, git, manifest
from tests.workspace.stage import Stage, staged

REF = "refs/runs/test"
CASES = 400 if os.environ.get("AGENTREWIND_SOAK") else 20

Taken = list[tuple[CommitId, dict[bytes, Fact]]]


def files_of(directory: Path) -> dict[Path, bytes]:
    return {path.relative_to(directory): path.read_bytes() for path in directory.rglob("*") if path.is_file()}


def lose_power(store: Path, synced: dict[Path, bytes], rng: random.Random) -> None:
    """What was written since the sync reaches the disk, does not, or does in part."""
    for path, data in files_of(store).items():
        if synced.get(path) == data:
            continue
        older = synced.get(path)
        fate = rng.choice(["whole", "whole", "older", "empty", "cut", "zeros"])
        if fate == "older" and older is None:
            (store / path).unlink()
        elif fate != "whole":
            damaged = {"older": older or b"", "empty": b"", "cut": data[: len(data) // 2]}
            (store / path).write_bytes(damaged.get(fate, bytes(len(data))))
    # what was deleted since may be there again
    for path, data in synced.items():
        if not (store / path).exists() and rng.random() < 0.5:
            (store / path).write_bytes(data)
    (store / BOOT).write_text("an earlier start\n")


def work(stage: Stage, rng: random.Random, turns: int) -> Taken:
    worker = Worker(stage.root)
    taken: Taken = []
    for number in range(turns):
        (stage.root / rng.randbytes(4).hex()).write_bytes(rng.randbytes(rng.randrange(1, 3000)))
        for _ in range(3):
            operations = [name for name in worker.operations() if name != "cache"]
            worker.do(rng.choice(operations), rng.randrange(1 << 32))
        taken.append((CommitId(stage.workspace.snapshot(label=f"{number}").commit), manifest(stage.root)))
    return taken


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(CASES))
def test_what_was_synced_stays_and_what_was_lost_is_named(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(maintenance, "MANY", 4)
    rng = random.Random(seed)
    git_dir = tmp_path / "store.git"
    with staged(tmp_path) as stage:
        kept = work(stage, rng, rng.randrange(0, 8))
        stage.workspace.catch_up()
        synced = files_of(git_dir)
        late = work(stage, rng, rng.randrange(1, 6))
        shutil.copytree(git_dir, tmp_path / "at the end", symlinks=True)
    shutil.rmtree(git_dir)
    (tmp_path / "at the end").rename(git_dir)
    lose_power(git_dir, synced, rng)
    with staged(tmp_path) as stage:
        store = stage.store
        assert list(stage.workspace.recovered) == losses(store)
        assert verify(store) == losses(store)
        tip = store.ref(REF)
        history = [commit for commit, _ in (*kept, *late)]
        assert tip in history or (tip is None and not kept)
        if tip != history[-1]:
            older = synced.get(Path(REF), b"").decode().strip()
            assert (tip or "") == older or any(REF in line for line in stage.workspace.recovered)
        present = manifest(stage.root)
        after = CommitId(stage.workspace.snapshot(label="after").commit)
        for number, (commit, expected) in enumerate([*kept, (after, present)]):
            copy = tmp_path / f"copy-{number}"
            restore_into(store, commit, copy)
            assert differences(manifest(copy), expected) == []
        assert verify(store) == losses(store)
        found = losses(store)
    with staged(tmp_path) as stage:
        assert stage.workspace.recovered == ()  # told once, and by verify until gc
        assert losses(stage.store) == found
        collect(stage.store)
        assert verify(stage.store) == []
        stage.workspace.restore(after)
        assert differences(manifest(stage.root), present) == []


def test_a_start_of_the_machine_alone_loses_nothing(tmp_path: Path) -> None:
    with staged(tmp_path) as stage:
        taken = work(stage, random.Random(1), 4)
    (tmp_path / "store.git" / BOOT).write_text("an earlier start\n")
    with staged(tmp_path) as stage:
        assert stage.workspace.recovered == ()
        assert stage.store.ref(REF) == taken[-1][0]
        assert stage.workspace.snapshot(label="same").commit == taken[-1][0]
        assert verify(stage.store) == []


def test_a_hole_in_the_history_ends_it_and_what_is_whole_stays(tmp_path: Path) -> None:
    """One file written anew each time: a later snapshot needs nothing of an earlier one."""
    taken: Taken = []
    packs: list[set[str]] = [set()]
    with staged(tmp_path) as stage:
        for number in range(5):
            (stage.root / "file").write_text(f"{number}" * (number + 1))
            taken.append((CommitId(stage.take()), manifest(stage.root)))
            packs.append(set(stage.store.pack_names()))
            if number == 1:
                stage.workspace.catch_up()
    git_dir = tmp_path / "store.git"
    write_synced(git_dir, REF, taken[1][0])
    (lost,) = packs[4] - packs[3]
    for suffix in (".pack", ".idx"):
        (git_dir / "objects" / "pack" / f"{lost}{suffix}").unlink()
    (git_dir / BOOT).write_text("an earlier start\n")
    with staged(tmp_path) as stage:
        (told,) = stage.workspace.recovered
        assert taken[4][0] in told
        assert stage.store.ref(REF) == taken[4][0]
        known = [commit for commit, _ in reversed(taken)]
        assert stage.workspace.whole(known) == set(known) - {taken[3][0]}
        collect(stage.store)
        assert verify(stage.store) == []
        for number in (0, 1, 2, 4):
            restore_into(stage.store, taken[number][0], tmp_path / f"copy-{number}")
            assert differences(manifest(tmp_path / f"copy-{number}"), taken[number][1]) == []
        assert git(git_dir, "rev-list", "--count", REF).strip() == "1"


def test_what_a_killed_process_left_unsynced_is_synced_by_the_next(tmp_path: Path) -> None:
    with staged(tmp_path) as stage:
        (stage.root / "file").write_text("before")
        stage.take()
    for path in (tmp_path / "store.git").rglob("pack-*"):
        os.utime(path, ns=(10**18, path.stat().st_mtime_ns - 10**10))  # ten seconds before that was synced
    child = os.fork()
    if child == 0:
        with staged(tmp_path) as stage:
            (stage.root / "file").write_text("after")
            stage.take()
            os._exit(0)
    os.waitpid(child, 0)
    with staged(tmp_path) as stage:
        (left,) = stage.store.unsynced
        assert bytes.fromhex(stage.take()) in index_ids((stage.store.packs / f"{left}.idx").read_bytes())
        stage.workspace.catch_up()
        assert stage.store.unsynced == set()
