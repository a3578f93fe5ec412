"""Says which tools of MCP servers change nothing, by a table of servers and the SQL that they are given."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from fnmatch import fnmatchcase
from functools import cache
from importlib import resources
from typing import Any

from agentrewind.backup.understanding.sql import read_sql
from agentrewind.backup.values import ToolCall

PREFIX = "mcp__"


def is_mcp(name: str) -> bool:
    """Whether this is the name of an MCP server's tool."""
    return name.startswith(PREFIX) and "__" in name[len(PREFIX) :]


def tool_reads(call: ToolCall) -> bool:
    """Whether an MCP tool's call changes nothing; of an unknown server or tool this is never so."""
    server, _, tool = call.name[len(PREFIX) :].partition("__")
    for entry in _entries(server):
        if tool in entry.get("reads", []):
            return True
        argument = entry.get("sql", {}).get(tool)
        text = call.arguments.get(argument) if isinstance(call.arguments, dict) and argument else None
        if isinstance(text, str):
            return read_sql(text, entry["dialect"]).read_only
    return False


def _entries(server: str) -> Iterator[dict[str, Any]]:
    """The servers of the table that go by such a name, the longest pattern first."""
    found = [
        (max(map(len, fitting)), entry)
        for entry in _table()
        if (fitting := [name for name in entry["name"] if fnmatchcase(server.lower(), name)])
    ]
    yield from (entry for _, entry in sorted(found, key=lambda each: -each[0]))


@cache
def _table() -> list[dict[str, Any]]:
    text = resources.files(__package__).joinpath("mcp_servers.toml").read_text("utf-8")
    table: list[dict[str, Any]] = tomllib.loads(text)["server"]
    return table
