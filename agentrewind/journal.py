"""One segment of a run: a file of sealed lines that is only ever appended to."""

from __future__ import annotations

import os
import re
import threading
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from agentrewind.blobs import Blobs
from agentrewind.codec import GetBlob, PutBlob, encode
from agentrewind.durable import create_file, make_directory, storage_error
from agentrewind.errors import DamagedError, StorageError
from agentrewind.records import Header, Record
from agentrewind.salvage import CANCEL, Damage, Salvage
from agentrewind.sealed_line import check_seal

__all__ = [
    "Damage",
    "SegmentRead",
    "SegmentTail",
    "SegmentWriter",
    "create_segment",
    "read_segment",
    "segment_name",
    "segment_number",
    "tail_reader",
]

_NAME = re.compile(r"segment-(\d{4,})\.jsonl")
_CHUNK = 64 * 1024


def segment_name(number: int) -> str:
    """The file name of a segment: `segment-0003.jsonl`."""
    return f"segment-{number:04d}.jsonl"


def segment_number(path: Path) -> int | None:
    """The number in a segment's file name, None for any other file."""
    match = _NAME.fullmatch(path.name)
    return int(match[1]) if match else None


def create_segment(path: Path, header: Header, *, put_blob: PutBlob | None = None) -> None:
    """Makes a segment that holds its header, whole or not at all, durable on return.

    Raises ProtectedError where the file exists already, StorageError where it cannot be written.
    """
    make_directory(path.parent)
    create_file(path, encode(header, put_blob=put_blob or _blobs_beside(path).put))


class SegmentWriter:
    """Appends records to a segment that exists; safe to share between threads.

    After a failed `append` the file ends as it did before, or the half line is kept apart from
    whatever is appended next; the record was not written.
    """

    def __init__(self, path: Path, *, put_blob: PutBlob | None = None) -> None:
        self._path = path
        self._put_blob = put_blob or _blobs_beside(path).put
        self._lock = threading.Lock()
        self._end = -1
        self._failed: str | None = None
        try:
            self._file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC)
        except FileNotFoundError as error:
            raise DamagedError(f"the segment {path} is missing") from error
        except OSError as error:
            raise storage_error("append to", path, error) from error

    def append(self, record: Record, *, durable: bool) -> None:
        """Writes the record as one line, with a single write.

        With `durable` this record and all before it survive a loss of power once `append` returns;
        without, they survive the death of the process. Raises StorageError where the line could
        not be written, UsageError where the record holds what cannot be recorded.
        """
        line = encode(record, put_blob=self._put_blob)
        with self._lock:
            if self._failed is not None:
                raise StorageError(self._failed)
            self._write(line)
            if durable:
                self._sync()

    def sync(self) -> None:
        """Makes all that was appended so far durable."""
        with self._lock:
            self._sync()

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _write(self, line: bytes) -> None:
        try:
            before = os.fstat(self._file).st_size
            # somebody else may have appended, or died while doing so, since we last looked
            data = line if before == self._end else _terminator(self._file, before) + line
            self._end = -1
            written = os.write(self._file, data)
            if written != len(data):
                self._take_back(before, written)
                raise StorageError(
                    f"cannot append to {self._path}: the disk took {written} of {len(data)} bytes; "
                    "make room, then resume the run"
                )
        except OSError as error:
            raise storage_error("append to", self._path, error) from error
        self._end = before + len(data)

    def _take_back(self, before: int, written: int) -> None:
        """Removes a half line; where that fails, the next append finds it and keeps clear of it."""
        if os.fstat(self._file).st_size == before + written:
            os.ftruncate(self._file, before)

    def _sync(self) -> None:
        try:
            os.fdatasync(self._file)
        except OSError as error:
            # the kernel may have dropped the data: nothing appended later could be relied on
            failure = storage_error("make durable", self._path, error)
            self._failed = str(failure)
            raise failure from error


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentRead:
    """All that could be read of one segment; `records` leaves out the header and has byte offsets."""

    segment: int
    header: Header | None
    records: tuple[tuple[int, Record], ...]
    damages: tuple[Damage, ...]


def read_segment(path: Path, *, get_blob: GetBlob | None = None) -> SegmentRead:
    """Reads every whole record, before and after any damage, and names every damaged span.

    Raises UnsupportedFormatError where a newer version wrote the segment, DamagedError where the
    file cannot be read at all; damage inside it raises nothing.
    """
    number = segment_number(path) or 0
    try:
        data = path.read_bytes()
    except OSError as error:
        raise DamagedError(f"the segment {path} cannot be read: {error.strerror or error}") from error
    salvage = Salvage(number, get_blob=get_blob or _blobs_beside(path).get)
    _feed_lines(salvage, data, offset=0)
    if data and not data.endswith(b"\n"):
        start = data.rfind(b"\n") + 1
        salvage.feed(data[start:], offset=start, whole=False)
    return _segment_read(number, salvage)


class SegmentTail:
    """Follows a segment that another process is writing."""

    def __init__(self, path: Path, *, get_blob: GetBlob | None = None) -> None:
        self._path = path
        self._offset = 0
        self._salvage = Salvage(segment_number(path) or 0, get_blob=get_blob or _blobs_beside(path).get)
        self._given = 0

    def poll(self) -> tuple[Record, ...]:
        """The whole records, header included, that have appeared since the last call.

        A half line at the end waits until it is whole; damaged lines are passed over; a file that
        is not there yet holds nothing.
        """
        try:
            with self._path.open("rb") as file:
                file.seek(self._offset)
                data = file.read()
        except FileNotFoundError:
            return ()
        data = data[: data.rfind(b"\n") + 1]
        _feed_lines(self._salvage, data, offset=self._offset)
        self._offset += len(data)
        new = self._salvage.records[self._given :]
        self._given += len(new)
        return tuple(record for _, record in new)

    def so_far(self) -> SegmentRead:
        """Everything up to the last poll; of a half line at the end nothing is said."""
        return _segment_read(segment_number(self._path) or 0, self._salvage)


def tail_reader(path: Path, *, get_blob: GetBlob | None = None) -> SegmentTail:
    """A follower of the segment, from its first record on."""
    return SegmentTail(path, get_blob=get_blob)


def _feed_lines(salvage: Salvage, data: bytes, *, offset: int) -> None:
    """Feeds all lines that end with a newline."""
    start = 0
    while (end := data.find(b"\n", start)) >= 0:
        salvage.feed(data[start:end], offset=offset + start, whole=True)
        start = end + 1


def _segment_read(number: int, salvage: Salvage) -> SegmentRead:
    header: Header | None = None
    records = salvage.records
    damages = salvage.damages
    if records and isinstance(records[0][1], Header):
        header, records = records[0][1], records[1:]
    elif not any(damage.offset == 0 for damage in damages):
        missing = Damage(segment=number, offset=0, length=0, reason="the segment has no header")
        damages = [missing, *damages]
    return SegmentRead(segment=number, header=header, records=tuple(records), damages=tuple(damages))


def _blobs_beside(path: Path) -> Blobs:
    return Blobs(path.parent / "blobs")


def _terminator(file: int, size: int) -> bytes:
    """What must stand before the next line: nothing, or the end of a line that has none."""
    if size == 0 or os.pread(file, 1, size - 1) == b"\n":
        return b""
    last = b""
    while size > 0 and b"\n" not in last:
        step = min(_CHUNK, size)
        size -= step
        last = os.pread(file, step, size) + last
    try:
        check_seal(last[last.rfind(b"\n") + 1 :])
    except DamagedError:
        return CANCEL + b"\n"
    return b"\n"
