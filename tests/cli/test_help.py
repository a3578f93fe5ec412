"""The help texts, which are read in review, and how quickly they come."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import click
import pytest

from agentrewind.cli import COMMANDS, agentrewind
from agentrewind.commands.backup import COMMANDS as BACKUP_COMMANDS
from tests.cli.desk import PROGRAM, REPOSITORY, Desk

GOLDEN = REPOSITORY / "tests" / "golden" / "cli"


def _same(path: Path, text: str, *, update: bool) -> None:
    if update:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8"), f"{path} differs; review, then --update-golden"


@pytest.mark.parametrize("command", ["", *COMMANDS, *(f"backup {name}" for name in BACKUP_COMMANDS)])
def test_help_is_as_reviewed(desk: Desk, command: str, update_golden: bool) -> None:
    arguments = [*command.split(), "--help"]
    done = desk.call(*arguments, environment=desk.environment(COLUMNS="100"))
    assert done.returncode == 0, done.stderr
    _same(GOLDEN / f"{command.replace(' ', '-') or 'agentrewind'}.txt", done.stdout, update=update_golden)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_of_the_table_exists_and_takes_json(name: str) -> None:
    command = agentrewind.get_command(click.Context(agentrewind), name)
    assert command is not None
    assert command.name == name
    leaves = [command]
    if isinstance(command, click.Group):
        context = click.Context(command)
        leaves = [
            each for part in command.list_commands(context) if (each := command.get_command(context, part))
        ]
    assert leaves
    for leaf in leaves:
        assert any("--json" in parameter.opts for parameter in leaf.params), leaf.name
    assert command.help


def test_no_arguments_show_the_help(desk: Desk) -> None:
    done = desk.call()
    assert done.returncode == 2
    assert "Commands:" in done.stderr


def test_the_reference_is_not_stale() -> None:
    done = subprocess.run(
        [sys.executable, str(REPOSITORY / "scripts" / "cli_reference.py"), "--check"],
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_help_imports_no_command_and_nothing_heavy() -> None:
    code = (
        "import sys, agentrewind.cli as cli\n"
        "try:\n    cli.main(['--help'])\nexcept SystemExit: pass\n"
        "heavy = ('rich', 'dulwich', 'litellm', 'agentrewind.supervise', 'agentrewind.commands.run')\n"
        "print([name for name in heavy if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_the_package_is_imported_in_a_moment() -> None:
    code = "import time; t = time.perf_counter(); import agentrewind; print(time.perf_counter() - t)"
    times = [float(subprocess.check_output([sys.executable, "-c", code])) for _ in range(5)]
    assert min(times) < 0.15


def test_help_comes_at_once(desk: Desk) -> None:
    times = []
    for _ in range(5):
        began = time.perf_counter()
        subprocess.run([*PROGRAM, "--help"], env=desk.environment(), capture_output=True, check=True)
        times.append(time.perf_counter() - began)
    assert min(times) < 1.0
