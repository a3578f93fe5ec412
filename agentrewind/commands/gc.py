"""`agentrewind gc`: make room, dropping nothing that a kept run names."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import click

from agentrewind.commands.output import counted, emit, json_option, say, size
from agentrewind.commands.session import Session
from agentrewind.display_text import file_name, shorten
from agentrewind.errors import UsageError

if TYPE_CHECKING:
    from agentrewind.collecting import Collected

_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_AGES = {"w": "weeks", "d": "days", "h": "hours", "min": "minutes"}


@click.command("gc")
@click.option(
    "--budget", metavar="SIZE", help="Also drop the oldest ended runs until this much is left: 500M."
)
@click.option(
    "--backup-age",
    metavar="AGE",
    help="Also drop backups that belong to no run and are older than this: 30d, 12h.",
)
@click.option(
    "--backup-budget",
    metavar="SIZE",
    help="Also drop the oldest backups that belong to no run until those take this much: 500M.",
)
@click.option("--dry-run", is_flag=True, help="Only name what would go.")
@json_option
@click.pass_context
def gc(
    context: click.Context,
    /,
    *,
    budget: str | None,
    backup_age: str | None,
    backup_budget: str | None,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Make room in the store.

    Drops snapshots and backups that no run names, and what killed processes left behind. With --budget it
    also drops whole runs with their backups, the oldest first: only those that were accepted or rejected, and
    never the newest of a workspace. Backups by hooks of other harnesses belong to no run; they stay unless
    --backup-age or --backup-budget says otherwise, and --budget does not count them. What the last restore of
    a backup preserved stays, and every backup whose restore was interrupted. Workspaces where a run is at
    work are left alone. Exit code 1 when the budget cannot be met, or a store not be written.
    """
    session = context.find_object(Session)
    assert session is not None
    from agentrewind.backup.collecting import Limits
    from agentrewind.collecting import collect_all, foresee

    limit = None if budget is None else read_size(budget, option="--budget")
    limits = Limits(
        since=None if backup_age is None else _before(session.clock.now(), read_age(backup_age)),
        bytes=None if backup_budget is None else read_size(backup_budget, option="--backup-budget"),
    )
    act = foresee if dry_run else collect_all
    done = act(session.home, clock=session.clock, budget=limit, limits=limits)
    if as_json:
        emit(done.to_json())
    else:
        _tell(done)
        if not done.within_budget:
            say(f"still more than {budget}: what is left is needed or could be resumed", style="bad")
    context.exit(0 if done.within_budget and not done.failed else 1)


def _tell(done: Collected) -> None:
    word = "may go, as the budget needs it:" if done.forecast else "dropped"
    for name in done.runs_dropped:
        say(f"{word} run {name}")
    word = "would drop" if done.forecast else "dropped"
    for entry in done.backups.entries:
        say(f"{word} backup {entry.id}  {shorten(file_name(entry.name), 70)}")
    for reason in done.failed:
        say(f"not collected: {reason}", style="bad")
    for name in done.busy:
        say(f"left alone, a run is at work there: workspaces/{name}", style="note")
    if done.backups.busy:
        say("left alone, calls or restores are under way: backups", style="note")
    if done.hook_bytes:
        say(f"{size(done.hook_bytes)} in backups of no run (--backup-age, --backup-budget)", style="faint")
    dropped = (
        f"{counted(len(done.backups.entries), 'backup')} with {size(done.backups.bytes)} of their own"
        if done.backups.entries or done.backups.bytes
        else "no backup"
    )
    if done.forecast:
        say(f"{size(done.size_before)} now; {dropped} would go; nothing was changed")
        return
    objects, runs = counted(done.objects_dropped, "object"), counted(len(done.runs_dropped), "run")
    sizes = f"{size(done.size_before)} before, {size(done.size_after)} now"
    say(f"{sizes}; {objects}, {runs} and {dropped} dropped")


def read_size(text: str, *, option: str) -> int:
    """Bytes from a number with a unit: `500M`, `2 GB`, `1024`. Raises UsageError."""
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?)i?b?\s*", text.lower(), re.ASCII)
    if found is None:
        raise UsageError(f"{option} {text}: a size looks like 500M or 2G")
    return int(float(found[1]) * _UNITS[found[2]])


def read_age(text: str) -> timedelta:
    """A time from a number with a unit: `30d`, `12h`, `90min`, `2w`. Raises UsageError."""
    found = re.fullmatch(r"\s*(\d{1,6}(?:\.\d+)?)\s*(w|d|h|min)\s*", text.lower(), re.ASCII)
    if found is None:
        raise UsageError(f"--backup-age {text}: an age looks like 30d, 12h, 90min or 2w")
    return timedelta(**{_AGES[found[2]]: float(found[1])})


def _before(now: str, age: timedelta) -> str:
    """The moment that long ago, as logs write moments; the beginning of time where it is none."""
    try:
        moment = datetime.fromisoformat(now) - age
    except OverflowError:
        return ""
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"
