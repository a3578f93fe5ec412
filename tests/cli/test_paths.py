"""Options and arguments that take a path."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from agentrewind.cli import agentrewind
from agentrewind.commands.given_path import GivenPath
from runner.cli import runner
from tests.cli.desk import Desk


def commands(command: click.Command, *names: str) -> Iterator[tuple[str, click.Command]]:
    yield " ".join(names), command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            assert found is not None
            yield from commands(found, *names, name)


def test_none_takes_the_empty_text_for_the_current_folder() -> None:
    taken = [
        (name, parameter)
        for name, command in (*commands(agentrewind, "agentrewind"), *commands(runner, "runner"))
        for parameter in command.params
        if isinstance(parameter.type, click.Path)
    ]
    assert len(taken) > 20
    for name, parameter in taken:
        assert isinstance(parameter.type, GivenPath), (name, parameter.name)
        with pytest.raises(click.BadParameter, match="empty"):
            parameter.type.convert("", parameter, None)


def test_an_empty_workspace_is_a_usage_error_and_makes_nothing(desk: Desk, tmp_path: Path) -> None:
    done = desk.call("run", "--workspace", "", "--", "true")
    assert done.returncode == 2
    assert "the path is empty" in done.stderr
    assert desk.json("list") == []
