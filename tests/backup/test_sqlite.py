"""SQLite databases outside the workspace come back, with others connected to them as well."""

from __future__ import annotations

import shlex
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from agentrewind.backup.kind import CaptureError, UnclearError
from agentrewind.backup.kinds.table import kind_of
from agentrewind.backup.store import BackupStore
from agentrewind.backup.values import Context
from tests.backup.trial import command, perform, preserve

LOSSES = {
    "rows": "DELETE FROM notes",
    "a table": "DROP TABLE notes",
    "values": "UPDATE notes SET text = upper(text)",
    "a pragma": "PRAGMA user_version = 7",
    "the file's layout": "DELETE FROM notes WHERE id > 5; VACUUM",
}


@pytest.fixture(params=["delete", "wal"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / "elsewhere" / "the notes.db"
    path.parent.mkdir()
    with closing(sqlite3.connect(path)) as made:
        made.execute(f"PRAGMA journal_mode = {request.param}")
        made.execute("CREATE TABLE notes (id INTEGER PRIMARY KEY, text TEXT, blob BLOB)")
        made.executemany(
            "INSERT INTO notes (text, blob) VALUES (?, ?)",
            [(f"note {number}", bytes([number % 256]) * 40) for number in range(300)],
        )
        made.commit()
    path.chmod(0o640)
    return path


@pytest.fixture
def context(tmp_path: Path, clean_env: dict[str, str]) -> Context:
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    return Context(cwd=workspace, env=clean_env, home=tmp_path, workspace=workspace)


@pytest.mark.parametrize("loss", LOSSES)
def test_a_database_comes_back(loss: str, database: Path, store: BackupStore, context: Context) -> None:
    before = _dump(database)
    call = command(f"sqlite3 {shlex.quote(str(database))} {shlex.quote(LOSSES[loss])}", context.cwd)
    kept = preserve("sqlite", call, store, context)
    [fingerprint] = kept.fingerprints()
    inode = database.stat().st_ino

    perform(call, context)

    assert kept.fingerprints() != [fingerprint]
    assert kept.plan()
    [outcome] = kept.restore()
    assert outcome.missing == ()
    assert _dump(database) == before
    assert kept.fingerprints() == [fingerprint]
    assert kept.plan() == []
    assert database.stat().st_ino == inode
    assert database.stat().st_mode & 0o777 == 0o640


def test_an_open_connection_sees_the_restored_rows(
    database: Path, store: BackupStore, context: Context
) -> None:
    with closing(sqlite3.connect(database)) as other:
        assert other.execute("SELECT count(*) FROM notes").fetchall() == [(300,)]
        call = command(f"sqlite3 {shlex.quote(str(database))} 'DELETE FROM notes'", context.cwd)
        kept = preserve("sqlite", call, store, context)
        perform(call, context)
        assert other.execute("SELECT count(*) FROM notes").fetchall() == [(0,)]

        kept.restore()

        assert other.execute("SELECT count(*) FROM notes").fetchall() == [(300,)]


def test_a_new_database_goes_again(store: BackupStore, context: Context, tmp_path: Path) -> None:
    call = command(f"sqlite3 {tmp_path}/new.db 'CREATE TABLE x (y)'", context.cwd)
    kept = preserve("sqlite", call, store, context)
    perform(call, context)

    [outcome] = kept.restore()

    assert outcome.missing == ()
    assert not (tmp_path / "new.db").exists()


def test_a_damaged_database_blocks_the_call(store: BackupStore, context: Context, tmp_path: Path) -> None:
    (tmp_path / "bad.db").write_bytes(b"SQLite format 3\x00" + b"\xff" * 5000)
    call = command(f"sqlite3 {tmp_path}/bad.db 'DROP TABLE x'", context.cwd)
    with pytest.raises(CaptureError, match=r"bad\.db"):
        preserve("sqlite", call, store, context)


@pytest.mark.parametrize(
    "text", ["SELECT * FROM notes", ".tables", ".schema", "EXPLAIN DELETE FROM notes", "PRAGMA table_info(x)"]
)
def test_reading_needs_no_backup(text: str, database: Path, context: Context) -> None:
    call = command(f"sqlite3 {shlex.quote(str(database))} {shlex.quote(text)}", context.cwd)
    assert kind_of("sqlite").targets(call, {}, context) == ()


def test_a_database_in_the_workspace_is_the_snapshots_business(context: Context) -> None:
    call = command("sqlite3 inside.db 'DROP TABLE notes'", context.cwd)
    assert kind_of("sqlite").targets(call, {}, context) == ()


@pytest.mark.parametrize(
    "words",
    [
        "sqlite3 x.db",
        "sqlite3 -init do.sql x.db 'SELECT 1'",
        "sqlite3 x.db '.shell rm -rf y'",
        "sqlite3 x.db '.output /etc/passwd'",
        "sqlite3 x.db 'ATTACH \"y.db\" AS y; DELETE FROM y.z'",
        "sqlite3 :memory: 'ATTACH \"y.db\" AS y'",
    ],
)
def test_what_cannot_be_told_is_said(words: str, context: Context) -> None:
    outside = Context(cwd=Path("/"), env=context.env, home=context.home, workspace=context.workspace)
    with pytest.raises(UnclearError):
        kind_of("sqlite").targets(command(words, Path("/srv")), {}, outside)


def _dump(path: Path) -> list[str]:
    with closing(sqlite3.connect(path)) as opened:
        [[version]] = opened.execute("PRAGMA user_version").fetchall()
        return [f"version {version}", *opened.iterdump()]
