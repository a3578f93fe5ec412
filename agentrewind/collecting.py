"""Makes room in a store of runs: drops what no kept run names, and, if told so, whole old runs.

A run goes by rename first, its snapshots' refs after it, the objects and its backups last: a kill in between
leaves leftovers that the next collection sweeps, never a run without its snapshots or backups. Workspaces
where somebody is at work, in a fork's copy as well, are left alone.
"""

from __future__ import annotations

import shutil
from collections.abc import Collection, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from agentrewind.backup.collecting import DroppedBackups, Limits, collect_backups, foresee_backups
from agentrewind.backup.sizes import backup_sizes
from agentrewind.clock import Clock
from agentrewind.errors import DamagedError, StorageError
from agentrewind.records import MAIN_WORKSPACE, JsonObject
from agentrewind.run_files import COPY
from agentrewind.run_store import Run, RunStore
from agentrewind.workspace.lock import idle
from agentrewind.workspace.maintenance import collect, store_size
from agentrewind.workspace.roots import workspace_directory
from agentrewind.workspace.snapshots import SnapshotStore

ENDED = ("accepted", "rejected")
"""States of runs that nobody will resume; only these are ever dropped."""

_REFS = "refs/agentrewind/"
_GOING = ".going-"
_NO_LIMITS = Limits()


@dataclass(frozen=True, slots=True, kw_only=True)
class Collected:
    """What was done, or would be.

    Attributes:
        size_before: bytes of runs, snapshots and the backups of runs; `size_after` is 0 in a forecast.
        runs_dropped: in a forecast the ended runs, oldest first, of which as many go as the budget needs.
        backups: those that went; `hook_bytes` are taken by those of no run, which no budget of runs counts.
        busy: folders of workspaces that were left alone.
        forecast: nothing was done.
        failed: why snapshots of a workspace, and with them backups, could not be dropped at last.
    """

    size_before: int
    size_after: int
    runs_dropped: tuple[str, ...]
    objects_dropped: int
    swept: tuple[str, ...]
    busy: tuple[str, ...]
    within_budget: bool
    backups: DroppedBackups
    hook_bytes: int
    forecast: bool = False
    failed: tuple[str, ...] = ()

    def to_json(self) -> JsonObject:
        """As `gc --json` prints it."""
        return {
            "size_before": self.size_before,
            "size_after": self.size_after,
            "runs_dropped": list(self.runs_dropped),
            "objects_dropped": self.objects_dropped,
            "swept": list(self.swept),
            "busy": list(self.busy),
            "within_budget": self.within_budget,
            "backups_dropped": [*self.backups.to_json()],
            "backups_busy": self.backups.busy,
            "backup_bytes_freed": self.backups.bytes,
            "hook_backup_bytes": self.hook_bytes,
            "dry_run": self.forecast,
            "failed": list(self.failed),
        }


def collect_all(
    home: Path, *, clock: Clock, budget: int | None = None, limits: Limits = _NO_LIMITS
) -> Collected:
    """Drop what no run names; with a budget also the oldest ended runs until the rest fits into it.

    The newest run of each workspace stays, and every run that could still be resumed. Backups go with their
    runs; those of no run stay within their own limits.

    Raises:
        MissingSnapshotError: a store is damaged; nothing was dropped from it.
        DamagedError: the backup log cannot be read; no backup was dropped.
        StorageError: runs cannot be removed, or backups not be dropped.

    A workspace whose snapshots cannot be written, as on a full disk, does not keep the others or whole runs
    from going: removing those needs no room.
    """
    before = total_size(home, clock=clock)
    swept = [path.name for path in _sweep(home)]
    dropped, objects, busy = [], 0, set[str]()
    failed = dict[str, str]()
    objects += _collect_stores(home, busy, failed)
    backups = DroppedBackups() if failed else collect_backups(home, limits, clock=clock)
    for run in _droppable(home) if budget is not None else ():
        assert budget is not None
        if total_size(home, clock=clock) <= budget:
            break
        if _drop(home, run, busy):
            dropped.append(str(run.run_id))
            objects += _collect_stores(home, busy, failed)
            backups += DroppedBackups() if failed else collect_backups(home, limits, clock=clock)
    after = total_size(home, clock=clock)
    return Collected(
        size_before=before,
        size_after=after,
        runs_dropped=tuple(dropped),
        objects_dropped=objects,
        swept=tuple(swept),
        busy=tuple(sorted(busy)),
        within_budget=budget is None or after <= budget,
        failed=tuple(failed.values()),
        backups=backups,
        hook_bytes=backup_sizes(home, clock=clock).of_hooks,
    )


def foresee(home: Path, *, clock: Clock, budget: int | None = None, limits: Limits = _NO_LIMITS) -> Collected:
    """What `collect_all` would do, as far as it can be told without doing it: not what the objects free."""
    size = total_size(home, clock=clock)
    over = budget is not None and size > budget
    runs = tuple(str(run.run_id) for run in _droppable(home)) if over else ()
    return Collected(
        size_before=size,
        size_after=0,
        runs_dropped=runs,
        objects_dropped=0,
        swept=tuple(path.name for path in _leftovers(home)),
        busy=(),
        within_budget=not over or bool(runs),
        backups=foresee_backups(home, limits, clock=clock, without=runs),
        hook_bytes=backup_sizes(home, clock=clock).of_hooks,
        forecast=True,
    )


def total_size(home: Path, *, clock: Clock) -> int:
    """Bytes of all runs, all snapshots, and the payloads that runs' backups name."""
    files = sum(store_size(home / name) for name in ("runs", "workspaces") if (home / name).is_dir())
    return files + backup_sizes(home, clock=clock).of_runs


def _leftovers(home: Path) -> list[Path]:
    """Runs that were on their way out when a collection was killed."""
    return sorted((home / "runs").glob(f"{_GOING}*"))


def _sweep(home: Path) -> Iterator[Path]:
    for path in _leftovers(home):
        shutil.rmtree(path)
        yield path


def _droppable(home: Path) -> list[Run]:
    """Ended runs, oldest first, without the newest of each workspace."""
    newest: set[Path] = set()
    found: list[Run] = []
    for run in RunStore(home).runs():
        try:
            timeline = run.timeline()
            directory = _workspace_of(home, run)
        except DamagedError:
            continue
        if directory in newest and timeline.state() in ENDED and timeline.pending_rewind() is None:
            found.append(run)
        newest.add(directory)
    return list(reversed(found))


def _workspace_of(home: Path, run: Run) -> Path:
    declaration = run.timeline().header.workspaces.get(MAIN_WORKSPACE)
    if declaration is None:
        raise DamagedError(f"the header of run {run.run_id} names no workspace")
    return workspace_directory(home, Path(declaration.root))


def _drop(home: Path, run: Run, busy: set[str]) -> bool:
    directory = _workspace_of(home, run)
    if not directory.is_dir():
        return False
    with _all_idle(home, directory) as quiet:
        if not quiet:
            busy.add(directory.name)
            return False
        going = run.directory.with_name(f"{_GOING}{run.run_id}")
        run.directory.rename(going)
    shutil.rmtree(going)
    return True


def _collect_stores(home: Path, busy: set[str], failed: dict[str, str]) -> int:
    """Collect every workspace's snapshots; `failed` is left with those that could not be written."""
    kept = {run.run_id for run in RunStore(home).runs()}
    dropped = 0
    failed.clear()
    for git_dir in sorted((home / "workspaces").glob("*/snapshots.git")):
        name = git_dir.parent.name
        try:
            with _all_idle(home, git_dir.parent) as quiet:
                if quiet:
                    dropped += _collect_store(git_dir, kept)
                else:
                    busy.add(name)
        except StorageError as error:
            failed[name] = str(error)
    return dropped


def _collect_store(git_dir: Path, kept: Collection[str]) -> int:
    with closing(SnapshotStore.open(git_dir)) as store:
        for ref in store.refs():
            if ref.startswith(_REFS) and ref.removeprefix(_REFS).split("/")[0] not in kept:
                store.delete_ref(ref)
        return collect(store).dropped


@contextmanager
def _all_idle(home: Path, directory: Path) -> Iterator[bool]:
    """Whether nobody is at work in a workspace or in a copy of it; nobody begins meanwhile."""
    with ExitStack() as stack:
        yield all(stack.enter_context(idle(each)) for each in (directory, *_forks(home, directory)))


def _forks(home: Path, directory: Path) -> Iterator[Path]:
    """The folders of the runs that work in a copy of the workspace that is kept in `directory`."""
    for run in RunStore(home).runs():
        try:
            if (run.directory / COPY).is_dir() and _workspace_of(home, run) == directory:
                yield run.directory
        except DamagedError:
            continue  # such a run goes on nowhere
