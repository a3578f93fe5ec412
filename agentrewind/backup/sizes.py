"""How much room backups take, of each run and of hooks."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from agentrewind.backup.entries import Entry
from agentrewind.backup.log import BackupLog
from agentrewind.backup.places import directory_of
from agentrewind.backup.store import BackupStore
from agentrewind.clock import Clock


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupSizes:
    """Bytes of payloads on the disk.

    Attributes:
        of_run: of each run that has backups; what two runs share counts for both.
        of_runs: of all runs.
        of_hooks: of what belongs to no run and is no run's as well.
    """

    of_run: dict[str, int] = field(default_factory=dict)
    of_runs: int = 0
    of_hooks: int = 0


def backup_sizes(home: Path, *, clock: Clock) -> BackupSizes:
    """What the backups of this home take. Raises DamagedError where the log cannot be read."""
    directory = directory_of(home)
    entries: dict[str | None, list[Entry]] = {}
    for entry in BackupLog(directory, clock).read().entries.values():
        entries.setdefault(entry.run_id, []).append(entry)
    named = {run_id: payloads_of(each) for run_id, each in entries.items()}
    store = BackupStore(directory)
    sizes = {name: store.size(name) for name in frozenset().union(*named.values())}
    of_runs = frozenset().union(*(names for run_id, names in named.items() if run_id is not None))
    return BackupSizes(
        of_run={
            run_id: sum(sizes[name] for name in names)
            for run_id, names in named.items()
            if run_id is not None
        },
        of_runs=sum(sizes[name] for name in of_runs),
        of_hooks=sum(size for name, size in sizes.items() if name not in of_runs),
    )


def payloads_of(entries: Iterable[Entry]) -> frozenset[str]:
    """The names of all payloads of these entries."""
    return frozenset(name for entry in entries if entry.captured is not None for name in entry.captured.blobs)
