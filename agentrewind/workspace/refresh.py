"""Keeps the inventory of a workspace up to date at the cost of what changed.

Hints of a watcher say where to look. What hints cannot tell is looked at besides: hard links (a write through
another name), files that a process has mapped, files edited within the file system's clock tick. Now and then
everything is walked as an audit; what it finds beyond the hints is counted as a disagreement.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from agentrewind.clock import Clock
from agentrewind.workspace.contents import Sink
from agentrewind.workspace.filesystems import local_devices
from agentrewind.workspace.inventory import Directory, FileEntry, Inventory, find_present
from agentrewind.workspace.mappings import shared_mappings
from agentrewind.workspace.policy import Policy
from agentrewind.workspace.scan import LostTrackError, Scanner
from agentrewind.workspace.trees import write_trees
from agentrewind.workspace.watch import Doubts, Watcher

LOCAL_WINDOW_NS = 20_000_000
"""More than two ticks of any kernel's clock: a file stamped earlier is not still within its tick."""

REMOTE_WINDOW_NS = 2_000_000_000

_AUDIT_SHARE = 0.005
_MAPPINGS_SHARE = 0.002


@dataclass(slots=True, kw_only=True)
class Tally:
    """How the inventory was kept: full walks, looks by hint, audits and what these found amiss."""

    walks: int = 0
    hinted: int = 0
    audits: int = 0
    disagreements: int = 0


class Refresher:
    """Brings inventories of one root up to date.

    Args:
        handle: descriptor of the root.
        root: its path, only to find it in the lists of mapped files.
        policy: the path rules.
        clock: measures durations, so that audits cost a fixed small share of the time.
        watch: whether to ask the kernel for hints.
    """

    def __init__(self, handle: int, root: Path, policy: Policy, *, clock: Clock, watch: bool) -> None:
        self._handle = handle
        self._root = root
        self._policy = policy
        self._clock = clock
        devices = local_devices()
        local = os.fstat(handle).st_dev in devices
        self._window_ns = LOCAL_WINDOW_NS if local else REMOTE_WINDOW_NS
        self._watcher = Watcher(local_devices=devices) if watch and local else None
        self._inventory: Inventory | None = None
        self._doubtful: set[tuple[Directory, str]] = set()
        self._late: Doubts = {}
        self._thorough = False
        self._mapped: frozenset[bytes] = frozenset()
        self._mappings_due = float("-inf")
        self._audit_due = float("inf")
        self.tally = Tally()

    def close(self) -> None:
        if self._watcher is not None:
            self._watcher.close()

    @property
    def watching(self) -> str:
        """How changes are found, for people."""
        if self._watcher is None:
            return "by looking at everything"
        return f"by looking at everything: {self._watcher.broken}" if self._watcher.broken else "by inotify"

    def distrust(self) -> None:
        """Walk everything next time, whatever the hints say."""
        self._thorough = True

    def refresh(self, inventory: Inventory, sink: Sink, *, late: Callable[[], bool] = lambda: False) -> bool:
        """Make the inventory what the disk is; whether that changed anything that a snapshot holds.

        Objects of what was read, and perhaps some trees, go to the sink. Once `late` says so, whatever is
        not known yet is put off, and marked as left out for that reason.
        """
        # the clock that stamps files, whatever clock the run has
        stamp = time.clock_gettime_ns(time.CLOCK_REALTIME) - self._window_ns
        doubts = self._hints(inventory)
        if doubts is not None:
            self._add_other_doubts(inventory, doubts)
            if not doubts and self._clock.monotonic() < self._audit_due:
                self.tally.hinted += 1
                return False
        elif inventory is self._inventory:
            self._distrust_mapped(inventory)
        scanner = Scanner(
            self._handle,
            inventory,
            self._policy,
            sink,
            trusted_before_ns=stamp,
            observer=self._watcher,
            late=late,
        )
        changed = self._scan(inventory, scanner, sink, doubts)
        self._doubtful = scanner.doubtful
        self._inventory = inventory
        self._drop(inventory)
        return changed

    def _hints(self, inventory: Inventory) -> Doubts | None:
        if self._watcher is None:
            return None
        doubts = self._watcher.take()
        if inventory is not self._inventory:
            self._watcher.restart()
            self._late = {}
            return None
        if doubts is not None:
            for directory, names in self._late.items():
                for name, renewed in names.items():
                    known = doubts.setdefault(directory, {})
                    known[name] = renewed or known.get(name, False)
        self._late = {}
        if self._thorough:
            self._thorough = False
            return None
        return doubts

    def _scan(self, inventory: Inventory, scanner: Scanner, sink: Sink, doubts: Doubts | None) -> bool:
        if doubts is not None:
            try:
                scanner.some(doubts)
                self.tally.hinted += 1
            except LostTrackError:
                doubts = None
        if doubts is None:
            self._walk(scanner)
            self.tally.walks += 1
        changed = inventory.root.tree is None
        if doubts is not None and self._clock.monotonic() >= self._audit_due and not scanner.late():
            # trees are made so that whatever the audit changes shows
            write_trees(inventory.root, sink)
            self._audit(inventory, scanner)
        return changed or inventory.root.tree is None

    def _walk(self, scanner: Scanner) -> None:
        began = self._clock.monotonic()
        if self._watcher is not None:
            self._watcher.start()
        scanner.everything()
        ended = self._clock.monotonic()
        self._audit_due = ended + (ended - began) / _AUDIT_SHARE if ended > began else float("inf")

    def _audit(self, inventory: Inventory, scanner: Scanner) -> None:
        """Walk everything although hints were complete, and see whether they were."""
        scanner.late = lambda: False  # an audit may not leave out what hints told of in time
        self._walk(scanner)
        self.tally.audits += 1
        self._late = (self._watcher.take() if self._watcher is not None else None) or {}
        # what changed since the hints were taken is told of by newer ones, and is no disagreement
        if inventory.root.tree is None and not self._late:
            self.tally.disagreements += 1

    def _add_other_doubts(self, inventory: Inventory, doubts: Doubts) -> None:
        for directory, name in self._doubtful:
            doubts.setdefault(directory, {}).setdefault(name, False)
        for directory, linked in inventory.linked.items():
            names = doubts.setdefault(directory, {})
            for name in linked:
                names.setdefault(name, False)
        for directory, name in self._distrust_mapped(inventory):
            doubts.setdefault(directory, {}).setdefault(name, False)

    def _distrust_mapped(self, inventory: Inventory) -> list[tuple[Directory, str]]:
        """Files that a process may change through memory: read again whatever their stat data say."""
        now = self._clock.monotonic()
        if now >= self._mappings_due:
            former = self._mapped
            self._mapped = shared_mappings(self._root)
            ended = self._clock.monotonic()
            self._mappings_due = ended + (ended - now) / _MAPPINGS_SHARE
            paths = self._mapped | former  # once more after the mapping is gone
        else:
            paths = self._mapped
        found = []
        for path in paths:
            parent, _, name = path.rpartition(b"/")
            directory = find_present(inventory.root, parent) if parent else inventory.root
            text = os.fsdecode(name)
            if isinstance(directory, Directory):
                entry = directory.children.get(text)
                if isinstance(entry, FileEntry):
                    entry.trusted = False
                    found.append((directory, text))
        return found

    def _drop(self, inventory: Inventory) -> None:
        if self._watcher is not None:
            for directory in inventory.dropped:
                if directory.parent is None:
                    for node in directory.walk():
                        self._watcher.forget(node)
        inventory.dropped.clear()
