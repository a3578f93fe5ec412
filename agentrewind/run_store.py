"""Runs on disk: where they are kept, and the files of one run."""

from __future__ import annotations

import difflib
import re
import secrets
import stat
from datetime import UTC, datetime
from pathlib import Path

import orjson

from agentrewind.blobs import Blobs
from agentrewind.codec import decode_document, encode_document
from agentrewind.durable import make_directory, storage_error, sync_directory, write_file
from agentrewind.errors import DamagedError, ProtectedError, UnknownRunError, UsageError
from agentrewind.journal import (
    SegmentRead,
    SegmentWriter,
    create_segment,
    read_segment,
    segment_name,
    segment_number,
)
from agentrewind.lineage import missing_segment
from agentrewind.records import Header, JsonObject, RunId
from agentrewind.timeline import Timeline

RUN_ID = re.compile(r"(?!last\Z)[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
"""What a run may be called; `last` stands for the newest one wherever a run is named."""

_REWIND = "rewind"
_HEAD_BYTES = 256 * 1024


class Run:
    """The files of one run. Nothing is read before it is asked for, and nothing is kept in memory."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.run_id = RunId(directory.name)
        self.blobs = Blobs(directory / "blobs")

    def segment_path(self, number: int) -> Path:
        return self.directory / segment_name(number)

    def segment_numbers(self) -> tuple[int, ...]:
        """The segments that have a file, ascending."""
        found = (segment_number(path) for path in _entries(self.directory))
        return tuple(sorted(number for number in found if number is not None))

    def segments_read(self) -> tuple[SegmentRead, ...]:
        """Every segment up to the last one, with a damage in the place of a file that is gone.

        Raises UnsupportedFormatError where a newer version wrote one of them.
        """
        there = self.segment_numbers()
        return tuple(
            read_segment(self.segment_path(number), get_blob=self.blobs.get)
            if number in there
            else missing_segment(number)
            for number in range(max(there, default=-1) + 1)
        )

    def timeline(self) -> Timeline:
        """The run as it stands on disk now. Raises DamagedError where it has no segment at all."""
        reads = self.segments_read()
        if not reads:
            raise DamagedError(f"the run {self.run_id} has no segments: {self.directory} holds none")
        return Timeline(reads)

    def writer(self, segment: int) -> SegmentWriter:
        """Appends to an existing segment."""
        return SegmentWriter(self.segment_path(segment), put_blob=self.blobs.put)

    def create_segment(self, header: Header) -> Path:
        """Makes the segment that the header describes, durable on return; never replaces one."""
        if header.run_id != self.run_id:
            raise UsageError(f"a header of run {header.run_id} cannot open a segment of {self.run_id}")
        path = self.segment_path(header.segment)
        create_segment(path, header, put_blob=self.blobs.put)
        return path

    def rewind_path(self, number: int) -> Path:
        """Where the fresh process finds what it needs for the rewind that opens this segment."""
        return self.directory / f"{_REWIND}-{number:04d}.json"

    def write_rewind(self, number: int, document: JsonObject) -> Path:
        """Puts the rewind's file there, whole and durable, in place of an older one."""
        path = self.rewind_path(number)
        write_file(path, encode_document(document, kind=_REWIND))
        return path

    def read_rewind(self, number: int) -> JsonObject:
        """Inverts `write_rewind`; raises DamagedError where the file is missing or damaged."""
        path = self.rewind_path(number)
        try:
            return decode_document(path.read_bytes(), kind=_REWIND)
        except OSError as error:
            raise DamagedError(f"{path} cannot be read: {error.strerror or error}") from error
        except DamagedError as error:
            raise DamagedError(f"{path} is damaged: {error}") from error

    def size_bytes(self) -> int:
        """The bytes of all files of the run, snapshots apart, which several runs share."""
        return sum(map(_size, self.directory.rglob("*")))

    def created_at(self) -> str:
        """When the run began, by its header or, where that is damaged, by its folder's date."""
        try:
            with self.segment_path(0).open("rb") as file:
                header = orjson.loads(file.readline(_HEAD_BYTES))
            return str(header["created_at"])
        except (OSError, ValueError, KeyError, TypeError):
            modified = datetime.fromtimestamp(self.directory.stat().st_mtime, UTC)
            return modified.strftime("%Y-%m-%dT%H:%M:%S.000Z")


class RunStore:
    """All runs below one home directory, which is made when the first run is."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self._runs = home / "runs"

    def create(self, header: Header) -> Run:
        """A new run with its first segment; it appears whole or not at all.

        Raises UsageError for an id that is no plain file name, ProtectedError for one in use.
        """
        if not RUN_ID.fullmatch(header.run_id):
            raise UsageError(
                f"{header.run_id!r} cannot name a run; use letters, digits, dots, dashes and underscores, "
                "and not the word `last`"
            )
        make_directory(self._runs)
        final = self._runs / header.run_id
        hidden = self._runs / f".{secrets.token_hex(8)}.tmp"
        create_segment(hidden / segment_name(header.segment), header)
        try:
            # an empty folder of that name would be replaced, so it is asked for first
            if final.exists():
                raise FileExistsError
            hidden.rename(final)
            sync_directory(self._runs)
        except OSError as error:
            _discard(hidden)
            if final.exists():
                raise ProtectedError(f"a run {header.run_id} exists already; choose another id") from error
            raise storage_error("create", final, error) from error
        return Run(final)

    def open(self, run_id: str) -> Run:
        """The run of this id, or the only one whose id begins so.

        Raises UnknownRunError with the ids that begin so, or that look alike.
        """
        if RUN_ID.fullmatch(run_id) and (self._runs / run_id).is_dir():
            return Run(self._runs / run_id)
        known = [run.run_id for run in self.runs()]
        begun = [name for name in known if run_id and name.startswith(run_id)]
        if len(begun) == 1:
            return Run(self._runs / begun[0])
        raise UnknownRunError(run_id, begun[:5] or difflib.get_close_matches(run_id, known, n=3, cutoff=0.5))

    def runs(self) -> tuple[Run, ...]:
        """All runs, damaged ones too, newest first."""
        found = [Run(path) for path in _entries(self._runs) if path.is_dir() and path.name[0] != "."]
        return tuple(sorted(found, key=lambda run: (run.created_at(), run.run_id), reverse=True))


def _size(path: Path) -> int:
    try:
        found = path.lstat()
    except FileNotFoundError:
        # the unfinished file of a live process, in place by now
        return 0
    return found.st_size if stat.S_ISREG(found.st_mode) else 0


def _entries(directory: Path) -> list[Path]:
    try:
        return list(directory.iterdir())
    except FileNotFoundError:
        return []
    except OSError as error:
        raise DamagedError(f"{directory} cannot be read: {error.strerror or error}") from error


def _discard(hidden: Path) -> None:
    for path in _entries(hidden):
        path.unlink(missing_ok=True)
    hidden.rmdir()
