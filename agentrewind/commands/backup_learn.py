"""`agentrewind backup explore|proposals|accept|reject`: what a model has learned, for a person to judge."""

from __future__ import annotations

import tempfile
from pathlib import Path

import click

from agentrewind.commands.output import emit, json_option, say
from agentrewind.commands.session import Session


@click.command("explore")
@click.argument("tool")
@click.option("--backup-model", required=True, metavar="M", help="The model that tries it.")
@json_option
@click.pass_obj
def explore(session: Session, *, tool: str, backup_model: str, as_json: bool) -> None:
    """Let a model try TOOL once in a scratch directory, and keep what it found out.

    The subagent that preserves state before calls of such a tool is told of it. The machine is read-only to
    the trial; services that it can reach are not.
    """
    from agentrewind.backup.assistant import exploring
    from agentrewind.backup.assistant.model import LitellmModel
    from agentrewind.backup.joining import user_home
    from agentrewind.backup.values import Context

    with tempfile.TemporaryDirectory(prefix="agentrewind-explore-") as folder:
        context = Context(cwd=Path("/"), env=session.environment, home=user_home(session.environment))
        found = exploring.explore(
            tool, LitellmModel(backup_model), directory=Path(folder).resolve(), context=context
        )
    path = exploring.keep(session.home, found)
    if as_json:
        emit({"tool": tool, "words": [*found.words], "text": found.text, "file": str(path)})
        return
    say(found.text)
    say(f"kept in {path}, for calls with: {', '.join(found.words)}", style="note")


@click.command("proposals")
@json_option
@click.pass_obj
def proposals(session: Session, *, as_json: bool) -> None:
    """Show the rules that a model has proposed, each as a change of your rules file."""
    from agentrewind.backup.assistant import reflection

    waiting = reflection.proposals(session.home)
    if as_json:
        emit([{"id": each.id, "diff": reflection.difference(session.home, each)} for each in waiting])
        return
    if not waiting:
        say("no rule is proposed")
    for each in waiting:
        say(each.id, style="strong")
        say(reflection.difference(session.home, each))


@click.command("accept")
@click.argument("proposal")
@json_option
@click.pass_obj
def accept(session: Session, *, proposal: str, as_json: bool) -> None:
    """Put proposed rules into your rules file; they act from the next run on, marked as untried."""
    from agentrewind.backup.assistant import reflection

    path = reflection.accept(session.home, proposal)
    if as_json:
        emit({"accepted": proposal, "file": str(path)})
        return
    say(f"{proposal} is in {path}")


@click.command("reject")
@click.argument("proposal")
@json_option
@click.pass_obj
def reject(session: Session, *, proposal: str, as_json: bool) -> None:
    """Forget proposed rules."""
    from agentrewind.backup.assistant import reflection

    reflection.reject(session.home, proposal)
    if as_json:
        emit({"rejected": proposal})
        return
    say(f"{proposal} is forgotten")
