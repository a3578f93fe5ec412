"""Measures snapshots and restores against git's plumbing on the same tree in the same process.

Every round compares the two results: the tree that git wrote and ours must have the same id, which they only
have when every file is the same. A difference ends the run.

    python benchmarks/workspace.py --sizes 1000,10000 --write docs/benchmarks.md
"""

from __future__ import annotations

import argparse
import os
import platform
import random
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from agentrewind.clock import SystemClock
from agentrewind.records import CommitId
from agentrewind.workspace.maintenance import store_size
from agentrewind.workspace.policy import Policy
from agentrewind.workspace.snapshots import SnapshotStore
from agentrewind.workspace.tracker import Workspace

QUIET_S = 0.05
"""Between an edit and a measurement, so that neither side pays for the clock tick."""


@dataclass(frozen=True)
class Cost:
    """Milliseconds of wall clock and of CPU."""

    wall: float
    cpu: float


@dataclass
class Row:
    """One line of the table: what was done, by whom, how dear."""

    what: str
    where: str
    files: int
    ours: list[Cost] = field(default_factory=list)
    git: list[Cost] = field(default_factory=list)
    ask: float | None = None

    def text(self) -> str:
        ours, git = median(self.ours), median(self.git)
        cpu, wall = git.cpu / ours.cpu, git.wall / ours.wall
        verdict = "" if self.ask is None else f"≥ {self.ask:g}× {'✓' if cpu >= self.ask else '✗'}"
        return (
            f"| {self.what} | {self.where} | {self.files:,} | {ours.wall:.2f} ({ours.cpu:.2f}) "
            f"| {git.wall:.1f} ({git.cpu:.1f}) | {cpu:.1f}× | {wall:.1f}× | {verdict} |"
        )


def median(costs: list[Cost]) -> Cost:
    return Cost(statistics.median(c.wall for c in costs), statistics.median(c.cpu for c in costs))


def measured(action: Callable[[], object]) -> Cost:
    """The cost of an action, its child processes included."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    wall, cpu = time.perf_counter(), time.process_time()
    action()
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu += after.ru_utime + after.ru_stime - children.ru_utime - children.ru_stime
    return Cost(wall * 1e3, max(cpu * 1e3, 0.001))


class Plumbing:
    """What one would write with the git program: a bare repository and an index of its own."""

    def __init__(self, base: Path, root: Path) -> None:
        self.root = root
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": "/nonexistent",
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_DIR": str(base / "git.git"),
            "GIT_WORK_TREE": str(root),
            "GIT_INDEX_FILE": str(base / "git.index"),
            "GIT_AUTHOR_NAME": "b",
            "GIT_AUTHOR_EMAIL": "b@example.invalid",
            "GIT_COMMITTER_NAME": "b",
            "GIT_COMMITTER_EMAIL": "b@example.invalid",
        }
        subprocess.run(["git", "init", "-q", "--bare", str(base / "git.git")], check=True)
        self.tree = ""

    def run(self, *arguments: str) -> str:
        done = subprocess.run(
            ["git", *arguments],
            env=self.environment,
            cwd=self.root,
            check=True,
            capture_output=True,
            text=True,
        )
        return done.stdout.strip()

    def snapshot(self) -> str:
        self.run("add", "-A", "-f", ".")
        self.tree = self.run("write-tree")
        return self.run("commit-tree", "-m", "b", self.tree)

    def restore(self, tree: str) -> None:
        self.snapshot()
        self.run("read-tree", "--reset", "-u", tree)
        self.run("clean", "-fdxq")


class Bench:
    """One tree with both sides over it."""

    def __init__(self, base: Path, where: str, files: int, *, watch: bool = True) -> None:
        self.where = where
        self.root = base / "ws"
        self.rng = random.Random(1)
        self.paths = grow(self.root, files, self.rng)
        self.plumbing = Plumbing(base, self.root)
        self.base = base
        self.watch = watch
        self.store = SnapshotStore.open(base / "store.git")
        self.workspace = self.open(watch=True)
        self.commit = CommitId("")

    def open(self, *, watch: bool) -> Workspace:
        return Workspace(
            root=self.root,
            store=self.store,
            policy=Policy(track_everything=True),
            ref="refs/runs/bench",
            clock=SystemClock(),
            watch=watch,
        )

    def snapshot(self) -> None:
        self.commit = self.workspace.snapshot(label="b").commit

    def compare(self) -> None:
        """Both sides must have seen the same files with the same bytes."""
        ours = self.store.commit(self.commit).root.tree.hex()
        if ours != self.plumbing.tree:
            sys.exit(f"WRONG: git wrote tree {self.plumbing.tree}, we wrote {ours} for {self.root}")

    def edit(self, count: int) -> None:
        for path in self.rng.sample(self.paths, count):
            path.write_bytes(path.read_bytes() + b"# one more line\n")
        time.sleep(QUIET_S)

    def row(self, what: str, rounds: int, prepare: Callable[[], None], ask: float | None) -> Row:
        row = Row(what, self.where, len(self.paths), ask=ask)
        for turn in range(rounds):
            prepare()
            sides = [(row.ours, self.snapshot), (row.git, self.plumbing.snapshot)]
            for costs, action in sides if turn % 2 else reversed(sides):
                costs.append(measured(action))
            self.compare()
        return row

    def restore_row(self, what: str, rounds: int, count: int, ask: float | None) -> Row:
        row = Row(what, self.where, len(self.paths), ask=ask)
        for _ in range(rounds):
            self.snapshot()
            self.plumbing.snapshot()
            target, tree = self.commit, self.plumbing.tree
            self.edit(count)
            row.ours.append(measured(partial(self.workspace.restore, target)))
            self.snapshot()
            self.plumbing.snapshot()
            self.compare()
            self.edit(count)
            row.git.append(measured(partial(self.plumbing.restore, tree)))
            self.snapshot()
            self.plumbing.snapshot()
            self.compare()
        return row


def grow(root: Path, files: int, rng: random.Random) -> list[Path]:
    """A tree like a code base's: twelve files a directory, source-like text of 1 to 8 KB."""
    root.mkdir()
    paths = []
    for number in range(files):
        directory = root / f"part{number // 1200:03d}" / f"module{(number // 12) % 100:02d}"
        if number % 12 == 0:
            directory.mkdir(parents=True, exist_ok=True)
        path = directory / f"file{number % 12}.py"
        line = f"value_{rng.randrange(10**9)} = compute({rng.randrange(10**6)})  # a line of code\n"
        path.write_text("".join(line.replace("0", str(step)) for step in range(rng.randrange(15, 150))))
        paths.append(path)
    time.sleep(QUIET_S)
    return paths


def table(where: str, base: Path, files: int) -> list[Row]:
    """All rows for one size in one place."""
    bench = Bench(base, where, files)
    large = files >= 50_000
    rounds = 5 if large else 9

    def ask(value: float) -> float | None:
        return value if files >= 10_000 else None

    rows = [bench.row("first snapshot", 1, lambda: None, ask(2))]
    bench.snapshot()
    rows.append(bench.row("nothing changed", rounds, lambda: time.sleep(QUIET_S), ask(500 if large else 50)))
    rows.append(bench.row("1 file changed", rounds, lambda: bench.edit(1), None))
    rows.append(bench.row("10 files changed", rounds, lambda: bench.edit(10), ask(60 if large else 15)))
    if files >= 2000:
        rows.append(bench.row("1,000 files changed", 3, lambda: bench.edit(1000), ask(4)))
    rows.append(bench.restore_row("restore after 10 edits", 3 if large else 5, 10, ask(5)))
    if files >= 2000:
        rows.append(bench.restore_row("restore after 1,000 edits", 3, 1000, ask(2)))
    bench.workspace.close()
    bench.workspace = bench.open(watch=False)
    bench.snapshot()
    rows.append(bench.row("no watcher, nothing changed", rounds, lambda: time.sleep(QUIET_S), ask(0.75)))
    rows.append(bench.row("no watcher, 10 changed", rounds, lambda: bench.edit(10), ask(0.75)))
    bench.workspace.close()
    bench.store.close()
    return rows


def growth(base: Path) -> list[str]:
    """Bytes and time of the 400th snapshot against the 10th."""
    bench = Bench(base, "tmpfs", 10_000)
    costs: list[Cost] = []
    sizes: list[int] = []
    for _ in range(410):
        bench.edit(10)
        costs.append(measured(bench.snapshot))
        sizes.append(store_size(bench.store.git_dir))
    bench.workspace.close()
    bench.store.close()
    early, late = median(costs[5:25]), median(costs[390:410])
    each = (sizes[-1] - sizes[10]) / (len(sizes) - 11)
    return [
        f"- 400 snapshots of 10,000 files, 10 changed in each: the 10th takes {early.wall:.2f} ms "
        f"({early.cpu:.2f} CPU), the 400th {late.wall:.2f} ms ({late.cpu:.2f}); the store holds "
        f"{sizes[0] / 2**20:.1f} MiB after the first and {sizes[-1] / 2**20:.1f} MiB after the last, "
        f"{each / 1024:.1f} KiB a snapshot."
    ]


def large_files(base: Path) -> list[str]:
    """Three files of 100 MB that do not compress, one of them changed in a page; a sparse one of 300 MB."""
    root = base / "ws"
    root.mkdir()
    for number in range(3):
        (root / f"{number}.bin").write_bytes(random.Random(number).randbytes(100 << 20))
    time.sleep(QUIET_S)
    store = SnapshotStore.open(base / "store.git")
    workspace = Workspace(
        root=root, store=store, policy=Policy.default(), ref="refs/runs/bench", clock=SystemClock()
    )
    plumbing = Plumbing(base, root)
    first, git_first = measured(lambda: workspace.snapshot(label="b")), measured(plumbing.snapshot)
    with (root / "1.bin").open("r+b") as file:
        file.seek(50 << 20)
        file.write(b"changed")
    time.sleep(QUIET_S)
    changed, git_changed = measured(lambda: workspace.snapshot(label="b")), measured(plumbing.snapshot)
    with (root / "sparse").open("wb") as file:
        file.truncate(300 << 20)
    sparse = measured(lambda: workspace.snapshot(label="b"))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    size = store_size(store.git_dir) / 2**20
    workspace.close()
    store.close()
    return [
        f"- 3 × 100 MB of noise: first {first.wall:.0f} ms (git {git_first.wall:.0f}), one changed in place "
        f"{changed.wall:.0f} ms (git {git_changed.wall:.0f}), a sparse file of 300 MB "
        f"added {sparse.wall:.0f} ms; the store then holds {size:.0f} MiB; the process peaked at "
        f"{peak:.0f} MiB."
    ]


def node_modules(base: Path) -> list[str]:
    """30,000 small files that come and go."""
    root = base / "ws"
    root.mkdir()
    store = SnapshotStore.open(base / "store.git")
    workspace = Workspace(
        root=root, store=store, policy=Policy.default(), ref="refs/runs/bench", clock=SystemClock()
    )
    before = workspace.snapshot(label="b").commit
    lines = []
    for turn in ("first", "again"):
        grow(root / "node_modules", 30_000, random.Random(7))
        taken = measured(lambda: workspace.snapshot(label="b"))
        removed = measured(lambda: workspace.restore(before))
        lines.append(
            f"{turn}: snapshot {taken.wall:.0f} ms ({taken.cpu:.0f} CPU), restore that removes them "
            f"{removed.wall:.0f} ms"
        )
    size = store_size(store.git_dir) / 2**20
    workspace.close()
    store.close()
    return [f"- 30,000 small files created and removed; {'; '.join(lines)}; the store holds {size:.1f} MiB."]


def machine() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    models = [line.split(":")[1].strip() for line in lines if line.startswith("model name")]
    model = models[0] if models else platform.machine()
    git = subprocess.run(["git", "--version"], capture_output=True, text=True, check=True).stdout.strip()
    load = os.getloadavg()[0]
    return (
        f"{os.cpu_count()} cores of {model}, Linux {platform.release()}, Python {platform.python_version()}, "
        f"{git}; load average at the start {load:.1f}"
    )


def in_place(where: str, parent: Path, action: Callable[[Path], list[Row] | list[str]]) -> list[str]:
    base = Path(tempfile.mkdtemp(prefix="agentrewind-bench-", dir=parent))
    try:
        lines = [line.text() if isinstance(line, Row) else line for line in action(base)]
    finally:
        shutil.rmtree(base)
    for line in lines:
        print(line, flush=True)
    return lines


HEAD = """| what | where | files | ours, ms (CPU) | git, ms (CPU) | CPU ratio | wall ratio | ask (CPU) |
| --- | --- | --- | --- | --- | --- | --- | --- |"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", default="1000,10000", help="numbers of files, separated by commas")
    parser.add_argument("--disk", type=Path, default=Path(tempfile.gettempdir()))
    parser.add_argument("--tmpfs", type=Path, default=Path("/dev/shm"))
    parser.add_argument("--write", type=Path, help="the document whose measured part is replaced")
    arguments = parser.parse_args()
    described = machine()
    print(described, flush=True)
    rows: list[str] = []
    for size in (int(part) for part in arguments.sizes.split(",")):
        for where, parent in (("tmpfs", arguments.tmpfs), ("disk", arguments.disk)):
            if parent.is_dir():
                rows += in_place(where, parent, partial(table, where, files=size))
    notes: list[str] = []
    for action in (growth, large_files, node_modules):
        notes += in_place("tmpfs", arguments.tmpfs, action)
    if arguments.write is not None:
        text = arguments.write.read_text()
        before, begin, rest = text.partition("<!-- measured -->\n")
        _, end, after = rest.partition("<!-- end -->")
        body = f"Measured on {described}.\n\n{HEAD}\n" + "\n".join(rows) + "\n\n" + "\n".join(notes) + "\n\n"
        arguments.write.write_text(before + begin + "\n" + body + end + after)


if __name__ == "__main__":
    main()
