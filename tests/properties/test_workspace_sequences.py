"""Law 1 and 3 by random work: after every restore the disk equals an independent manifest."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from agentrewind.clock import SystemClock
from agentrewind.records import CommitId
from agentrewind.workspace.policy import Policy
from agentrewind.workspace.restore import restore_into
from agentrewind.workspace.snapshots import SnapshotStore
from agentrewind.workspace.tracker import Workspace
from tests.workspace.disk import Fact, Worker, differences, manifest

SEQUENCES = int(os.environ.get("AGENTREWIND_SEQUENCES", "200"))
"""How many random sequences are tried; the soak test sets it to thousands."""

RULES = settings(
    max_examples=SEQUENCES,
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)

OPERATIONS = Worker(Path()).operations()
GIT_OPERATIONS = Worker(Path(), with_git=True).operations()


def steps(operations: list[str]) -> st.SearchStrategy[list[tuple[str, int]]]:
    work = st.tuples(st.sampled_from(operations), st.integers(0, 1 << 32))
    points = st.tuples(
        st.sampled_from(["snapshot", "restore", "restore_into", "reopen", "away"]), st.integers(0, 1 << 32)
    )
    start = st.tuples(st.sampled_from(["create", "mkdir", "hard_link"]), st.integers(0, 1 << 32))
    return st.tuples(
        st.lists(start, min_size=8, max_size=16),
        st.lists(st.one_of(work, work, work, points), min_size=10, max_size=50),
    ).map(lambda parts: [*parts[0], *parts[1]])


def volatile(path: bytes) -> bool:
    return path.split(b"/")[-1] == b"__pycache__"


class Sequence:
    """A workspace, its store, and what the disk looked like at each snapshot."""

    def __init__(self, base: Path, *, with_git: bool = False, watch: bool = True) -> None:
        self.base = base
        self.watch = watch
        self.root = base / "ws"
        self.root.mkdir()
        (base / "outside").write_text("untouched")
        self.worker = Worker(self.root, with_git=with_git)
        self.seen: list[tuple[CommitId, dict[bytes, Fact]]] = []
        self.copies = 0
        self.workspace = self.open()

    def open(self) -> Workspace:
        store = SnapshotStore.open(self.base / "store.git")
        return Workspace(
            root=self.root,
            store=store,
            policy=Policy.default(),
            ref="refs/runs/r",
            clock=SystemClock(),
            watch=self.watch,
        )

    def run(self, plan: list[tuple[str, int]]) -> None:
        self.snapshot()
        for operation, seed in plan:
            match operation:
                case "snapshot":
                    self.snapshot()
                case "restore":
                    self.restore(seed)
                case "restore_into":
                    self.restore_into(seed)
                case "reopen":
                    self.workspace.close()
                    self.workspace = self.open()
                case "away":
                    self.workspace.close()
                    operations = self.worker.operations()
                    self.worker.do(operations[seed % len(operations)], seed)
                    self.workspace = self.open()
                case _:
                    self.worker.do(operation, seed)
        self.snapshot()
        self.restore(0)
        self.restore(len(self.seen) - 1)
        self.workspace.close()

    def snapshot(self) -> None:
        taken = self.workspace.snapshot(label=f"{len(self.seen)}")
        assert taken.partial == ()
        self.seen.append((taken.commit, manifest(self.root, skip=volatile)))

    def restore(self, seed: int) -> None:
        commit, expected = self.seen[seed % len(self.seen)]
        before = manifest(self.root, skip=volatile)
        inodes = {path: os.lstat(os.path.join(os.fsencode(self.root), path)).st_ino for path in before}
        report = self.workspace.restore(commit)
        assert report.verified
        after = manifest(self.root)
        assert differences(after, expected) == []
        for path, fact in expected.items():
            if fact == before.get(path):
                assert os.lstat(os.path.join(os.fsencode(self.root), path)).st_ino == inodes[path]
        assert self.workspace.snapshot(label="again").commit == commit

    def restore_into(self, seed: int) -> None:
        commit, expected = self.seen[seed % len(self.seen)]
        self.copies += 1
        copy = self.base / f"copy-{self.copies}"
        store = SnapshotStore.open(self.base / "store.git")
        assert restore_into(store, commit, copy).verified
        store.close()
        assert differences(manifest(copy), expected) == []


def check(plan: list[tuple[str, int]], *, with_git: bool = False, watch: bool = True) -> None:
    base = Path(tempfile.mkdtemp(prefix="agentrewind-sequence-"))
    note(f"in {base}")
    try:
        sequence = Sequence(base, with_git=with_git, watch=watch)
        sequence.run(plan)
        assert (base / "outside").read_text() == "untouched"
    finally:
        shutil.rmtree(base)


@RULES
@given(steps(OPERATIONS), st.booleans())
def test_every_restore_brings_back_the_manifest(plan: list[tuple[str, int]], watch: bool) -> None:
    check(plan, watch=watch)


@settings(RULES, max_examples=max(10, SEQUENCES // 5))
@given(steps(GIT_OPERATIONS))
def test_repositories_inside_come_back_as_well(plan: list[tuple[str, int]]) -> None:
    check(plan, with_git=True)
