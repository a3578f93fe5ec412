"""PostgreSQL databases: what a client's call changes, and the whole database as it was.

A database is preserved whole, since deletions cascade and dropped tables take views, keys and sequences
with them. Roles and other things of the whole server are not covered.
"""

from __future__ import annotations

import getopt
from pathlib import Path

from agentrewind.backup.kind import Captured, Outcome, Parameters, Store, UnclearError
from agentrewind.backup.kinds import postgresql_restore as restoring
from agentrewind.backup.kinds.postgresql_connection import Connection, connect, connection_of
from agentrewind.backup.kinds.postgresql_dump import absent, capture_database
from agentrewind.backup.kinds.postgresql_state import database_exists, state_of
from agentrewind.backup.understanding.sql import read_sql
from agentrewind.backup.values import Command, Context, Target, Word

_SHORT = {
    "psql": "c:d:f:lv:V?XabeEL:no:qsSAF:HP:R:tT:xz0h:p:U:wW1",
    "createdb": "D:eE:l:O:T:h:p:U:wWV?",
    "dropdb": "efih:p:U:wWV?",
    "pg_restore": "d:f:F:lvV?acCeI:j:L:n:N:O:P:sS:t:T:x1h:p:U:wW",
}
_LONG = {
    "psql": (
        "command= dbname= file= list set= variable= version no-psqlrc single-transaction help= echo-all "
        "echo-errors echo-queries echo-hidden log-file= no-readline output= quiet single-step single-line "
        "no-align csv field-separator= html pset= record-separator= tuples-only table-attr= expanded "
        "field-separator-zero record-separator-zero host= port= username= no-password password"
    ),
    "createdb": (
        "tablespace= echo encoding= locale= lc-collate= lc-ctype= icu-locale= locale-provider= owner= "
        "strategy= template= host= port= username= no-password password maintenance-db= version help"
    ),
    "dropdb": (
        "echo force interactive if-exists host= port= username= no-password password maintenance-db= "
        "version help"
    ),
    "pg_restore": (
        "dbname= file= format= list verbose version help data-only clean create exit-on-error index= jobs= "
        "use-list= schema= exclude-schema= no-owner function= schema-only superuser= table= trigger= "
        "no-privileges single-transaction disable-triggers enable-row-security if-exists no-comments "
        "no-data-for-failed-tables no-publications no-security-labels no-subscriptions "
        "no-table-access-method no-tablespaces section= strict-names use-set-session-authorization host= "
        "port= username= no-password password role="
    ),
}
_READS_ONLY = {"-l", "--list", "-V", "--version", "-?", "--help"}
_CONNECTING = {"-h": "host", "--host": "host", "-p": "port", "--port": "port", "-U": "user"}
_CONNECTING["--username"] = "user"

Options = list[tuple[str, str]]


class PostgresDatabase:
    """The kind `postgresql`."""

    def targets(self, command: Command, parameters: Parameters, context: Context) -> tuple[Target, ...]:
        """The databases that psql, createdb, dropdb or pg_restore may change."""
        program = command.name
        _check(command)
        options, operands = _arguments(command, program)
        if any(name in _READS_ONLY for name, _ in options):
            return ()
        env = {**context.env, **{name: _text(word) for name, word in command.assignments.items()}}
        given = {_CONNECTING[name]: value for name, value in options if name in _CONNECTING}
        match program:
            case "psql":
                return _psql(command, options, operands, given, env)
            case "pg_restore":
                return _pg_restore(command, options, given, env)
            case _:
                name = operands[0] if operands else ""
                return (connect(given, "", env, command.user).on(name or _own(given, env)).target(),)

    def capture(self, target: Target, store: Store, context: Context) -> Captured:
        """The whole database as a custom-format dump, read back, with a digest of each table."""
        connection = connection_of(target)
        if not database_exists(connection, context):
            return absent()
        return capture_database(connection, store, context)

    def fingerprint(self, target: Target, context: Context) -> str:
        """A digest of schema, rows in any order, sequences and large objects; "" without a database."""
        connection = connection_of(target)
        if not database_exists(connection, context):
            return ""
        return state_of(connection, context).digest()

    def restore(self, target: Target, captured: Captured, store: Store, context: Context) -> Outcome:
        """Rows alone where the schema is the same, else a whole database put in the old one's place."""
        return restoring.restore(connection_of(target), captured, store, context)

    def plan(self, target: Target, captured: Captured, context: Context) -> tuple[str, ...]:
        """The acts of a restore."""
        return restoring.plan(connection_of(target), captured, context)

    def describe(self, target: Target) -> tuple[str, str]:
        """What is captured and how it comes back."""
        database = str(target.detail["database"])
        return (
            f"{target.name}, whole (pg_dump -Fc, digests of every table)",
            f"rows of changed tables in one transaction; where the schema changed, {database} rebuilt "
            "beside the present one, compared, and put in its place",
        )


def _check(command: Command) -> None:
    if command.name not in _SHORT:
        raise UnclearError(f"{command.name} is not a PostgreSQL client known here")
    if command.host is not None:
        raise UnclearError(f"it runs on {command.host}")
    if command.open_ended:
        raise UnclearError("some of its arguments come from elsewhere")


def _pg_restore(
    command: Command, options: Options, given: dict[str, str], env: dict[str, str]
) -> tuple[Target, ...]:
    found = [value for name, value in options if name in ("-d", "--dbname")]
    if not found:
        return ()
    if any(name in ("-C", "--create") for name, _ in options):
        raise UnclearError("pg_restore --create writes a database that its archive names")
    return (connect(given, found[-1], env, command.user).target(),)


def _psql(
    command: Command, options: Options, operands: list[str], given: dict[str, str], env: dict[str, str]
) -> tuple[Target, ...]:
    names = [value for name, value in options if name in ("-d", "--dbname")]
    names += operands[:1]
    if len(operands) > 1 and "user" not in given:
        given["user"] = operands[1]
    connection = connect(given, names[0] if names else "", env, command.user)
    texts = [value for name, value in options if name in ("-c", "--command")]
    files = [value for name, value in options if name in ("-f", "--file")]
    texts += [_read(command, name) for name in files]
    if not texts:
        texts = [_stdin(command)]
    return _changed(connection, texts)


def _changed(connection: Connection, texts: list[str]) -> tuple[Target, ...]:
    found: dict[str, Target] = {}
    for text in texts:
        effects = read_sql(text, "postgresql")
        if effects.unclear:
            raise UnclearError(f"the SQL is not understood: {effects.unclear}")
        if effects.read_only:
            continue
        for database in effects.databases:
            found[database] = connection.on(database).target()
        if effects.tables or effects.schemas or effects.whole_database or not effects.databases:
            found[connection.database] = connection.target()
    return tuple(found.values())


def _read(command: Command, name: str) -> str:
    if name == "-":
        return _stdin(command)
    if command.cwd is None:
        raise UnclearError(f"the directory in which {name} lies cannot be told")
    try:
        return (command.cwd / Path(name)).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UnclearError(f"the SQL file {name} cannot be read before the call: {error}") from error


def _stdin(command: Command) -> str:
    if command.stdin is not None:
        return command.stdin
    for redirect in command.redirects:
        if redirect.operator == "<" and redirect.target.literal:
            return _read(command, redirect.target.text)
    raise UnclearError("the SQL comes from standard input and is not in the call")


def _arguments(command: Command, program: str) -> tuple[Options, list[str]]:
    words = [_text(word) for word in command.argv[1:]]
    try:
        options, operands = getopt.gnu_getopt(words, _SHORT[program], _LONG[program].split())
    except getopt.GetoptError as error:
        raise UnclearError(f"{program}: {error.msg}") from error
    return options, operands


def _text(word: Word) -> str:
    if not word.literal:
        raise UnclearError(f"{word.text} is only known when the command runs")
    return word.text


def _own(given: dict[str, str], env: dict[str, str]) -> str:
    name = env.get("PGDATABASE") or given.get("user") or env.get("PGUSER") or env.get("USER", "")
    if not name:
        raise UnclearError("no database is named")
    return name
