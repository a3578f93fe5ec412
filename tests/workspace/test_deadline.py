"""A snapshot that runs out of time leaves out what it did not see, says so, and nothing is lost by it."""

from __future__ import annotations

import os
import random
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest

from agentrewind.clock import SystemClock
from agentrewind.records import CommitId
from agentrewind.workspace.contents import LARGE, PIECE
from agentrewind.workspace.policy import Policy
from agentrewind.workspace.snapshots import SnapshotStore
from agentrewind.workspace.tracker import Workspace
from tests.workspace.disk import Worker, differences, manifest

LATE = " (not looked at before the deadline of the snapshot)"


class StepClock(SystemClock):
    """A clock that goes on by a second whenever it is asked, so that a deadline can fall on every look."""

    def __init__(self) -> None:
        self._seconds = count()

    def monotonic(self) -> float:
        return float(next(self._seconds))


def opened(base: Path, *, seconds: int, watch: bool) -> Workspace:
    return Workspace(
        root=base / "ws",
        store=SnapshotStore.open(base / "store.git"),
        policy=Policy(track_everything=True, snapshot_seconds=seconds),
        ref="refs/runs/r",
        clock=StepClock(),
        watch=watch,
    )


def grow(root: Path) -> None:
    (root / "deep" / "er" / "empty").mkdir(parents=True)
    for name in ("a", "deep/b", "deep/er/c", "z"):
        (root / name).write_text(name)
    (root / "link").symlink_to("a")
    os.link(root / "a", root / "deep" / "twin")
    with (root / "large").open("wb") as file:
        file.write(b"x" * (LARGE + 2 * PIECE))


def change(root: Path, number: int) -> None:
    worker = Worker(root)
    rng = random.Random(number)
    for _ in range(4):
        worker.do(rng.choice(worker.operations()), rng.randrange(1 << 32))


def below(path: bytes, tops: set[bytes]) -> bool:
    return any(path == top or path.startswith(top + b"/") for top in tops)


@pytest.mark.parametrize("watch", [True, False])
def test_a_deadline_at_every_look(tmp_path: Path, watch: bool) -> None:
    whole = 0
    for seconds in range(1000):
        base = tmp_path / str(seconds)
        (base / "ws").mkdir(parents=True)
        grow(base / "ws")
        files = opened(base, seconds=seconds, watch=watch)
        complete = _first(files, base)
        _later(files, base, seconds)
        files.close()
        whole += complete
        if whole == 3:
            break
    assert seconds > 10


def _first(files: Workspace, base: Path) -> bool:
    """A first snapshot, cut short: what it holds is right, and restoring it costs nothing that it lacks."""
    root, store = base / "ws", SnapshotStore.open(base / "store.git")
    taken = files.snapshot(label="first", hurried=True)
    store.reload()
    facts = manifest(root)
    named = {text.removesuffix(LATE).encode() for text in taken.partial}
    assert {text.removesuffix(LATE).encode() for text in store.left_out(taken.commit)} == named
    held = {entry.path for entry in store.entries(taken.commit)}
    assert held == {path for path in facts if path and not below(path, named)}
    for path in held:
        if facts[path].kind == "file":
            assert store.read_file(taken.commit, path) == (root / os.fsdecode(path)).read_bytes()
    for path in held:
        if facts[path].kind != "dir":
            (root / os.fsdecode(path)).unlink()  # whose other name may be one that is kept
    kept = {path: replace(fact, twins=()) for path, fact in facts.items() if below(path, named)}
    report = files.restore(taken.commit)
    assert report.verified
    after = {path: replace(fact, twins=()) for path, fact in manifest(root).items()}
    assert differences({path: after[path] for path in kept}, kept) == []
    assert all(after[path].content == facts[path].content for path in held)
    assert {line.partition(": ")[0].encode() for line in report.kept} == named
    store.close()
    return not taken.partial


def _later(files: Workspace, base: Path, seconds: int) -> None:
    """Changes after a whole snapshot, one in a hurry, one at leisure: everything comes back from the last."""
    root = base / "ws"
    start, before = files.snapshot(label="whole"), manifest(root)
    assert start.partial == ()
    change(root, seconds)
    hurried = files.snapshot(label="hurried", hurried=True)
    assert all(text.endswith(LATE) for text in hurried.partial)
    whole, expected = files.snapshot(label="whole again"), manifest(root)
    assert whole.partial == ()
    named = {text.removesuffix(LATE).encode("utf-8", "surrogateescape") for text in hurried.partial}
    changes = {each.path for each in files.changes(start.commit, whole.commit)}
    for one, other in ((start.commit, hurried.commit), (hurried.commit, whole.commit)):
        said = {each.path for each in files.changes(one, other)}
        # a new directory of which nothing was seen yet is named itself
        assert all(path in changes or any(below(each, {path}) for each in changes) for path in said)
        assert not any(below(path, named) for path in said)
    if not hurried.partial:
        assert hurried.commit == whole.commit
    files.restore(start.commit)
    assert differences(manifest(root), before) == []
    files.restore(CommitId(hurried.commit))
    files.restore(whole.commit)
    assert differences(manifest(root), expected) == []
    assert files.snapshot(label="same").commit == whole.commit
