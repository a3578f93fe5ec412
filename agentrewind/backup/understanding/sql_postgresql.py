"""What PostgreSQL statements may change, from PostgreSQL's own grammar."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache
from importlib import resources
from typing import Any

import orjson
from pglast.parser import ParseError, parse_sql_json

from agentrewind.backup.understanding.sql import READS, SqlEffects, joined, unclear
from agentrewind.backup.understanding.sql_psql import PsqlText, split_psql

Node = dict[str, Any]

_WHOLE = SqlEffects(read_only=False, whole_database=True)
_NOTHING_KEPT = SqlEffects(read_only=False)

_SESSION = {
    "TransactionStmt",
    "VariableSetStmt",
    "VariableShowStmt",
    "FetchStmt",
    "ClosePortalStmt",
    "ListenStmt",
    "UnlistenStmt",
    "DeallocateStmt",
    "DiscardStmt",
    "ConstraintsSetStmt",
}
"""Statements that touch nothing but the session."""

_SERVER = {
    "CreateRoleStmt": "roles belong to the whole server",
    "AlterRoleStmt": "roles belong to the whole server",
    "AlterRoleSetStmt": "roles belong to the whole server",
    "DropRoleStmt": "roles belong to the whole server",
    "GrantRoleStmt": "roles belong to the whole server",
    "ReassignOwnedStmt": "ownership is changed in several databases",
    "DropOwnedStmt": "what a role owns is dropped, with its rights in other databases",
    "CreateTableSpaceStmt": "tablespaces belong to the whole server",
    "DropTableSpaceStmt": "tablespaces belong to the whole server",
    "AlterTableSpaceOptionsStmt": "tablespaces belong to the whole server",
    "AlterTableMoveAllStmt": "files are moved between tablespaces",
    "AlterSystemStmt": "the server's settings are changed",
    "LoadStmt": "a library is loaded into the server",
    "CreateSubscriptionStmt": "a subscription reaches another server",
    "AlterSubscriptionStmt": "a subscription reaches another server",
    "DropSubscriptionStmt": "a subscription reaches another server",
}

_DATABASE = {
    "CreatedbStmt": "dbname",
    "DropdbStmt": "dbname",
    "AlterDatabaseStmt": "dbname",
    "AlterDatabaseSetStmt": "dbname",
    "AlterDatabaseRefreshCollStmt": "dbname",
}

_TABLE_FIELDS = ("relation", "relations", "rel", "into", "view", "sequence", "table")

_REACHES_OUT = re.compile(
    r"dblink|pg_file_|pg_write|lo_export|postgres_fdw|pg_reload|pg_rotate|pg_terminate|pg_cancel|pg_switch|"
    r"pg_promote|pg_backup|_slot|replication_origin|pg_create_restore|pg_wal_replay|http|curl|copy_|system"
)


def effects_of(text: str, dialect: str) -> SqlEffects:
    """The effects of what psql or a driver is given."""
    split = split_psql(text) if "\\" in text else PsqlText(sql=text)
    if split.problem:
        return unclear(split.problem)
    try:
        tree = orjson.loads(parse_sql_json(split.sql)) if split.sql.strip() else {}
    except (ParseError, ValueError) as error:
        return unclear(f"it does not parse as PostgreSQL: {str(error).splitlines()[0]}")
    statements = [each.get("stmt", {}) for each in tree.get("stmts", [])]
    parts = [_statement(statement) for statement in statements]
    parts += [_command(command) for command in split.commands]
    if split.data:
        # rows that COPY refuses would be read as statements
        parts.append(_WHOLE)
    return joined(parts)


def _statement(statement: Node) -> SqlEffects:
    if not statement:
        return READS
    kind, body = next(iter(statement.items()))
    if kind in _SERVER:
        return unclear(_SERVER[kind])
    if kind in _DATABASE:
        return SqlEffects(read_only=False, databases=(str(body.get(_DATABASE[kind], "")),))
    special = _SPECIAL.get(kind)
    if special is not None:
        return special(body)
    if kind in _SESSION:
        return READS
    return joined([_tables_of(body), _inner(body)])


def _select(body: Node) -> SqlEffects:
    parts = [_inner(body)]
    for select in [body, *_under(body, "SelectStmt")]:
        if "intoClause" in select:
            parts.append(_tables_of(select["intoClause"]))
        if "lockingClause" in select:
            parts.append(_written(_ranges(select.get("fromClause"))))
    return joined(parts)


def _inner(body: Any) -> SqlEffects:
    """What lies inside a statement: writing CTEs, functions, SELECT INTO."""
    parts = [_function(call) for call in _under(body, "FuncCall")]
    for kind in ("InsertStmt", "UpdateStmt", "DeleteStmt", "MergeStmt"):
        parts += [_tables_of(node) for node in _under(body, kind)]
    parts += [_tables_of(node["intoClause"]) for node in _under(body, "SelectStmt") if "intoClause" in node]
    parts += [_NOTHING_KEPT for node in _under(body, "SelectStmt") if "lockingClause" in node]
    return joined(parts)


def _function(call: Node) -> SqlEffects:
    words = [part.get("String", {}).get("sval", "") for part in call.get("funcname", [])]
    name = words[-1] if words else ""
    if name in _harmless() and (len(words) == 1 or words[0] in ("pg_catalog", "information_schema")):
        return READS
    if _REACHES_OUT.search(name):
        return unclear(f"{'.'.join(words)}() may reach out of the database")
    return _WHOLE


@cache
def _harmless() -> frozenset[str]:
    lines = resources.files(__package__).joinpath("postgresql_functions.txt").read_text("ascii").splitlines()
    return frozenset(name for line in lines if not line.startswith("#") for name in line.split())


def _tables_of(body: Node) -> SqlEffects:
    """A statement that writes the relations it names directly; the whole database where it names none."""
    names: list[str] = []
    for key in _TABLE_FIELDS:
        names += _ranges(body.get(key))
    return _written(names) if names else _WHOLE


def _written(names: list[str]) -> SqlEffects:
    return SqlEffects(read_only=False, tables=tuple(dict.fromkeys(names)))


def _ranges(value: Any) -> list[str]:
    found = [value] if isinstance(value, dict) and "relname" in value else []
    found += list(_under(value, "RangeVar"))
    return [".".join(part for part in (each.get("schemaname"), each["relname"]) if part) for each in found]


def _under(value: Any, kind: str) -> Iterator[Node]:
    """All nodes of this kind inside, at any depth."""
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, list):
            stack += item
        elif isinstance(item, dict):
            stack += item.values()
            if isinstance(item.get(kind), dict):
                yield item[kind]


def _explain(body: Node) -> SqlEffects:
    options = {
        each["DefElem"]["defname"].lower(): each["DefElem"].get("arg") for each in body.get("options", [])
    }
    # planning runs functions as well, so only those that are known are let by
    inner = _statement(body.get("query", {}))
    if "analyze" not in options:
        calls = joined(_function(call) for call in _under(body.get("query"), "FuncCall"))
        return READS if calls.read_only else inner
    return inner


def _copy(body: Node) -> SqlEffects:
    if body.get("is_program"):
        return unclear("COPY runs a program on the server")
    if body.get("is_from"):
        return joined([_tables_of(body), _inner(body)])
    if body.get("filename"):
        return unclear("COPY writes a file on the server")
    return _statement(body["query"]) if "query" in body else READS


def _do(body: Node) -> SqlEffects:
    words = {each["DefElem"]["defname"]: each["DefElem"].get("arg", {}) for each in body.get("args", [])}
    language = words.get("language", {}).get("String", {}).get("sval", "plpgsql").lower()
    code = words.get("as", {}).get("String", {}).get("sval", "")
    if language != "plpgsql" or _REACHES_OUT.search(code.lower()) or "program" in code.lower():
        return unclear("the code of DO may reach out of the database")
    return _WHOLE


def _drop(body: Node) -> SqlEffects:
    kind = body.get("removeType", "")
    names = [_dotted(each) for each in body.get("objects", [])]
    if kind == "OBJECT_SCHEMA":
        return SqlEffects(read_only=False, schemas=tuple(names))
    if kind in ("OBJECT_TABLE", "OBJECT_VIEW", "OBJECT_MATVIEW", "OBJECT_SEQUENCE", "OBJECT_FOREIGN_TABLE"):
        return _written(names)
    return _WHOLE


def _dotted(value: Node) -> str:
    if "String" in value:
        return str(value["String"].get("sval", ""))
    items = value.get("List", {}).get("items", [])
    return ".".join(str(each.get("String", {}).get("sval", "")) for each in items)


def _rename(body: Node) -> SqlEffects:
    if body.get("renameType") == "OBJECT_DATABASE":
        return SqlEffects(read_only=False, databases=(str(body["subname"]), str(body["newname"])))
    if body.get("renameType") in ("OBJECT_ROLE", "OBJECT_TABLESPACE"):
        return unclear("roles and tablespaces belong to the whole server")
    return _tables_of(body)


def _owner(body: Node) -> SqlEffects:
    if body.get("objectType") == "OBJECT_DATABASE":
        return SqlEffects(read_only=False, databases=(_dotted(body.get("object", {})),))
    return _tables_of(body)


def _set(body: Node) -> SqlEffects:
    if body.get("name") in ("standard_conforming_strings", "backslash_quote"):
        return unclear("it changes how the text after it is read")
    return READS


def _transaction(body: Node) -> SqlEffects:
    prepared = ("TRANS_STMT_PREPARE", "TRANS_STMT_COMMIT_PREPARED", "TRANS_STMT_ROLLBACK_PREPARED")
    return _WHOLE if body.get("kind") in prepared else READS


_SPECIAL: dict[str, Callable[[Node], SqlEffects]] = {
    "SelectStmt": _select,
    "ExplainStmt": _explain,
    "CopyStmt": _copy,
    "DoStmt": _do,
    "CallStmt": lambda body: joined([_WHOLE, _inner(body)]),
    "ExecuteStmt": lambda body: _WHOLE,
    "PrepareStmt": lambda body: _statement(body.get("query", {})),
    "DeclareCursorStmt": lambda body: _statement(body.get("query", {})),
    "DropStmt": _drop,
    "RenameStmt": _rename,
    "AlterOwnerStmt": _owner,
    "VariableSetStmt": _set,
    "TransactionStmt": _transaction,
    "NotifyStmt": lambda body: _NOTHING_KEPT,
    "CheckPointStmt": lambda body: _NOTHING_KEPT,
    "LockStmt": lambda body: _NOTHING_KEPT,
    "VacuumStmt": lambda body: _NOTHING_KEPT,
}

_READING_COMMAND = re.compile(
    r"d[A-Za-z]*[S+x]*|l[+x]*|z[S]?|sf\+?|sv\+?|x|a|t|T|H|f|C|timing|pset|echo|qecho|warn|q|quit|conninfo|"
    r"encoding|h|help|\?|errverbose|copyright|g|gx|p|print|r|reset|crosstabview|watch|gdesc|bind|parse|"
    r"restrict|unrestrict|close|unset|if|elif|else|endif|set"
)


def _command(line: str) -> SqlEffects:
    """A backslash command of psql, without the backslash."""
    word, _, rest = line.partition(" ")
    rest = rest.strip()
    if "`" in rest or rest.startswith("|") or "\\" in rest:
        return unclear(f"psql's \\{word} runs a program")
    if word == "copy":
        return _client_copy(rest)
    if word in ("g", "gx") and rest and not rest.startswith("("):
        return unclear(f"psql's \\{word} writes {rest}")
    if word == "set" and rest and rest.split()[0].isupper():
        # a special variable such as ECHO; a variable of one's own changes the text of what follows
        return READS
    if word == "set" and rest:
        return unclear("psql's \\set changes the text of what follows")
    if word == "lo_unlink" or word == "lo_import":
        return _WHOLE
    if _READING_COMMAND.fullmatch(word):
        return READS
    return unclear(f"psql's \\{word} is not understood here")


def _client_copy(rest: str) -> SqlEffects:
    last = re.search(r"\b(to|from)\s+(stdin|stdout|pstdin|pstdout)\b", rest, re.IGNORECASE)
    server = re.sub(r"\b(from)\s+('[^']*'|\S+)", r"\1 stdin", rest, count=1, flags=re.IGNORECASE)
    if re.search(r"\bprogram\b", rest, re.IGNORECASE):
        return unclear("psql's \\copy runs a program")
    if not last and re.search(r"\bto\s+('[^']*'|\S+)\s*[^()]*$", rest, re.IGNORECASE):
        return unclear("psql's \\copy writes a file")
    return effects_of(f"copy {server}", "postgresql")
