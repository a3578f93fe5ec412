"""The backup log: one file of sealed lines that any number of runs and hooks append to, one at a time.

Lines are never changed. Dropping entries puts another file in its place, whose first line differs.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from agentrewind.backup.entries import Entry, Line, fold_in, last_call
from agentrewind.backup.entry_lines import FORMAT, read_line, write_line
from agentrewind.clock import Clock
from agentrewind.durable import make_directory, storage_error, sync_directory, write_file
from agentrewind.errors import DamagedError, StorageError, UnsupportedFormatError, UsageError
from agentrewind.jsonform import dump_plain, from_plain, to_plain
from agentrewind.records import Json, JsonObject
from agentrewind.sealed_line import check_seal, seal, unseal

_NAME = "log.jsonl"
_CHUNK = 64 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class LogRead:
    """All entries that could be read, oldest first, and what is wrong with each other line."""

    entries: dict[str, Entry]
    damages: tuple[str, ...]


@dataclass(slots=True)
class _Known:
    """What was read of the log so far; whole lines are never changed any more."""

    first: bytes = b""
    offset: int = 0
    number: int = 0
    entries: dict[str, Entry] = field(default_factory=dict)
    damages: list[str] = field(default_factory=list)

    def take(self, data: bytes, path: str) -> None:
        """Read on. Raises UnsupportedFormatError."""
        for raw in data.splitlines(keepends=True):
            try:
                line = _decode(raw, first=self.number == 0)
            except UnsupportedFormatError:
                raise
            except DamagedError as error:
                line = None
                self.damages.append(f"line {self.number + 1} of {path}: {error}")
            self.first = self.first or raw
            self.number += 1
            self.offset += len(raw)
            if line is not None:
                fold_in(self.entries, line)


class BackupLog:
    """The log in a directory; it is made by the first `append`."""

    def __init__(self, directory: Path, clock: Clock) -> None:
        self._directory = directory
        self._path = directory / _NAME
        self._clock = clock
        self._known = _Known()
        self._reading = threading.Lock()

    def new_id(self) -> str:
        """A fresh id that sorts by time: `b20260131-080000-1f3a`."""
        moment = self._clock.now()
        day, hour = moment[:10].replace("-", ""), moment[11:19].replace(":", "")
        return f"b{day}-{hour}-{secrets.token_hex(3)}"

    def append(self, *lines: Line) -> None:
        """Write the lines together; they are durable on return. Raises StorageError."""
        data = b"".join(_encode(write_line(line)) for line in lines)
        try:
            make_directory(self._directory)
            with self._locked() as file:
                size = _whole(file)
                if size == 0:
                    data = _header(self._clock) + data
                written = os.pwrite(file, data, size)
                if written != len(data):
                    os.ftruncate(file, size)
                    raise StorageError(f"cannot append to {self._path}: the disk is full; make room first")
                os.fsync(file)
        except OSError as error:
            raise storage_error("append to", self._path, error) from error

    def read(self) -> LogRead:
        """Every entry as it is now. Raises DamagedError where the file cannot be read at all."""
        with self._reading:
            return self._read_on()

    def _read_on(self) -> LogRead:
        try:
            with self._path.open("rb") as file:
                first = file.read(len(self._known.first))
                if first != self._known.first or os.fstat(file.fileno()).st_size < self._known.offset:
                    self._known = _Known()  # another file stands in its place
                file.seek(self._known.offset)
                data = file.read()
        except FileNotFoundError:
            self._known = _Known()
            return LogRead(entries={}, damages=())
        except OSError as error:
            raise DamagedError(f"{self._path} cannot be read: {error.strerror or error}") from error
        self._known.take(data[: data.rfind(b"\n") + 1], str(self._path))
        return LogRead(entries=dict(self._known.entries), damages=tuple(self._known.damages))

    def drop(self, choose: Callable[[Mapping[str, Entry]], Collection[str]]) -> bytes:
        """Take out the entries that `choose` names, at once or not at all, durable on return.

        Nobody appends while it chooses. All other lines stay as they are, damaged ones too; returns their
        bytes. Raises StorageError, or DamagedError where the file cannot be read.
        """
        if not self._path.exists():
            return b""
        with self._locked() as file:
            for half in self._directory.glob(f".{_NAME}.*.tmp"):
                half.unlink()  # of one that died here
            data = os.pread(file, _whole(file), 0)
            gone = choose(self.read().entries)
            if not gone:
                return data
            kept = b"".join(line for line in data.splitlines(keepends=True) if _stays(line, gone))
            # a reader knows by the first line that what it has read no longer stands there
            write_file(self._path, _header(self._clock, rewritten=secrets.token_hex(8)) + kept)
            return kept

    def entry(self, name: str) -> Entry:
        """The entry of this id, of a unique beginning of one, or the newest one of the last call for `last`.

        Raises UsageError where there is none, or several.
        """
        return self.named(name)[-1]

    def named(self, name: str) -> tuple[Entry, ...]:
        """The entry of this id or of a unique beginning of one; for `last` all of the last call.

        Raises UsageError where there is none, or several.
        """
        entries = self.read().entries
        if name == "last":
            found = [each.id for each in last_call(entries.values())]
            if found:
                return tuple(entries[each] for each in found)
        found = [name] if name in entries else [each for each in entries if each.startswith(name)]
        if len(found) != 1:
            several = f"; it could be {', '.join(found[:5])}" if found else ""
            raise UsageError(f"no backup is called {name!r}{several} (see `agentrewind backup log`)")
        return (entries[found[0]],)

    def of_run(self, run_id: str, nodes: Iterable[str] | None = None) -> tuple[Entry, ...]:
        """The entries of a run's nodes, oldest first, without those that a restore made."""
        chosen = None if nodes is None else set(nodes)
        return tuple(
            entry
            for entry in self.read().entries.values()
            if entry.run_id == run_id and entry.undoes is None and (chosen is None or entry.node in chosen)
        )

    @contextmanager
    def _locked(self) -> Iterator[int]:
        new = not self._path.exists()
        file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
            while not _stands_at(self._path, file):
                os.close(file)  # entries were dropped meanwhile: the log is another file by now
                file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
                fcntl.flock(file, fcntl.LOCK_EX)
            if new:
                sync_directory(self._directory)
            yield file
        finally:
            os.close(file)


def _header(clock: Clock, **more: Json) -> bytes:
    return _encode({"kind": "header", "format": FORMAT, "created_at": clock.now(), **more})


def _stays(raw: bytes, gone: Collection[str]) -> bool:
    """Whether a line is none of the header and of those about these entries; a damaged one stays."""
    try:
        line = _decode(raw, first=False)
    except DamagedError:
        return True
    if line is None:  # the header, or of a kind that only a later version knows
        return unseal(raw).get("kind") != "header"
    return line.id not in gone


def _stands_at(path: Path, file: int) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(file))
    except FileNotFoundError:
        return False


def _encode(raw: JsonObject) -> bytes:
    return seal(dump_plain(to_plain(raw, where="backup"), where="backup"))


def _decode(raw: bytes, *, first: bool) -> Line | None:
    found = from_plain(unseal(raw))
    if not isinstance(found, dict):
        raise DamagedError("the line is no JSON object")
    if first and found.get("kind") == "header":
        version = found.get("format")
        if not isinstance(version, int) or version > FORMAT:
            raise UnsupportedFormatError(version if isinstance(version, int) else -1, FORMAT)
        return None
    return read_line(found)


def _whole(file: int) -> int:
    """The size of the file without a half line that a writer which died has left; nobody relied on it."""
    size = os.fstat(file).st_size
    if size == 0 or os.pread(file, 1, size - 1) == b"\n":
        return size
    tail, start = b"", size
    while start > 0 and b"\n" not in tail:
        step = min(_CHUNK, start)
        start -= step
        tail = os.pread(file, step, start) + tail
    half = tail[tail.rfind(b"\n") + 1 :]
    try:
        check_seal(half)
    except DamagedError:
        os.ftruncate(file, size - len(half))
        return size - len(half)
    os.pwrite(file, b"\n", size)
    return size + 1


def newest_first(entries: Sequence[Entry], order: Sequence[str]) -> list[Entry]:
    """The entries in the reverse of the log's order."""
    place = {each: number for number, each in enumerate(order)}
    return sorted(entries, key=lambda entry: place[entry.id], reverse=True)
