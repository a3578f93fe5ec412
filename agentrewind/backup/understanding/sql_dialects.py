"""What SQL statements of dialects other than PostgreSQL may change, by sqlglot."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator

import sqlglot
from sqlglot import expressions as exp
from sqlglot.errors import SqlglotError

from agentrewind.backup.understanding.sql import READS, SqlEffects, joined, unclear

_WHOLE = SqlEffects(read_only=False, whole_database=True)

_NAMES = {"sqlite3": "sqlite", "mariadb": "mysql", "mssql": "tsql", "sqlserver": "tsql"}

_WRITES = (exp.Insert, exp.Update, exp.Delete, exp.Merge, exp.Into)
_DEFINES = (exp.Create, exp.Drop, exp.Alter, exp.TruncateTable)

_READING_FUNCTIONS = frozenset(
    [
        "abs",
        "changes",
        "char",
        "glob",
        "hex",
        "ifnull",
        "iif",
        "instr",
        "json",
        "json_array",
        "json_extract",
        "json_object",
        "json_type",
        "json_valid",
        "json_each",
        "json_tree",
        "last_insert_rowid",
        "length",
        "like",
        "likelihood",
        "likely",
        "lower",
        "ltrim",
        "max",
        "min",
        "nullif",
        "printf",
        "format",
        "quote",
        "random",
        "randomblob",
        "replace",
        "round",
        "rtrim",
        "sign",
        "soundex",
        "sqlite_version",
        "sqlite_source_id",
        "substr",
        "substring",
        "sum",
        "total",
        "total_changes",
        "trim",
        "typeof",
        "unicode",
        "unlikely",
        "upper",
        "zeroblob",
        "date",
        "time",
        "datetime",
        "julianday",
        "strftime",
        "unixepoch",
        "avg",
        "count",
        "group_concat",
        "string_agg",
        "row_number",
        "rank",
        "dense_rank",
        "bm25",
        "highlight",
        "snippet",
        "version",
        "database",
        "user",
        "current_user",
        "connection_id",
        "now",
        "pragma_table_info",
        "pragma_table_xinfo",
        "pragma_index_list",
        "pragma_index_info",
        "pragma_foreign_key_list",
        "pragma_database_list",
        "pragma_table_list",
        "sqlite_compileoption_used",
        "json_group_array",
        "json_group_object",
        "json_array_length",
        "generate_series",
        "octet_length",
        "concat",
        "concat_ws",
    ]
)

_READING_PRAGMAS = frozenset(
    [
        "table_info",
        "table_xinfo",
        "table_list",
        "index_list",
        "index_info",
        "index_xinfo",
        "foreign_key_list",
        "foreign_key_check",
        "database_list",
        "collation_list",
        "function_list",
        "module_list",
        "pragma_list",
        "compile_options",
        "integrity_check",
        "quick_check",
    ]
)
"""Pragmas whose argument only selects what is shown."""

_SHOWN_PRAGMAS = frozenset(
    [
        "user_version",
        "application_id",
        "schema_version",
        "page_count",
        "page_size",
        "freelist_count",
        "encoding",
        "journal_mode",
        "foreign_keys",
        "auto_vacuum",
        "cache_size",
        "synchronous",
        "data_version",
    ]
)
"""Pragmas that show a value when they are given none."""

_DOT_READS = frozenset(
    [
        "tables",
        "schema",
        "fullschema",
        "indexes",
        "indices",
        "databases",
        "dbinfo",
        "headers",
        "header",
        "mode",
        "width",
        "nullvalue",
        "separator",
        "show",
        "help",
        "quit",
        "exit",
        "echo",
        "timer",
        "stats",
        "eqp",
        "explain",
        "print",
        "dump",
        "bail",
        "changes",
        "version",
        "prompt",
    ]
)

_DOT = re.compile(r"^[ \t]*\.(\w+)[^\n]*$", re.MULTILINE)


def effects_of(text: str, dialect: str) -> SqlEffects:
    """The effects of what a client of this dialect is given."""
    name = _NAMES.get(dialect, dialect)
    parts: list[SqlEffects] = []
    if name == "sqlite":
        parts += [_dot(match.group(1), match.group()) for match in _DOT.finditer(text)]
        text = _DOT.sub(";", text) if parts else text
    if name in ("mysql", "mariadb") and ("/*!" in text or "/*M!" in text):
        return unclear("a comment that MySQL executes")
    if "\\" in text and name == "mysql":
        return unclear("a backslash, which the mysql client may take as a command of its own")
    if name == "tsql" and re.search(r"\b(exec|execute|xp_\w+|openrowset|openquery)\b", text, re.IGNORECASE):
        return unclear("it executes a procedure or reaches another server")
    try:
        logging.getLogger("sqlglot").setLevel(logging.CRITICAL)
        statements = sqlglot.parse(text, read=name)
    except (SqlglotError, ValueError, RecursionError) as error:
        return unclear(f"it does not parse as {name}: {str(error).splitlines()[0][:120]}")
    parts += [_statement(each, name) for each in statements if each is not None]
    return joined(parts)


def _dot(word: str, line: str) -> SqlEffects:
    # inside an open string such a line is SQL: nothing may be hidden in what is taken out
    if word in _DOT_READS and re.fullmatch(r"\s*\.[\w \t]*\r?", line):
        return READS
    return unclear(f"the client's own command .{word}")


def _statement(statement: exp.Expr, dialect: str) -> SqlEffects:
    if isinstance(statement, exp.Query):
        return _query(statement, dialect)
    if isinstance(statement, exp.Pragma):
        return _pragma(statement)
    if isinstance(statement, (exp.Transaction, exp.Commit, exp.Rollback, exp.Describe, exp.Show)):
        return joined([READS, *_inside(statement, dialect)])
    if isinstance(statement, exp.Use):
        return unclear("the database is changed")
    if isinstance(statement, (exp.Attach, exp.Detach)):
        return unclear("another database file is attached")
    if isinstance(statement, _WRITES[:4]):
        return joined([_written(statement.this), *_inside(statement, dialect)])
    if isinstance(statement, _DEFINES):
        return _definition(statement, dialect)
    return _other(statement, dialect)


def _query(query: exp.Expr, dialect: str) -> SqlEffects:
    locks = next(query.find_all(exp.Lock), None) is not None
    return joined([SqlEffects(read_only=not locks), *_inside(query, dialect)])


def _inside(statement: exp.Expr, dialect: str) -> Iterator[SqlEffects]:
    for node in statement.walk():
        if node is not statement and isinstance(node, (*_WRITES, *_DEFINES)):
            yield _written(node.this)
        elif isinstance(node, (exp.Command, exp.Attach)):
            yield unclear("a part that is not understood here")
        elif isinstance(node, (exp.Anonymous, exp.NextValueFor)):
            yield _function(node)
        if isinstance(node, exp.Select) and dialect == "mysql" and "outfile" in node.sql().lower():
            yield unclear("it writes a file on the server")


def _function(node: exp.Expr) -> SqlEffects:
    name = str(node.this).lower() if isinstance(node, exp.Anonymous) else "next value for"
    if name in _READING_FUNCTIONS:
        return READS
    if name in ("load_extension", "writefile", "edit", "fts3_tokenizer", "load_file", "sys_exec", "sys_eval"):
        return unclear(f"{name}() reaches out of the database")
    return _WHOLE


def _definition(statement: exp.Expr, dialect: str) -> SqlEffects:
    kind = str(statement.args.get("kind", "")).upper()
    if kind in ("DATABASE", "SCHEMA"):
        table = statement.find(exp.Table)
        name = (table.db or table.name) if table is not None else ""
        return SqlEffects(read_only=False, databases=(name,))
    if kind in ("USER", "ROLE"):
        return unclear("users belong to the whole server")
    if isinstance(statement, exp.TruncateTable) or (
        isinstance(statement, exp.Drop) and kind in ("TABLE", "VIEW")
    ):
        return _tables(statement)
    if kind in ("TRIGGER", "FUNCTION", "PROCEDURE", "INDEX", ""):
        return joined([_WHOLE, *_inside(statement, dialect)])
    return joined([_written(statement.this), *_inside(statement, dialect)])


def _written(target: object) -> SqlEffects:
    """The one table that a statement names as the one it writes."""
    if not isinstance(target, exp.Expr):
        return _WHOLE
    return _tables(target)


def _tables(within: exp.Expr) -> SqlEffects:
    names = [
        ".".join(part for part in (table.db, table.name) if part) for table in within.find_all(exp.Table)
    ]
    if not names or not all(names):
        return _WHOLE
    return SqlEffects(read_only=False, tables=tuple(dict.fromkeys(names)))


def _pragma(statement: exp.Expr) -> SqlEffects:
    text = statement.sql(dialect="sqlite").lower().removeprefix("pragma").strip()
    match = re.fullmatch(r"(?:\w+\.)?(\w+)\s*(\(.*\)|=.*)?", text, re.DOTALL)
    if match is None:
        return _WHOLE
    name, value = match.group(1), match.group(2) or ""
    if name in _READING_PRAGMAS:
        return READS
    return READS if name in _SHOWN_PRAGMAS and not value else _WHOLE


def _other(statement: exp.Expr, dialect: str) -> SqlEffects:
    """EXPLAIN and whatever else sqlglot keeps as plain text."""
    text = statement.sql(dialect=dialect)
    explained = re.match(r"\s*explain\s+(query\s+plan\s+)?(?=\S)(?!analy[sz]e)", text, re.IGNORECASE)
    if explained and dialect == "sqlite":
        return READS
    if (
        explained
        and dialect == "mysql"
        and re.match(r"\s*(select|with)\b", text[explained.end() :], re.IGNORECASE)
    ):
        return READS
    if re.match(r"\s*vacuum\s+into\b", text, re.IGNORECASE):
        return unclear("it writes another file")
    return _WHOLE
