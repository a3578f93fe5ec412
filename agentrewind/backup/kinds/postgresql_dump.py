"""Dumps a PostgreSQL database whole, from one snapshot of it, and reads the dump back."""

from __future__ import annotations

from pathlib import Path

from agentrewind.backup.kind import Captured, CaptureError, Store
from agentrewind.backup.kinds.postgresql_connection import Connection
from agentrewind.backup.kinds.postgresql_state import Session, State, read_state
from agentrewind.backup.programs import run
from agentrewind.backup.values import Context
from agentrewind.records import JsonObject

LARGEST = 4 << 30
"""Bytes of a database on its server above which it is not dumped before a call."""


def absent() -> Captured:
    """There was no such database: a restore removes it."""
    return Captured(manifest={"exists": False})


def capture_database(connection: Connection, store: Store, context: Context) -> Captured:
    """Dump, read the dump back whole, and note the digests of what it holds. Raises CaptureError."""
    with Session(connection, context) as session:
        [[size]] = session.ask("SELECT pg_database_size(current_database());")
        if int(size) > LARGEST:
            raise CaptureError(
                f"database {connection.database} has {int(size) >> 20} MiB, more than the "
                f"{LARGEST >> 20} MiB that are dumped before a call; save it yourself first"
            )
        file = store.scratch() / "database.dump"
        words = [
            "pg_dump", "-Fc", "--create", f"--snapshot={session.snapshot}", *connection.options(),
            connection.database,
        ]  # fmt: skip
        run(words, context, env=connection.env(), user=connection.os_user, stdout=file)
        state = read_state(session, connection, context)
    _verify(file, state, context)
    name = store.put_file(file)
    size_of_dump = file.stat().st_size
    file.unlink()
    manifest: JsonObject = {"exists": True, "dump": name, "state": state.to_json()}
    notes = ("roles, tablespaces and settings of the whole server are not covered",)
    return Captured(manifest=manifest, blobs=(name,), bytes=size_of_dump, notes=notes)


def contents(file: Path, context: Context) -> list[str]:
    """The entries of a dump, as `pg_restore -l` lists them."""
    text = run(["pg_restore", "-l", str(file)], context).decode("utf-8", "surrogateescape")
    return [line for line in text.splitlines() if line and not line.startswith(";")]


def _verify(file: Path, state: State, context: Context) -> None:
    listed = contents(file, context)
    for table in state.tables:
        wanted = "MATERIALIZED VIEW DATA" if table.view else "TABLE DATA"
        if not any(f" {wanted} {table.schema} {table.name} " in line for line in listed):
            raise CaptureError(f"the dump lacks the rows of {table.quoted}")
    # decompresses every entry, so that a torn or damaged archive is found now
    run(["pg_restore", "-f", "/dev/null", str(file)], context)
