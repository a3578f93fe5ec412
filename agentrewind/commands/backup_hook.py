"""`agentrewind backup hook`, `install` and `uninstall`: BackUpper as a hook of another harness."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from agentrewind.backup.hosts.request import CHOICES
from agentrewind.commands.given_path import GivenPath
from agentrewind.commands.output import emit, json_option, say
from agentrewind.commands.session import Session
from agentrewind.errors import UsageError

if TYPE_CHECKING:
    from agentrewind.backup.hosts.installing import Change

F = TypeVar("F", bound=Callable[..., Any])

_OPTIONS = (
    click.option(
        "--on-failure",
        type=click.Choice(CHOICES["--on-failure"]),
        default="block",
        show_default=True,
        help="What happens to a call whose backup failed, or when the hook itself did.",
    ),
    click.option(
        "--on-unknown",
        type=click.Choice(CHOICES["--on-unknown"]),
        default="run",
        show_default=True,
        help="What happens to a call that may change what no rule can preserve.",
    ),
    click.option(
        "--trigger",
        type=click.Choice(CHOICES["--trigger"]),
        default="all",
        show_default=True,
        help="Look at every call, or at those alone that are known to write outside the workspace.",
    ),
    click.option(
        "--workspace",
        type=GivenPath(path_type=Path),
        metavar="DIR",
        help="A directory that the harness keeps snapshots of. Default: none, all files are preserved.",
    ),
)
"""What the hook is told when it is started, by a person or from a harness's settings."""


def _hook_options(command: F) -> F:
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


@click.command("hook")
@click.argument("harness", metavar="HARNESS")
@_hook_options
@click.option("--json", "as_json", is_flag=True, hidden=True, help="The answer is a JSON document anyway.")
@click.pass_obj
def hook(session: Session, /, *, harness: str, as_json: bool, **options: Any) -> int:
    """Answer one tool call of HARNESS: its JSON document on standard input, the answer in its own form.

    HARNESS is claude-code, codex, hermes, gemini-cli, opencode, openhands or openclaw. What the call may
    change is preserved before the answer is given; no model is asked and no call is rewritten. `install`
    puts a quicker form of this command into the harness's settings.
    """
    from agentrewind.backup.hosts.handling import answer
    from agentrewind.backup.hosts.request import Request

    request = Request(
        words=(harness, *_words(options)),
        directory=str(session.directory),
        environment=session.environment,
        document=sys.stdin.buffer.read(),
    )
    reply = answer(request, session.clock)
    click.echo(reply.stdout, nl=False)
    click.echo(reply.stderr, nl=False, err=True)
    return reply.code


@click.command("install")
@click.argument("harness", metavar="HARNESS")
@_hook_options
@click.option("--dry-run", is_flag=True, help="Only show what would change.")
@json_option
@click.pass_obj
def install(session: Session, /, *, harness: str, dry_run: bool, as_json: bool, **options: Any) -> None:
    """Put the hook into the user's settings of HARNESS, after showing the change.

    A copy of the file as it was is kept beside it; `uninstall` takes the hook out again. Installing once
    more replaces the options.
    """
    from agentrewind.backup.hosts.installing import NOTES, install_changes

    words = _words(options)
    note = NOTES.get(harness, "")
    _carry_out(install_changes(harness, _home(session), words), note, dry_run=dry_run, as_json=as_json)


@click.command("uninstall")
@click.argument("harness", metavar="HARNESS")
@click.option("--dry-run", is_flag=True, help="Only show what would change.")
@json_option
@click.pass_obj
def uninstall(session: Session, *, harness: str, dry_run: bool, as_json: bool) -> None:
    """Take the hook out of the user's settings of HARNESS, and nothing else."""
    from agentrewind.backup.hosts.installing import uninstall_changes

    _carry_out(uninstall_changes(harness, _home(session)), "", dry_run=dry_run, as_json=as_json)


def _words(options: Mapping[str, Any]) -> tuple[str, ...]:
    """The options as a hook's request has them, in one order whatever was typed first."""
    given = {f"--{name.replace('_', '-')}": options[name] for name in sorted(options) if options[name]}
    return tuple(word for name, value in given.items() for word in (name, str(value)))


def _home(session: Session) -> Path:
    if session.user_home is None:
        raise UsageError("HOME is not set, so it is not known whose settings are meant")
    return session.user_home


def _carry_out(changes: list[Change], note: str, *, dry_run: bool, as_json: bool) -> None:
    from agentrewind.backup.hosts.installing import apply

    wanted = [change for change in changes if not change.empty]
    if not as_json:
        for change in wanted:
            say(change.shown().rstrip("\n"))
    kept = [] if dry_run else apply(wanted)
    if as_json:
        emit(
            {
                "changes": [{"path": str(each.path), "diff": each.shown()} for each in wanted],
                "done": not dry_run,
                "copies": [str(path) for path in kept],
                "note": note,
            }
        )
        return
    if not wanted:
        say("nothing to change")
    elif dry_run:
        say("nothing was changed", style="faint")
    for path in kept:
        say(f"as it was: {path}", style="faint")
    if note:
        say(note, style="note")
