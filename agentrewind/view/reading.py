"""Keeps runs in memory, and reads again only what has changed on disk since."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TypeAlias

from agentrewind.commands.alive import is_running
from agentrewind.errors import DamagedError
from agentrewind.journal import SegmentRead, SegmentTail, read_segment, tail_reader
from agentrewind.lineage import missing_segment
from agentrewind.provenance import is_recorded
from agentrewind.records import JsonObject, LlmNode, RecordUid, RewindDone
from agentrewind.rewind.memory import Memory, position
from agentrewind.rewind.resume import chain
from agentrewind.run_files import declared_root, snapshot_store
from agentrewind.run_store import Run, RunStore
from agentrewind.timeline import INTERRUPTED, Timeline
from agentrewind.view.rows import Rows, rows_of
from agentrewind.workspace.snapshots import SnapshotStore

KEPT = 4
"""Runs that are kept in memory."""

_ALIVE_S = 2.0

Signature: TypeAlias = tuple[tuple[int, int, int], ...]
"""Number, size and time of change of each segment."""

Clean: TypeAlias = Callable[[tuple[SegmentRead, ...]], tuple[SegmentRead, ...]]


class Reading:
    """A run as it stood at one moment. `version` differs whenever anything of it does."""

    def __init__(
        self, run: Run, reads: tuple[SegmentRead, ...], timeline: Timeline, *, running: bool, version: str
    ) -> None:
        self.run = run
        self.running = running
        self.version = version
        self.timeline = timeline
        self._reads = reads
        self._lock = threading.Lock()
        self._memories: dict[int, Memory | None] = {}

    @property
    def run_id(self) -> str:
        return self.run.run_id

    @cached_property
    def rows(self) -> Rows:
        """Everything that happened, in time order, laid out as a tree."""
        reads = self._reads
        if self.running:
            # the last line of a run under way is being written, not damaged
            last = reads[-1]
            reads = (*reads[:-1], replace(last, damages=tuple(each for each in last.damages if each.lost)))
        return rows_of(reads, self.timeline)

    @property
    def state(self) -> str:
        """As listings name it."""
        return "running" if self.running else self.timeline.state()

    @property
    def recorded(self) -> bool:
        """Whether the layer saw the run, so that there may be files to restore and requests to go on from."""
        try:
            return is_recorded(self.timeline.header)
        except DamagedError:
            return True

    def messages(self, uid: RecordUid) -> tuple[JsonObject, ...]:
        """The full message list of an LLM node; safe to ask for from several threads."""
        with self._lock:
            return self.timeline.messages(uid)

    def memory_of(self, node: LlmNode) -> tuple[Memory, int] | None:
        """The rewind memory that the node's request carried, and before which message it stood."""
        segment = self.timeline.segment_of(node.record_uid)
        with self._lock:
            if segment not in self._memories:
                self._memories[segment] = self._memory(segment)
            memory = self._memories[segment]
            if memory is None or memory.conversation != node.conversation:
                return None
            return memory, position(self.timeline.messages(node.record_uid), memory)

    def _memory(self, segment: int) -> Memory | None:
        done = self._last_rewind(segment)
        if done is None:
            return None
        text, role = done.report.get("memory_message"), done.report.get("memory_role")
        target = self.timeline.nodes.get(done.target)
        if not isinstance(text, str) or not isinstance(target, LlmNode):
            return None
        messages = self.timeline.messages(done.target)
        return Memory(
            text=text,
            role=role if isinstance(role, str) else "system",
            conversation=target.conversation,
            index=len(messages),
            anchor=messages[-1] if messages else None,
        )

    def _last_rewind(self, segment: int) -> RewindDone | None:
        for number in chain(self.timeline, segment):
            for event in self.timeline.events(number):
                if isinstance(event, RewindDone) and event.segment == number:
                    return event
        return None


@dataclass(slots=True)
class _Kept:
    signature: Signature
    reads: dict[int, SegmentRead]
    reading: Reading
    looked: float
    tails: dict[int, SegmentTail]

    def facts(self, number: int) -> tuple[int, int] | None:
        """Size and time of change of a segment when it was read."""
        return next(((size, changed) for each, size, changed in self.signature if each == number), None)


class Library:
    """The runs below a home directory; safe to share between threads."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.store = RunStore(home)
        self._kept: OrderedDict[str, _Kept] = OrderedDict()
        self._lock = threading.RLock()
        self._stores: dict[Path, SnapshotStore] = {}
        self._stores_lock = threading.RLock()

    def read(self, run_id: str) -> Reading:
        """The run as it stands now.

        Raises:
            UnknownRunError: there is none of this id.
            DamagedError: it cannot be opened at all.
        """
        run = self.store.open(run_id)
        with self._lock:
            present = signature(run)
            kept = self._kept.get(run.run_id)
            if kept is not None and self._has_ended(kept):
                kept = None  # what was taken for a line being written is a damage now
            elif kept is not None and kept.signature == present:
                self._kept.move_to_end(run.run_id)
                return kept.reading
            fresh = self._read(run, present, kept)
            self._kept[run.run_id] = fresh
            self._kept.move_to_end(run.run_id)
            while len(self._kept) > KEPT:
                self._kept.popitem(last=False)
            return fresh.reading

    def fresh(self, run_id: str, *, clean: Clean) -> Reading:
        """The run as it stands now, its records changed by `clean` before anything is made of them."""
        run = self.store.open(run_id)
        reads = run.segments_read()
        if not reads:
            raise DamagedError(f"the run {run.run_id} has no segments: {run.directory} holds none")
        running = is_running_now(self.home, Timeline(reads))
        cleaned = clean(reads)
        return Reading(run, cleaned, Timeline(cleaned), running=running, version="")

    def _read(self, run: Run, present: Signature, kept: _Kept | None) -> _Kept:
        if not present:
            raise DamagedError(f"the run {run.run_id} has no segments: {run.directory} holds none")
        tails = dict(kept.tails) if kept else {}
        reads = {
            number: _segment(run, kept, tails, number, size, changed) for number, size, changed in present
        }
        every = tuple(reads.get(number) or missing_segment(number) for number in range(max(reads) + 1))
        timeline = Timeline(every)
        running = is_running_now(self.home, timeline)
        version = _version(present, running=running)
        reading = Reading(run, every, timeline, running=running, version=version)
        return _Kept(present, reads, reading, time.monotonic(), tails)

    def _has_ended(self, kept: _Kept) -> bool:
        """Whether a run that went on no longer does; asked now and then, and only of such a run."""
        if not kept.reading.running or time.monotonic() - kept.looked < _ALIVE_S:
            return False
        kept.looked = time.monotonic()
        return not is_running_now(self.home, kept.reading.timeline)

    @contextmanager
    def snapshots(self, reading: Reading) -> Iterator[SnapshotStore]:
        """The snapshots of the run's workspace, for one thread at a time.

        Raises DamagedError where they are gone.
        """
        path = snapshot_store(self.home, declared_root(reading.timeline))
        with self._stores_lock:
            if path not in self._stores:
                self._stores[path] = SnapshotStore.open(path)
            yield self._stores[path]

    def close(self) -> None:
        """Close the stores."""
        with self._stores_lock:
            while self._stores:
                self._stores.popitem()[1].close()


def _segment(
    run: Run, kept: _Kept | None, tails: dict[int, SegmentTail], number: int, size: int, changed: int
) -> SegmentRead:
    """A segment as it is now; of one that a live run has added to, only what is new is read."""
    path = run.segment_path(number)
    known = kept.facts(number) if kept else None
    if kept is not None and known == (size, changed):
        return kept.reads[number]
    if kept is None or known is None or not kept.reading.running or size < known[0]:
        tails.pop(number, None)
        return read_segment(path, get_blob=run.blobs.get)
    tail = tails.setdefault(number, tail_reader(path, get_blob=run.blobs.get))
    tail.poll()
    return tail.so_far()


def is_running_now(home: Path, timeline: Timeline) -> bool:
    """Whether a live process is at work on the run; False where the log does not even name its workspace."""
    try:
        return is_running(home, timeline)
    except DamagedError:
        return False


def signature(run: Run) -> Signature:
    """Changes whenever the run's log does."""
    found: list[tuple[int, int, int]] = []
    for number in run.segment_numbers():
        facts = run.segment_path(number).stat()
        found.append((number, facts.st_size, facts.st_mtime_ns))
    return tuple(found)


def _version(present: Signature, *, running: bool) -> str:
    parts = [f"{number}.{size:x}.{changed:x}" for number, size, changed in present[-2:]]
    return "-".join([str(len(present)), *parts, "live" if running else INTERRUPTED])
