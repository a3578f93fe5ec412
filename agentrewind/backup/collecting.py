"""Drops backups: those that only runs name which are gone, and, if told so, old ones that belong to no run.

What belongs to no run was made by a hook of another harness. Entries go first, in one act, and their payloads
after them: a kill in between leaves payloads that nothing names, for the next collection, and never an entry
without its own.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from agentrewind.backup.entries import Entry, State, last_restore
from agentrewind.backup.log import BackupLog
from agentrewind.backup.places import directory_of, has_backups
from agentrewind.backup.sizes import payloads_of
from agentrewind.backup.store import BackupStore
from agentrewind.backup.store_lock import alone
from agentrewind.clock import Clock
from agentrewind.records import JsonObject
from agentrewind.run_store import RunStore

PATIENCE = 5.0
"""Seconds that a collection waits for calls and restores under way."""

_ID = re.compile(rb"b\d{8}-\d{6}-[0-9a-f]{6}")
_PAYLOAD = re.compile(rb"sha256:[0-9a-f]{64}|link:[0-9a-f-]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How long backups of no run are kept.

    Attributes:
        since: a moment, as the log writes it; what is older goes. None: whatever its age.
        bytes: what their payloads may take in all; the oldest go first. None: any size.
    """

    since: str | None = None
    bytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """The entries of one call with what restores of them preserved: they go together or not at all."""

    entries: tuple[Entry, ...]

    @property
    def run_id(self) -> str | None:
        return self.entries[0].run_id

    @property
    def at(self) -> str:
        """When the newest of them was made."""
        return max(entry.at for entry in self.entries)

    @property
    def interrupted(self) -> bool:
        """A restore was begun, and nobody knows how far it came."""
        return any(entry.state is State.UNKNOWN for entry in self.entries)


@dataclass(frozen=True, slots=True, kw_only=True)
class DroppedBackups:
    """What went, or would go. `bytes` are those of payloads; `busy`: nothing went, a call was under way."""

    entries: tuple[Entry, ...] = ()
    bytes: int = 0
    busy: bool = False

    def __add__(self, other: DroppedBackups) -> DroppedBackups:
        return DroppedBackups(
            entries=self.entries + other.entries,
            bytes=self.bytes + other.bytes,
            busy=self.busy or other.busy,
        )

    def to_json(self) -> list[JsonObject]:
        """As `gc --json` names them."""
        return [
            {"id": entry.id, "run_id": entry.run_id, "at": entry.at, "what": entry.name}
            for entry in self.entries
        ]


def collect_backups(home: Path, limits: Limits, *, clock: Clock) -> DroppedBackups:
    """Drop what no kept run, no undo and no interrupted restore needs, and payloads that nothing names.

    Raises:
        DamagedError: the log cannot be read; nothing was dropped. A damaged line stays, with what it names.
        StorageError: the store cannot be written.
    """
    if not has_backups(home):
        return DroppedBackups()
    directory = directory_of(home)
    chosen: list[Entry] = []

    def choose(entries: Mapping[str, Entry]) -> Collection[str]:
        chosen.extend(droppable(home, entries, limits))
        return {entry.id for entry in chosen}

    with alone(directory, seconds=PATIENCE) as quiet:
        if not quiet:
            return DroppedBackups(busy=True)
        kept = BackupLog(directory, clock).drop(choose)
        freed = BackupStore(directory).sweep({name.decode() for name in _PAYLOAD.findall(kept)})
    return DroppedBackups(entries=tuple(chosen), bytes=freed)


def foresee_backups(
    home: Path, limits: Limits, *, clock: Clock, without: Collection[str] = ()
) -> DroppedBackups:
    """What `collect_backups` would drop, were the runs in `without` gone, without doing it."""
    if not has_backups(home):
        return DroppedBackups()
    directory = directory_of(home)
    entries = BackupLog(directory, clock).read().entries
    gone = droppable(home, entries, limits, without=without)
    ids = {entry.id for entry in gone}
    left = payloads_of(entry for entry in entries.values() if entry.id not in ids)
    store = BackupStore(directory)
    return DroppedBackups(
        entries=tuple(gone), bytes=sum(store.size(name) for name in payloads_of(gone) - left)
    )


def droppable(
    home: Path, entries: Mapping[str, Entry], limits: Limits, *, without: Collection[str] = ()
) -> list[Entry]:
    """The entries that nobody needs, oldest first."""
    undoable = {entry.id for entry in last_restore(entries.values())}
    groups = [
        group
        for group in groups_of(entries)
        if not group.interrupted and not any(entry.id in undoable for entry in group.entries)
    ]
    gone = [*_orphans(home, groups, without), *_old(home, entries, groups, limits)]
    ids = {entry.id for group in gone for entry in group.entries}
    return [entry for entry in entries.values() if entry.id in ids]


def groups_of(entries: Mapping[str, Entry]) -> list[Group]:
    """All entries, each in one group, in the log's order."""
    found: dict[tuple[str | None, ...], list[Entry]] = {}
    for entry in entries.values():
        root = entry
        while root.undoes is not None and root.undoes in entries:
            root = entries[root.undoes]
        found.setdefault(root.occasion, []).append(entry)
    return [Group(entries=tuple(members)) for members in found.values()]


def _orphans(home: Path, groups: Iterable[Group], without: Collection[str]) -> list[Group]:
    """Those of runs that are gone, and that no other run, a fork of one for instance, names anywhere."""
    kept = {str(run.run_id) for run in RunStore(home).runs()} - {*without}
    found = [group for group in groups if group.run_id is not None and group.run_id not in kept]
    if not found or not (home / "runs").is_dir():
        return found
    # hidden folders as well: a fork that is being made names what its run names
    folders = [path for path in (home / "runs").iterdir() if path.is_dir() and path.name not in without]
    named = {each for folder in folders for each in _named_in(folder)}
    return [group for group in found if not any(entry.id in named for entry in group.entries)]


def _named_in(run: Path) -> Iterator[str]:
    """The ids of backups in a run's files; what only looks like one does no harm."""
    for path in (*run.glob("segment-*"), *run.glob("rewind-*"), *run.glob("blobs/*")):
        try:
            with path.open("rb") as file:
                for line in file:
                    yield from (each.decode() for each in _ID.findall(line))
        except FileNotFoundError:
            continue  # the unfinished file of a live process, or of a run that another collection has dropped


def _old(
    home: Path, entries: Mapping[str, Entry], groups: Iterable[Group], limits: Limits
) -> Iterator[Group]:
    """Those of no run that are past a limit, oldest first."""
    free = sorted((group for group in groups if group.run_id is None), key=lambda group: group.at)
    store = BackupStore(directory_of(home))
    uses = Counter(
        name for entry in entries.values() if entry.run_id is None for name in payloads_of([entry])
    )
    size = sum(map(store.size, uses))
    for group in free:
        aged = limits.since is not None and group.at < limits.since
        if not aged and (limits.bytes is None or size <= limits.bytes):
            continue
        for name in (each for entry in group.entries for each in payloads_of([entry])):
            uses[name] -= 1
            size -= 0 if uses[name] else store.size(name)
        yield group
