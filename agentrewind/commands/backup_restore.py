"""`agentrewind backup restore` and `undo`: state outside the workspace, back as it was before a call."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import groupby
from typing import TYPE_CHECKING

import click

from agentrewind.commands.backup_log import open_log
from agentrewind.commands.output import emit, json_option, say
from agentrewind.commands.session import Session
from agentrewind.display_text import file_name, shorten
from agentrewind.errors import ProtectedError, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agentrewind.backup.entries import Entry
    from agentrewind.backup.log import BackupLog
    from agentrewind.backup.restoring import Restoring, Result


@click.command("restore")
@click.argument("entry_ids", metavar="BACKUP...", nargs=-1, required=True)
@click.option("--dry-run", is_flag=True, help="Show what would be done and do nothing.")
@click.option("--force", is_flag=True, help="Also where something has changed it since.")
@json_option
@click.pass_context
def restore(
    context: click.Context, *, entry_ids: tuple[str, ...], dry_run: bool, force: bool, as_json: bool
) -> None:
    """Bring back what was preserved before a call.

    BACKUP is an id as `backup log` shows it, a unique beginning of one, or `last`: everything that the last
    call changed. Several come back newest first. Where something else has changed the state since the call,
    nothing is touched without --force. What is there now is preserved first; `backup undo` brings it again.
    """
    session = context.find_object(Session)
    assert session is not None
    log = open_log(session)
    chosen = [entry for each in entry_ids for entry in log.named(each)]
    if "last" in entry_ids and not as_json:
        _tell_bare(log, log.entry("last"))
    with opened(session) as restoring:
        if dry_run:
            _tell_plan(restoring, [entry.id for entry in chosen], as_json=as_json)
            return
        results = restoring.restore([entry.id for entry in chosen], by=f"person {log.new_id()}", force=force)
    _finish(context, results, as_json=as_json)


@click.command("undo")
@click.argument("entry_ids", metavar="[BACKUP...]", nargs=-1)
@click.option("--dry-run", is_flag=True, help="Show what would be done and do nothing.")
@json_option
@click.pass_context
def undo(context: click.Context, *, entry_ids: tuple[str, ...], dry_run: bool, as_json: bool) -> None:
    """Take back the restore of a backup, or the last restore; a second undo takes the first one back."""
    from agentrewind.backup.entries import last_restore

    session = context.find_object(Session)
    assert session is not None
    log = open_log(session)
    entries = log.read().entries
    wanted = {log.entry(each).id for each in entry_ids if each != "last"}
    safeties = [
        entry.id
        for entry in entries.values()
        if entry.undoes is not None and entry.restorable and (entry.undoes in wanted or entry.id in wanted)
    ]
    if not entry_ids or "last" in entry_ids:
        safeties += [entry.id for entry in last_restore(entries.values())]
    if not safeties:
        raise UsageError("no restore can be taken back (see `agentrewind backup log --all`)")
    with opened(session) as restoring:
        if dry_run:
            _tell_plan(restoring, safeties, as_json=as_json)
            return
        results = restoring.restore(safeties, by=f"undo {log.new_id()}")
    _finish(context, results, as_json=as_json)


@contextmanager
def opened(session: Session) -> Iterator[Restoring]:
    """The log and the payloads of this home, for a restore by a person."""
    from agentrewind.backup.log import BackupLog
    from agentrewind.backup.places import directory_of
    from agentrewind.backup.restoring import Restoring
    from agentrewind.backup.store import BackupStore

    with BackupStore(directory_of(session.home)) as store:
        yield Restoring(
            store=store,
            log=BackupLog(directory_of(session.home), session.clock),
            clock=session.clock,
            environment=session.environment,
            workspace=None,
        )


def _tell_plan(restoring: Restoring, ids: Sequence[str], *, as_json: bool) -> None:
    planned = restoring.plan(ids)
    if as_json:
        emit([{"id": entry.id, "what": entry.name, "plan": list(lines)} for entry, lines in planned])
        return
    for call, entries in groupby(planned, key=lambda each: _call(each[0])):
        say(f"of the call {call}:")
        for entry, lines in entries:
            say(f"{entry.id}  {file_name(entry.name)}", style="strong")
            for line in lines:
                say(f"  would {file_name(line)}")


def _tell_bare(log: BackupLog, last: Entry) -> None:
    """Later calls for which nothing was preserved; `last` cannot mean them, and is not silent about it."""
    entries = list(log.read().entries.values())
    for entry in entries[[each.id for each in entries].index(last.id) + 1 :]:
        if entry.state.value in ("not covered", "failed"):
            say(f"nothing was preserved for the later call {_call(entry)}", style="note")


def _call(entry: Entry) -> str:
    return f"{file_name(entry.tool)}: {shorten(file_name(entry.call), 80)}"


def _finish(context: click.Context, results: Sequence[Result], *, as_json: bool) -> None:
    """Tell what became of each, and leave with the code of the worst."""
    if as_json:
        emit([{**result.to_json(), "call": result.entry.call} for result in results])
    else:
        for call, members in groupby(results, key=lambda result: _call(result.entry)):
            _tell_call(call, list(members))
        if any(result.moved for result in results):
            say("agentrewind backup undo takes it back")
    if any(result.state.value == "preserved" for result in results):
        context.exit(ProtectedError.exit_code)
    if not all(result.back for result in results):
        context.exit(1)


def _tell_call(call: str, results: Sequence[Result]) -> None:
    if all(result.entry.state.value == "unchanged" for result in results):
        say(f"the call {call} changed nothing; nothing was done")
        return
    say(f"of the call {call}:")
    for result in results:
        state = "left as it is" if result.state.value == "preserved" else result.state.value
        say(f"{state:<14} {file_name(result.entry.name)}", style="good" if result.back else "bad")
        for line in result.detail:
            say(f"    {file_name(line)}", style="faint")
