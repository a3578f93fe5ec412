"""What SQL text may change: which tables, schemas and databases, or why that cannot be told."""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class SqlEffects:
    """What statements may change. Cascades, triggers and rules are the reader's business.

    Attributes:
        read_only: nothing is changed: no row, definition, sequence, file, other session or server.
        tables: tables, views and sequences that may be written, `name` or `schema.name`, quotes resolved.
        schemas: schemas of which all may be written.
        whole_database: anything in the connected database may be written.
        databases: databases that are created, dropped or altered by name.
        unclear: why effects outside the database, or on the whole server, cannot be told; else empty.
    """

    read_only: bool
    tables: tuple[str, ...] = ()
    schemas: tuple[str, ...] = ()
    whole_database: bool = False
    databases: tuple[str, ...] = ()
    unclear: str = ""


READS = SqlEffects(read_only=True)

_POSTGRESQL = ("postgresql", "postgres", "psql")


def read_sql(text: str, dialect: str) -> SqlEffects:
    r"""The effects of all statements in `text`, which may hold the client's own commands (`\d`, `.tables`).

    Args:
        text: what the client would be given; several statements are all counted, in whatever transaction.
        dialect: `postgresql`, `sqlite`, or another name that sqlglot knows (`mysql`, `tsql`, …).

    Text that does not parse is unclear, never read-only. Needs the `backup` extra.
    """
    if "\0" in text:
        return unclear("a NUL character, at which some clients stop reading")
    name = "sql_postgresql" if dialect in _POSTGRESQL else "sql_dialects"
    module = importlib.import_module(f"agentrewind.backup.understanding.{name}")
    found: SqlEffects = module.effects_of(text, dialect)
    return found


def unclear(reason: str) -> SqlEffects:
    """Effects that cannot be told, for this reason."""
    return SqlEffects(read_only=False, unclear=reason)


def joined(parts: Iterable[SqlEffects]) -> SqlEffects:
    """The effects of several statements together."""
    found = list(parts)
    return SqlEffects(
        read_only=all(part.read_only for part in found),
        tables=_all(part.tables for part in found),
        schemas=_all(part.schemas for part in found),
        whole_database=any(part.whole_database for part in found),
        databases=_all(part.databases for part in found),
        unclear="; ".join(_all((part.unclear,) for part in found if part.unclear)),
    )


def _all(groups: Iterable[Iterable[str]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for group in groups for name in group))
