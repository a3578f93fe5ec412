"""Making room drops nothing that a kept run needs, survives a kill, and leaves a run at work alone."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from agentrewind.clock import SystemClock
from agentrewind.collecting import collect_all, foresee, total_size
from agentrewind.commands.gc import read_size
from agentrewind.errors import UsageError
from agentrewind.records import (
    FORMAT,
    MAIN_WORKSPACE,
    CommitId,
    Finished,
    Header,
    RunId,
    WorkspaceDeclaration,
)
from agentrewind.run_store import RunStore
from agentrewind.workspace.lock import WorkspaceLock
from agentrewind.workspace.policy import Policy
from agentrewind.workspace.restore import restore_into
from agentrewind.workspace.roots import workspace_directory
from agentrewind.workspace.snapshots import SnapshotStore
from agentrewind.workspace.tracker import Workspace
from tests.backup.test_collecting import House

CLOCK = SystemClock()


class Shop:
    """A store with runs of one workspace, each with a snapshot of a big file of its own."""

    def __init__(self, base: Path) -> None:
        self.home, self.root = base / "home", base / "ws"
        self.root.mkdir()
        self.commits: dict[str, CommitId] = {}

    @property
    def git_dir(self) -> Path:
        return workspace_directory(self.home, self.root) / "snapshots.git"

    def run(self, name: str, state: str | None) -> None:
        declaration = WorkspaceDeclaration(root=str(self.root), policy=Policy.default().to_json())
        run = RunStore(self.home).create(
            Header(
                format=FORMAT,
                run_id=RunId(name),
                segment=0,
                forked_from=None,
                created_at=f"2026-01-01T00:00:0{len(self.commits)}.000Z",
                workspaces={MAIN_WORKSPACE: declaration},
                harness="x:Y",
                model="m",
                versions={},
            )
        )
        if state is not None:
            with run.writer(0) as writer:
                writer.append(Finished(state=state, detail="", at="2026-01-01T00:00:00.000Z"), durable=True)
        (self.root / "big").write_bytes(os.urandom(200_000))
        workspace = Workspace(
            root=self.root,
            store=SnapshotStore.open(self.git_dir),
            policy=Policy.default(),
            ref=f"refs/agentrewind/{name}/segment-0000",
            clock=CLOCK,
        )
        self.commits[name] = workspace.snapshot(label=name).commit
        workspace.close()

    def restores(self, name: str, into: Path) -> bool:
        with closing(SnapshotStore.open(self.git_dir)) as store:
            return restore_into(store, self.commits[name], into).verified

    @property
    def names(self) -> set[str]:
        return {run.run_id for run in RunStore(self.home).runs()}


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    shop = Shop(tmp_path)
    for name, state in (("a", "accepted"), ("b", "error"), ("c", "rejected"), ("d", "accepted")):
        shop.run(name, state)
    return shop


def test_without_a_budget_every_run_keeps_its_snapshots(shop: Shop, tmp_path: Path) -> None:
    done = collect_all(shop.home, clock=CLOCK)
    assert (done.runs_dropped, done.busy, done.within_budget) == ((), (), True)
    assert shop.names == {"a", "b", "c", "d"}
    for name in shop.names:
        assert shop.restores(name, tmp_path / name)


def test_whole_runs_go_where_nothing_can_be_written(shop: Shop, tmp_path: Path) -> None:
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, limits[1]))
    try:
        done = collect_all(shop.home, clock=CLOCK, budget=0)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert done.runs_dropped == ("a", "c")
    assert len(done.failed) == 1
    assert "snapshots.git cannot be written" in done.failed[0]
    assert collect_all(shop.home, clock=CLOCK).failed == ()
    for name in ("b", "d"):
        assert shop.restores(name, tmp_path / name)


def test_a_budget_drops_the_oldest_ended_runs_only(shop: Shop, tmp_path: Path) -> None:
    before = total_size(shop.home, clock=CLOCK)
    done = collect_all(shop.home, clock=CLOCK, budget=before - 150_000)
    assert done.runs_dropped == ("a",)
    assert done.size_after <= before - 150_000
    done = collect_all(shop.home, clock=CLOCK, budget=0)
    assert done.runs_dropped == ("c",), "b could be resumed, d is the newest"
    assert not done.within_budget
    assert shop.names == {"b", "d"}
    for name in shop.names:
        assert shop.restores(name, tmp_path / name)


def test_the_backups_of_a_run_are_counted_and_go_with_it(shop: Shop) -> None:
    house = House(shop.home)
    for name in ("a", "b"):
        house.preserve(name, name * 300_000)
    assert total_size(shop.home, clock=CLOCK) > 1_400_000
    foreseen = foresee(shop.home, clock=CLOCK, budget=1_200_000)
    done = collect_all(shop.home, clock=CLOCK, budget=1_200_000)
    assert foreseen.runs_dropped[:1] == done.runs_dropped == ("a",)
    assert (foreseen.backups.entries, foreseen.backups.bytes) == (done.backups.entries, done.backups.bytes)
    assert done.backups.bytes == 300_000
    assert [each.run_id for each in house.entries().values()] == ["b"]


def test_snapshots_of_runs_that_are_gone_are_dropped(shop: Shop, tmp_path: Path) -> None:
    for path in (shop.home / "runs" / "a").iterdir():
        path.unlink()
    (shop.home / "runs" / "a").rmdir()
    before = total_size(shop.home, clock=CLOCK)
    done = collect_all(shop.home, clock=CLOCK)
    assert done.objects_dropped > 0
    assert before - done.size_after > 150_000
    assert shop.restores("b", tmp_path / "b")


def test_a_workspace_where_a_run_is_at_work_is_left_alone(shop: Shop) -> None:
    before = total_size(shop.home, clock=CLOCK)
    with WorkspaceLock.acquire(shop.home, shop.root, owner={"run": "d"}):
        done = collect_all(shop.home, clock=CLOCK, budget=0)
    assert done.busy == (shop.git_dir.parent.name,)
    assert done.runs_dropped == ()
    assert abs(total_size(shop.home, clock=CLOCK) - before) < 1000


@pytest.mark.parametrize("stop", ["rename", "rmtree", "delete_ref", "collect"])
def test_a_kill_anywhere_is_swept_by_the_next(shop: Shop, tmp_path: Path, stop: str) -> None:
    program = (
        "import os, shutil, signal, sys\n"
        "from pathlib import Path\n"
        "import agentrewind.collecting as c\n"
        "def die(*a, **k): os.kill(os.getpid(), signal.SIGKILL)\n"
        f"stop = {stop!r}\n"
        "rename = Path.rename\n"
        "def renamed(self, to):\n"
        "    rename(self, to)\n"
        "    die()\n"
        "if stop == 'rename': Path.rename = renamed\n"
        "if stop == 'rmtree': shutil.rmtree = die\n"
        "if stop == 'delete_ref': c.SnapshotStore.delete_ref = die\n"
        "if stop == 'collect':\n"
        "    again = c.collect\n"
        "    count = []\n"
        "    def second(store):\n"
        "        count.append(1)\n"
        "        return die() if len(count) > 1 else again(store)\n"
        "    c.collect = second\n"
        "from agentrewind.clock import SystemClock\n"
        "c.collect_all(Path(sys.argv[1]), clock=SystemClock(), budget=0)\n"
    )
    killed = subprocess.run([sys.executable, "-c", program, str(shop.home)], check=False)
    assert killed.returncode == -9
    assert {"b", "d"} <= shop.names
    collect_all(shop.home, clock=CLOCK, budget=0)
    assert shop.names == {"b", "d"}
    assert list((shop.home / "runs").glob(".going-*")) == []
    for name in shop.names:
        assert shop.restores(name, tmp_path / name)


@pytest.mark.parametrize(
    ("text", "value"), [("1024", 1024), ("2k", 2000), ("500M", 500_000_000), ("1.5 GB", 1_500_000_000)]
)
def test_sizes_are_read(text: str, value: int) -> None:
    assert read_size(text, option="--budget") == value


@pytest.mark.parametrize("text", ["", "-1", "much", "5X"])
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="500M"):
        read_size(text, option="--budget")
