"""A careful view of a directory that somebody else filled: follows no link, opens only plain files."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import os
import sqlite3
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from mettlebench.check.outcome import fail

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_PLAIN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
MAX_BYTES = 64 << 20


class View:
    """Reads below `root`. What is missing or malformed makes the criterion unmet, no more."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def kind(self, path: str) -> str | None:
        """`file`, `dir`, `link`, `other`, or None where nothing is; links on the way lead nowhere."""
        entry = self._entry(path)
        if entry is None:
            return None
        for test, word in ((stat.S_ISREG, "file"), (stat.S_ISDIR, "dir"), (stat.S_ISLNK, "link")):
            if test(entry.st_mode):
                return word
        return "other"

    def mode(self, path: str) -> int:
        """Permission bits."""
        entry = self._entry(path)
        if entry is None:
            fail(f"{path} is missing")
        return stat.S_IMODE(entry.st_mode)

    def mtime_ns(self, path: str) -> int:
        """Modification time."""
        entry = self._entry(path)
        if entry is None:
            fail(f"{path} is missing")
        return entry.st_mtime_ns

    def is_file(self, path: str) -> bool:
        return self.kind(path) == "file"

    def is_dir(self, path: str) -> bool:
        return self.kind(path) == "dir"

    def read(self, path: str) -> bytes:
        """The bytes of a plain file."""
        folder = self._folder(path)
        if folder is None:
            fail(f"{path} is missing")
        try:
            descriptor = os.open(PurePosixPath(path).name, _PLAIN, dir_fd=folder)
        except OSError:
            fail(f"{path} is missing, a link, or cannot be read")
        finally:
            os.close(folder)
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            fail(f"{path} is no plain file")
        with os.fdopen(descriptor, "rb") as file:
            data = file.read(MAX_BYTES + 1)
        if len(data) > MAX_BYTES:
            fail(f"{path} is larger than {MAX_BYTES} bytes")
        return data

    def text(self, path: str) -> str:
        """The text of a UTF-8 file, with line ends as they are."""
        try:
            return self.read(path).decode("utf-8")
        except UnicodeDecodeError:
            fail(f"{path} is no UTF-8 text")

    def lines(self, path: str) -> list[str]:
        """The lines of a text that are not blank, without surrounding blanks."""
        return [line.strip() for line in self.text(path).splitlines() if line.strip()]

    def json(self, path: str) -> Any:
        """A JSON document."""
        return parse_json(self.text(path), path)

    def json_lines(self, path: str) -> list[Any]:
        """A JSON document on each line."""
        return [parse_json(line, path) for line in self.lines(path)]

    def csv(self, path: str, columns: Sequence[str]) -> list[dict[str, str]]:
        """The rows of a comma-separated file whose first line is exactly these columns."""
        try:
            rows = list(csv.reader(io.StringIO(self.text(path), newline=""), strict=True))
        except csv.Error as error:
            fail(f"{path} is no comma-separated file: {error}")
        if not rows or [cell.strip() for cell in rows[0]] != list(columns):
            fail(f"{path} does not begin with the columns {','.join(columns)}")
        body = [row for row in rows[1:] if row]
        for number, row in enumerate(body, start=2):
            if len(row) != len(columns):
                fail(f"{path}, row {number}: {len(row)} fields, not {len(columns)}")
        return [dict(zip(columns, (cell.strip() for cell in row), strict=True)) for row in body]

    def sha256(self, path: str) -> str:
        return hashlib.sha256(self.read(path)).hexdigest()

    def walk(self, path: str = "") -> Iterator[tuple[str, str]]:
        """Every entry below a folder as (path, kind), sorted; links are entries and not followed."""
        start = self.root / path
        if path and self.kind(path) != "dir":
            return
        for place, folders, files in os.walk(start):
            folders.sort()
            here = Path(place).relative_to(self.root)
            for name in sorted([*folders, *files]):
                shown = (here / name).as_posix()
                # a name that is no UTF-8 would make a verdict that cannot be written down
                yield shown.encode("utf-8", "backslashreplace").decode(), self.kind(shown) or "other"

    def files(self, path: str = "") -> list[str]:
        """The plain files below a folder, sorted."""
        return sorted(name for name, kind in self.walk(path) if kind == "file")

    def database(self, path: str) -> sqlite3.Connection:
        """A private copy of an SQLite database, without any `-wal` or journal beside it."""
        data = self.read(path)
        if not data.startswith(b"SQLite format 3\0"):
            fail(f"{path} is no SQLite database")
        connection = sqlite3.connect(":memory:")
        try:
            # in memory there is no WAL, so a file in that mode is opened as one in the old mode
            connection.deserialize(data[:18] + b"\x01\x01" + data[20:])
            connection.execute("select count(*) from sqlite_master").fetchone()
        except sqlite3.Error as error:
            fail(f"{path} cannot be read as a database: {error}")
        return connection

    def _folder(self, path: str) -> int | None:
        """An open descriptor of the folder that holds `path`; None where a step is no folder or a link."""
        descriptor = os.open(self.root, _FOLDER)
        for part in PurePosixPath(path).parts[:-1]:
            if part in ("..", "/"):
                raise ValueError(f"{path} leaves the workspace")
            try:
                below = os.open(part, _FOLDER, dir_fd=descriptor)
            except OSError:
                os.close(descriptor)
                return None
            os.close(descriptor)
            descriptor = below
        return descriptor

    def _entry(self, path: str) -> os.stat_result | None:
        folder = self._folder(path)
        if folder is None:
            return None
        try:
            return os.lstat(PurePosixPath(path).name, dir_fd=folder)
        except OSError:
            return None
        finally:
            os.close(folder)


def parse_json(text: str, what: str) -> Any:
    """A JSON document that an agent wrote; unmet where it is none."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        fail(f"{what} is no JSON")


def query(connection: sqlite3.Connection, statement: str, *parameters: object) -> list[tuple[Any, ...]]:
    """The rows of a query against what an agent left; unmet where the database refuses it."""
    try:
        return connection.execute(statement, parameters).fetchall()
    except (sqlite3.Error, OverflowError, UnicodeDecodeError) as error:
        fail(f"the database refuses a query: {error}")
