"""The state of a PostgreSQL database in digests: schema, rows in any order, sequences, large objects."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from hashlib import sha256
from types import TracebackType
from typing import IO, Self

import orjson

from agentrewind.backup.kind import CaptureError
from agentrewind.backup.kinds.postgresql_connection import Connection
from agentrewind.backup.programs import environment, run, said, words_for
from agentrewind.backup.values import Context
from agentrewind.errors import DamagedError
from agentrewind.records import Json, JsonObject

_PSQL = ("psql", "-X", "-A", "-t", "-q", "-F", "\x1f", "-v", "ON_ERROR_STOP=1")
_END = "end of one answer"
_OUTPUT = "SET datestyle = ISO; SET intervalstyle = postgres; SET timezone = UTC; SET extra_float_digits = 1;"
_TABLES = """
SELECT c.relkind, n.nspname, c.relname, quote_ident(n.nspname) || '.' || quote_ident(c.relname)
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'm') AND c.relpersistence <> 't'
  AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'
  AND NOT EXISTS (SELECT FROM pg_depend d
                  WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e')
ORDER BY 2, 3;"""
_ROWS = (
    "SELECT count(*), coalesce(sum(('x' || substr(md5((agentrewind_row.*)::text), 1, 16))::bit(64)::bigint"
    "::numeric), 0) FROM ONLY {} AS agentrewind_row;"
)
_SEQUENCES = """
SELECT quote_ident(n.nspname) || '.' || quote_ident(c.relname)
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind = 'S' AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema' ORDER BY 1;"""
_LARGE = "SELECT count(*), coalesce(sum(loid::bigint * pageno + length(data)), 0) FROM pg_largeobject;"
_PROPERTIES = """
SELECT pg_get_userbyid(d.datdba), pg_encoding_to_char(d.encoding), d.datcollate, d.datctype, d.datconnlimit,
       d.datacl::text, shobj_description(d.oid, 'pg_database'),
       (SELECT string_agg(s.setconfig::text, ' ' ORDER BY s.setrole)
        FROM pg_db_role_setting s WHERE s.setdatabase = d.oid)
FROM pg_database d WHERE d.datname = current_database();"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """One table: its parts, its quoted name, and count and digest of its rows."""

    schema: str
    name: str
    quoted: str
    view: bool
    rows: int
    rows_digest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """A whole database. Equal states have equal fields, whatever order the rows lie in."""

    schema: str
    properties: str
    tables: tuple[Table, ...]
    sequences: dict[str, str]
    large_objects: str

    def digest(self) -> str:
        """One digest of all of it."""
        return sha256(orjson.dumps(self.to_json(), option=orjson.OPT_SORT_KEYS)).hexdigest()

    def to_json(self) -> JsonObject:
        tables: list[Json] = [
            [each.schema, each.name, each.quoted, each.view, each.rows, each.rows_digest]
            for each in self.tables
        ]
        return {
            "schema": self.schema,
            "properties": self.properties,
            "tables": tables,
            "sequences": dict(self.sequences),
            "large_objects": self.large_objects,
        }


def state_from(value: Json) -> State:
    """The state that `to_json` wrote. Raises DamagedError."""
    try:
        assert isinstance(value, dict)
        tables, sequences = value["tables"], value["sequences"]
        assert isinstance(tables, list)
        assert isinstance(sequences, dict)
        return State(
            schema=str(value["schema"]),
            properties=str(value["properties"]),
            tables=tuple(_table_from(each) for each in tables),
            sequences={name: str(each) for name, each in sequences.items()},
            large_objects=str(value["large_objects"]),
        )
    except (AssertionError, KeyError, ValueError) as error:
        raise DamagedError("the backup's record of the database cannot be read") from error


class Session:
    """One psql that answers queries from a single snapshot of the database.

    `snapshot` names it, for `pg_dump --snapshot`.
    """

    def __init__(self, connection: Connection, context: Context) -> None:
        words = words_for(
            [*_PSQL, *connection.options(), "-d", connection.database], connection.os_user, connection.env()
        )
        self._process = subprocess.Popen(
            words,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd="/",
            env=environment(context, connection.env()),
        )
        self.snapshot = ""

    def __enter__(self) -> Self:
        self.ask("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;")
        self.ask(_OUTPUT)
        self.snapshot = self.ask("SELECT pg_export_snapshot();")[0][0]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
            if stream is not None:
                try:
                    stream.close()
                except BrokenPipeError:
                    continue  # psql has ended already, which `ask` has told
        self._process.wait()

    def ask(self, sql: str) -> list[list[str]]:
        """The rows of the answer. Raises CaptureError with what the server said."""
        try:
            self._stdin.write(f"{sql}\n\\echo '{_END}'\n".encode())
            self._stdin.flush()
        except BrokenPipeError:
            return self._ended()
        rows: list[list[str]] = []
        while True:
            line = self._stdout.readline().decode("utf-8", "surrogateescape")
            if not line:
                return self._ended()
            if line == f"{_END}\n":
                return rows
            rows.append(line.removesuffix("\n").split("\x1f"))

    @property
    def _stdin(self) -> IO[bytes]:
        assert self._process.stdin is not None
        return self._process.stdin

    @property
    def _stdout(self) -> IO[bytes]:
        assert self._process.stdout is not None
        return self._process.stdout

    def _ended(self) -> list[list[str]]:
        assert self._process.stderr is not None
        raise CaptureError(f"psql ended early: {said(self._process.stderr.read())}")


def state_of(connection: Connection, context: Context) -> State:
    """The present state. Raises CaptureError."""
    with Session(connection, context) as session:
        return read_state(session, connection, context)


def read_state(session: Session, connection: Connection, context: Context) -> State:
    """The state that the session's snapshot sees."""
    tables = []
    for kind, schema, name, quoted in session.ask(_TABLES):
        [[count, digest]] = session.ask(_ROWS.format(quoted))
        tables.append(
            Table(
                schema=schema,
                name=name,
                quoted=quoted,
                view=kind == "m",
                rows=int(count),
                rows_digest=digest,
            )
        )
    sequences = {}
    for [quoted] in session.ask(_SEQUENCES):
        [found] = session.ask(f"SELECT last_value, is_called FROM {quoted};")
        sequences[quoted] = " ".join(found)
    return State(
        schema=_schema(session, connection, context),
        properties="\n".join("|".join(row) for row in session.ask(_PROPERTIES)),
        tables=tuple(tables),
        sequences=sequences,
        large_objects=" ".join(session.ask(_LARGE)[0]) if _may_read_large(session) else "not readable",
    )


def database_exists(connection: Connection, context: Context) -> bool:
    """Whether the server has this database. Raises CaptureError where the server cannot be asked."""
    return [connection.database] in ask_server(connection, context, "SELECT datname FROM pg_database;")


def ask_server(connection: Connection, context: Context, sql: str) -> list[list[str]]:
    """Rows of a query about the whole server, asked in a database that is there by default."""
    problem: CaptureError | None = None
    for maintenance in ("postgres", "template1"):
        words = [*_PSQL, *connection.options(), "-d", maintenance, "-c", sql]
        try:
            output = run(words, context, env=connection.env(), user=connection.os_user)
        except CaptureError as error:
            problem = problem or error
            continue
        return [line.split("\x1f") for line in output.decode("utf-8", "surrogateescape").splitlines()]
    assert problem is not None
    raise problem


def _may_read_large(session: Session) -> bool:
    found = session.ask("SELECT has_table_privilege('pg_largeobject', 'SELECT');")
    return found == [["t"]]


def _schema(session: Session, connection: Connection, context: Context) -> str:
    words = ["pg_dump", "-s", f"--snapshot={session.snapshot}", *connection.options(), connection.database]
    text = run(words, context, env=connection.env(), user=connection.os_user)
    # each dump has a random token, and versions of server and client
    moving = (b"\\restrict ", b"\\unrestrict ", b"-- Dumped ")
    kept = [line for line in text.splitlines() if not line.startswith(moving)]
    return sha256(b"\n".join(kept)).hexdigest()


def _table_from(value: Json) -> Table:
    assert isinstance(value, list)
    schema, name, quoted, view, rows, digest = value
    assert isinstance(rows, int)
    return Table(
        schema=str(schema),
        name=str(name),
        quoted=str(quoted),
        view=bool(view),
        rows=rows,
        rows_digest=str(digest),
    )
