"""A group of commands that are named by import path and imported when they are asked for."""

from __future__ import annotations

import pkgutil
from collections.abc import Mapping
from typing import Any

import click

Table = Mapping[str, tuple[str, str]]
"""By its name, where a command is and its short help, which stands here so that `--help` imports none."""


class CommandTable(click.Group):
    """Shows the commands of `table`; those of `hidden`, by import path, can be called and are not shown."""

    def __init__(
        self, *args: Any, table: Table, hidden: Mapping[str, str] | None = None, **more: Any
    ) -> None:
        super().__init__(*args, **more)
        self._table = table
        self._hidden = hidden or {}

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self._table)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        path = self._hidden.get(cmd_name) or self._table.get(cmd_name, ("",))[0]
        if not path:
            return None
        found = pkgutil.resolve_name(path)
        assert isinstance(found, click.Command)
        return found

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, summary) for name, (_, summary) in self._table.items()])
