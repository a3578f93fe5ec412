"""`agentrewind gc`: make room, dropping nothing that a kept run names."""

from __future__ import annotations

import re

import click

from agentrewind.commands.output import counted, emit, json_option, say, size
from agentrewind.commands.session import Session
from agentrewind.errors import UsageError

_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}


@click.command("gc")
@click.option(
    "--budget", metavar="SIZE", help="Also drop the oldest ended runs until this much is left: 500M."
)
@json_option
@click.pass_context
def gc(context: click.Context, /, *, budget: str | None, as_json: bool) -> None:
    """Make room in the store.

    Drops snapshots that no run names and what killed processes left behind. With --budget it also drops
    whole runs, the oldest first: only those that were accepted or rejected, and never the newest of a
    workspace. Workspaces where a run is at work are left alone. Exit code 1 when the budget cannot be met.
    """
    session = context.find_object(Session)
    assert session is not None
    from agentrewind.collecting import collect_all

    limit = None if budget is None else read_size(budget)
    done = collect_all(session.home, budget=limit)
    if as_json:
        emit(done.to_json())
    else:
        for name in done.runs_dropped:
            say(f"dropped run {name}")
        for name in done.busy:
            say(f"left alone, a run is at work there: workspaces/{name}", style="note")
        say(
            f"{size(done.size_before)} before, {size(done.size_after)} now; "
            f"{counted(done.objects_dropped, 'object')} and {counted(len(done.runs_dropped), 'run')} dropped"
        )
        if not done.within_budget:
            say(f"still more than {budget}: what is left is needed or could be resumed", style="bad")
    context.exit(0 if done.within_budget else 1)


def read_size(text: str) -> int:
    """Bytes from a number with a unit: `500M`, `2 GB`, `1024`. Raises UsageError."""
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?)i?b?\s*", text.lower())
    if found is None:
        raise UsageError(f"--budget {text}: a size looks like 500M or 2G")
    return int(float(found[1]) * _UNITS[found[2]])
