"""`agentrewind restore`: the files of a node, in a folder of their own or in the workspace itself."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from agentrewind.commands.given_path import GivenPath
from agentrewind.commands.output import emit, json_option, say
from agentrewind.commands.session import Session
from agentrewind.display_text import file_name
from agentrewind.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agentrewind.manual import Done, Machine
    from agentrewind.records import JsonObject

_SHOWN = 40
_GIT_OBJECTS = "/.git/objects/"


@click.command("restore")
@click.argument("run", metavar="RUN")
@click.argument("node", metavar="NODE")
@click.option("--into", metavar="DIR", type=GivenPath(path_type=Path), help="A folder, absent or empty.")
@click.option("--in-place", is_flag=True, help="The workspace itself; `undo` takes it back.")
@click.option(
    "--outside",
    type=click.Choice(["keep", "revert"]),
    help="What to do with changes that no tool call made. [default: stop there]",
)
@click.option("--external", is_flag=True, help="Take back what later calls changed elsewhere as well.")
@click.option("--after", is_flag=True, help="The workspace after the node instead of before it.")
@click.option("--dry-run", is_flag=True, help="Show what would be done and do nothing.")
@json_option
@click.pass_obj
def restore(session: Session, /, *, run: str, node: str, as_json: bool, **given: Any) -> None:
    """Bring back the files of a node: the workspace as it was before NODE ran, or after it.

    Nothing but files moves; the run's log and the agent's context stay as they are. In place, the present
    state is snapshotted first, and what nobody but you can have changed is not reverted unasked.
    """
    into, in_place, outside = given["into"], given["in_place"], given["outside"]
    after, dry_run = given["after"], given["dry_run"]
    if (into is None) is not in_place:
        raise UsageError("say where to restore: --into DIR, or --in-place for the workspace itself")
    if into is not None and (outside is not None or given["external"]):
        raise UsageError("--outside and --external only mean something with --in-place")
    from agentrewind.manual import Outside, restore_elsewhere, restore_in_place

    found = session.open_run(run)
    if into is not None:
        target = session.directory / into
        done = restore_elsewhere(
            found, node, after=after, into=target, dry_run=dry_run, machine=machine_of(session)
        )
    else:
        done = restore_in_place(
            found,
            node,
            after=after,
            outside=Outside(outside or "stop"),
            dry_run=dry_run,
            machine=machine_of(session),
            external=given["external"],
        )
    if as_json:
        emit(done.to_json())
        return
    moment = "after" if after else "before"
    tell_done(done, f"{'would bring' if dry_run else 'brought'} back the files of {moment} {node}")
    if dry_run and done.outside and outside is None:
        say(
            "the restore itself would stop, with exit code 5, at what no tool call changed (outside); "
            "--outside keep leaves it, --outside revert takes it back as well",
            style="bad",
        )
    if done.external and not given["external"]:
        say("  --external takes back what lies outside the workspace, too")
    if in_place and not dry_run:
        say(f"agentrewind undo {found.run_id} takes it back")


def machine_of(session: Session) -> Machine:
    """What a restore needs to know of the machine."""
    from agentrewind.manual import Machine

    return Machine(
        home=session.home,
        user_home=session.user_home,
        clock=session.clock,
        environment=session.environment,
    )


def tell_done(done: Done, title: str) -> None:
    """For people: the paths by what happened to them, and what a restore cannot bring back."""
    say(title, style="strong")
    groups = (
        ("created", done.created, ""),
        ("modified", done.modified, ""),
        ("deleted", done.deleted, ""),
        ("kept", done.kept, "note"),
        ("outside", done.outside, "note"),
        ("lost commit", done.lost_commits, "bad"),
    )
    for name, paths, style in groups:
        named = [path for path in paths if _GIT_OBJECTS not in f"/{path}"]
        for path in named[:_SHOWN]:
            say(f"  {name:<11} {file_name(path)}", style=style)
        if hidden := len(paths) - len(named[:_SHOWN]):
            kind = "in .git/objects" if len(named) <= _SHOWN else "more"
            say(f"  {name:<11} … {hidden} {kind} (--json names all)", style="faint")
    if not (done.created or done.modified or done.deleted):
        say("  no file differs")
    tell_external(done.external)
    if done.verified:
        say("verified: the files are what the snapshot says", style="good")


def tell_external(external: Sequence[JsonObject]) -> None:
    """For people: what became of each piece of state outside the workspace, or how it stands."""
    for each in external:
        state = str(each["state"])
        style = "good" if state in ("restored", "unchanged") else "note"
        say(f"  {'elsewhere' if state == 'preserved' else state:<11} {each['what']!s}", style=style)
        detail = each.get("detail")
        for line in detail if isinstance(detail, list) else ():
            say(f"              {line!s}", style="faint")
