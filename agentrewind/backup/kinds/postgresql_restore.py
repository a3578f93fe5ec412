"""Puts a PostgreSQL database back: only the rows where the schema is the same, else the whole database.

`pg_restore --clean` into a live database is not used: where a dependent object blocks a drop it goes on and
appends the rows to those that are there.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from agentrewind.backup.kind import Captured, CaptureError, Outcome, Store
from agentrewind.backup.kinds.postgresql_connection import Connection
from agentrewind.backup.kinds.postgresql_dump import contents
from agentrewind.backup.kinds.postgresql_state import (
    State,
    Table,
    ask_server,
    database_exists,
    state_from,
    state_of,
)
from agentrewind.backup.programs import run
from agentrewind.backup.values import Context

_ASIDE = "_before_restore"
_PSQL = ("psql", "-X", "-q", "-v", "ON_ERROR_STOP=1")


def plan(connection: Connection, captured: Captured, context: Context) -> tuple[str, ...]:
    """What `restore` would do."""
    name, there = connection.database, database_exists(connection, context)
    if not captured.manifest["exists"]:
        return (f"drop database {name}, which was not there",) if there else ()
    if not there:
        return (f"create database {name} from its dump",)
    before, now = state_from(captured.manifest["state"]), state_of(connection, context)
    if before == now:
        return ()
    tables = _changed(before, now)
    if _rows_suffice(before, now, connection, context):
        rows = [f"put back the rows of {each.quoted} ({each.rows})" for each in tables]
        return (*rows, *(f"set the sequence {name}" for name in _moved(before, now)))
    return (
        f"end the connections to {name}",
        f"build {name} anew from its dump, compare, and drop the present one",
    )


def restore(connection: Connection, captured: Captured, store: Store, context: Context) -> Outcome:
    """Put the database back and compare. Raises CaptureError where nothing could be changed."""
    if not captured.manifest["exists"]:
        return _remove(connection, context)
    before = state_from(captured.manifest["state"])
    file = store.scratch() / "restore.dump"
    with store.open(str(captured.manifest["dump"])) as source, file.open("wb") as out:
        while chunk := source.read(1 << 20):
            out.write(chunk)
    try:
        if not database_exists(connection, context):
            _create(connection, file, context)
        else:
            now = state_of(connection, context)
            if now == before:
                return Outcome(restored=(f"{connection.database} was as it had been",))
            if _rows_suffice(before, now, connection, context):
                _put_rows(connection, _changed(before, now), file, context)
            else:
                return _rebuild(connection, before, file, context)
    finally:
        file.unlink(missing_ok=True)
    return _compared(connection, before, context)


def _compared(connection: Connection, before: State, context: Context) -> Outcome:
    now = state_of(connection, context)
    missing = differences(before, now)
    return Outcome(restored=(f"database {connection.database}",), missing=missing)


def differences(before: State, now: State) -> tuple[str, ...]:
    """What differs between two states, a phrase each."""
    found = [f"rows of {each.quoted}" for each in _changed(before, now)]
    if before.schema != now.schema:
        found.append("schema")
    if before.properties != now.properties:
        found.append("settings, owner or privileges of the database")
    found += [
        f"sequence {name}" for name, value in before.sequences.items() if now.sequences.get(name) != value
    ]
    if before.large_objects != now.large_objects:
        found.append("large objects")
    return tuple(found)


def _changed(before: State, now: State) -> list[Table]:
    present = {each.quoted: each for each in now.tables}
    return [each for each in before.tables if present.get(each.quoted) != each]


def _moved(before: State, now: State) -> list[str]:
    return [name for name, at in before.sequences.items() if now.sequences.get(name) != at]


def _rows_suffice(before: State, now: State, connection: Connection, context: Context) -> bool:
    same = (
        before.schema == now.schema
        and before.properties == now.properties
        and before.large_objects == now.large_objects
    )
    # triggers and foreign keys are put aside while rows move, which is a superuser's right
    asked = "SELECT rolsuper FROM pg_roles WHERE rolname = current_user;"
    return same and ask_server(connection, context, asked) == [["t"]]


def _put_rows(connection: Connection, tables: Sequence[Table], file: Path, context: Context) -> None:
    wanted = [
        f" {'MATERIALIZED VIEW DATA' if each.view else 'TABLE DATA'} {each.schema} {each.name} "
        for each in tables
    ]
    entries = [
        line
        for line in contents(file, context)
        if " SEQUENCE SET " in line or any(each in line for each in wanted)
    ]
    chosen = file.with_suffix(".list")
    chosen.write_text("\n".join(entries) + "\n", encoding="utf-8", errors="surrogateescape")
    script = run(["pg_restore", "-L", str(chosen), "-f", "-", str(file)], context)
    chosen.unlink()
    emptied = "".join(f"DELETE FROM ONLY {each.quoted};\n" for each in tables if not each.view)
    whole = f"BEGIN;\nSET LOCAL session_replication_role = replica;\n{emptied}".encode()
    # no end to the transaction inside: a failure leaves the database as it is
    _psql(connection, whole + script + b"\nCOMMIT;\n", context)


def _rebuild(connection: Connection, before: State, file: Path, context: Context) -> Outcome:
    name, aside = connection.database, connection.database[: 63 - len(_ASIDE)] + _ASIDE
    if database_exists(connection.on(aside), context):
        raise CaptureError(
            f"database {aside} is there, left by an earlier restore that was cut off; look at it, rename or "
            "drop it, then try again"
        )
    _disconnect(connection, context)
    _server(connection, f"ALTER DATABASE {_quoted(name)} RENAME TO {_quoted(aside)};", context)
    try:
        _create(connection, file, context)
        outcome = _compared(connection, before, context)
        if outcome.missing:
            raise CaptureError(f"the rebuilt database differs in: {', '.join(outcome.missing)}")
    except BaseException:
        _back(connection, aside, context)
        raise
    _disconnect(connection.on(aside), context)
    _server(connection, f"DROP DATABASE {_quoted(aside)};", context)
    return Outcome(restored=outcome.restored, notes=(f"connections to {name} were ended",))


def _back(connection: Connection, aside: str, context: Context) -> None:
    """The present database under its own name again."""
    if database_exists(connection, context):
        _disconnect(connection, context)
        _server(connection, f"DROP DATABASE {_quoted(connection.database)};", context)
    _server(connection, f"ALTER DATABASE {_quoted(aside)} RENAME TO {_quoted(connection.database)};", context)


def _create(connection: Connection, file: Path, context: Context) -> None:
    """The database from its dump, with its owner, settings and privileges."""
    place = ["-d", _maintenance(connection)]
    words = ["pg_restore", "--create", "--exit-on-error", *connection.options(), *place]
    run(words, context, env=connection.env(), user=connection.os_user, stdin=file)


def _remove(connection: Connection, context: Context) -> Outcome:
    if not database_exists(connection, context):
        return Outcome(restored=(f"there is no database {connection.database}, as before",))
    _disconnect(connection, context)
    _server(connection, f"DROP DATABASE {_quoted(connection.database)};", context)
    return Outcome(restored=(f"database {connection.database} was dropped",))


def _disconnect(connection: Connection, context: Context) -> None:
    literal = connection.database.replace("'", "''")
    ask_server(
        connection,
        context,
        f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{literal}';",
    )


def _server(connection: Connection, sql: str, context: Context) -> None:
    _psql(connection.on(_maintenance(connection)), sql.encode(), context)


def _maintenance(connection: Connection) -> str:
    return "template1" if connection.database == "postgres" else "postgres"


def _psql(connection: Connection, script: bytes, context: Context) -> None:
    words = [*_PSQL, *connection.options(), "-d", connection.database, "-f", "-"]
    run(words, context, env=connection.env(), user=connection.os_user, stdin=script)


def _quoted(name: str) -> str:
    doubled = name.replace('"', '""')
    return f'"{doubled}"'
