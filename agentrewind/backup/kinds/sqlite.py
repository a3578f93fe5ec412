"""SQLite databases outside the workspace, page by page, also while others have them open."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from hashlib import sha256
from pathlib import Path

from agentrewind.backup.kind import Captured, CaptureError, Outcome, Parameters, Store, UnclearError
from agentrewind.backup.kinds.files_names import check_names
from agentrewind.backup.understanding.sql import read_sql
from agentrewind.backup.values import Command, Context, Target
from agentrewind.records import JsonObject

_WITH_VALUE = {"-init", "-separator", "-newline", "-nullvalue", "-cmd", "-mmap", "-vfs", "-maxsize",
               "-lookaside", "-pagecache", "-key", "-hexkey", "-textkey"}  # fmt: skip
_COUNTERS = (slice(24, 28), slice(40, 44), slice(92, 100))
"""Bytes of the header that writing itself changes: change counter, schema cookie, and who wrote last."""

_BUSY = 30.0


class SqliteDatabase:
    """The kind `sqlite`."""

    def targets(self, command: Command, parameters: Parameters, context: Context) -> tuple[Target, ...]:
        """The database file that the `sqlite3` shell may change."""
        words = [word.text for word in command.argv]
        if command.host is not None or command.open_ended or not all(word.literal for word in command.argv):
            raise UnclearError("which database it opens is only known when it runs")
        file, texts, nothing = _arguments(words[1:], command)
        if nothing:
            return ()
        if file is None or file == ":memory:":
            _check_statements(texts)
            return ()
        if all(_only_reads(text) for text in texts):
            return ()
        if file.startswith("file:") or command.cwd is None:
            raise UnclearError("the database file cannot be told from the call")
        return targets_of(command.cwd / file, context)

    def capture(self, target: Target, store: Store, context: Context) -> Captured:
        """A consistent copy through SQLite's own backup, checked, or that there is no such file."""
        path = _path(target)
        if not path.exists():
            return Captured(manifest={"exists": False})
        copy = store.scratch() / "database.sqlite"
        _copy(path, copy)
        name, size = store.put_file(copy), copy.stat().st_size
        digest = _digest(copy)
        copy.unlink()
        status = path.stat()
        manifest: JsonObject = {
            "exists": True,
            "pages": name,
            "digest": digest,
            "mode": status.st_mode & 0o7777,
        }
        return Captured(manifest=manifest, blobs=(name,), bytes=size)

    def fingerprint(self, target: Target, context: Context) -> str:
        """Digest of the pages, write counters apart; "" where there is no file."""
        return _present(_path(target))

    def restore(self, target: Target, captured: Captured, store: Store, context: Context) -> Outcome:
        """Write the pages into the file that is there, so that open connections see them."""
        path = _path(target)
        if not captured.manifest["exists"]:
            for each in _files(path):
                each.unlink(missing_ok=True)
            return Outcome(restored=(str(path),), missing=(str(path),) if path.exists() else ())
        copy = store.scratch() / "restore.sqlite"
        with store.open(str(captured.manifest["pages"])) as source, copy.open("wb") as out:
            while chunk := source.read(1 << 20):
                out.write(chunk)
        _copy(copy, path)
        copy.unlink()
        path.chmod(int(str(captured.manifest["mode"])))
        same = _present(path) == captured.manifest["digest"]
        return Outcome(restored=(str(path),), missing=() if same else (str(path),))

    def plan(self, target: Target, captured: Captured, context: Context) -> tuple[str, ...]:
        """One act, or none where nothing differs."""
        path = _path(target)
        if not captured.manifest["exists"]:
            return (f"remove {path}, which was not there",) if path.exists() else ()
        same = _present(path) == captured.manifest["digest"]
        return () if same else (f"write the saved pages into {path}",)

    def describe(self, target: Target) -> tuple[str, str]:
        """What is captured and how it comes back."""
        return f"{target.name}, every page (SQLite's backup)", "pages written back into the same file"


def targets_of(path: Path, context: Context) -> tuple[Target, ...]:
    """The database in this file, nothing where the workspace's snapshots cover it."""
    real = Path(os.path.realpath(path))
    if context.workspace is not None and real.is_relative_to(Path(os.path.realpath(context.workspace))):
        check_names([real], Path(os.path.realpath(context.workspace)))
        return ()
    return (Target(kind="sqlite", name=f"SQLite database {real}", detail={"path": str(real)}),)


def _path(target: Target) -> Path:
    return Path(str(target.detail["path"]))


def _arguments(words: list[str], command: Command) -> tuple[str | None, list[str], bool]:
    """File, statements, and whether they need no reading since the shell only shows its version."""
    operands: list[str] = []
    texts: list[str] = []
    while words:
        word = words.pop(0)
        option = f"-{word.lstrip('-')}" if word.startswith("-") else ""
        match option:
            case "":
                operands.append(word)
            case "-version" | "-help":
                return None, [], True
            case "-init":
                raise UnclearError("its statements come from a file that is run first")
            case "-cmd":
                texts.append(words.pop(0) if words else "")
            case _:
                del words[: 1 if option in _WITH_VALUE else 0]
    texts += operands[1:]
    if len(operands) < 2:
        texts.append(_stdin(command))
    return (operands[0] if operands else None), texts, False


def _stdin(command: Command) -> str:
    if command.stdin is not None:
        return command.stdin
    for redirect in command.redirects:
        if redirect.operator == "<" and redirect.target.literal and command.cwd is not None:
            try:
                return (command.cwd / redirect.target.text).read_text("utf-8")
            except (OSError, UnicodeDecodeError) as error:
                raise UnclearError(f"the statements cannot be read before the call: {error}") from error
    raise UnclearError("the statements come from standard input and are not in the call")


def _check_statements(texts: list[str]) -> None:
    if not all(_only_reads(text) for text in texts):
        raise UnclearError("statements on no file may attach or write others")


def _only_reads(text: str) -> bool:
    effects = read_sql(text, "sqlite")
    if effects.unclear:
        raise UnclearError(f"the SQL is not understood: {effects.unclear}")
    return effects.read_only


def _files(path: Path) -> list[Path]:
    return [path, *(path.with_name(path.name + ending) for ending in ("-wal", "-shm", "-journal"))]


def _copy(source: Path, destination: Path) -> None:
    """SQLite's online backup: a consistent picture, locks honoured on both sides."""
    try:
        with (
            closing(sqlite3.connect(f"{source.as_uri()}?mode=ro", uri=True, timeout=_BUSY)) as read,
            closing(sqlite3.connect(destination, timeout=_BUSY)) as write,
        ):
            read.backup(write)
            [[verdict]] = write.execute("PRAGMA integrity_check(1)").fetchall()
    except sqlite3.Error as error:
        raise CaptureError(f"SQLite cannot copy {source} to {destination}: {error}") from error
    if verdict != "ok":
        raise CaptureError(f"{source} is damaged already: {verdict}")


def _present(path: Path) -> str:
    """The digest of a consistent picture of the file."""
    if not path.exists():
        return ""
    try:
        with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True, timeout=_BUSY)) as source:
            return _of_bytes(source.serialize())
    except sqlite3.Error as error:
        raise CaptureError(f"SQLite cannot read {path}: {error}") from error


def _digest(path: Path) -> str:
    return _of_bytes(path.read_bytes())


def _of_bytes(data: bytes) -> str:
    pages = bytearray(data)
    for each in _COUNTERS:
        pages[each] = bytes(4)
    return sha256(pages).hexdigest()
