"""`agentrewind backup log`, `show` and `verify`: what was preserved, and whether it is still whole."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from agentrewind.commands.output import counted, emit, json_option, paged, say, size
from agentrewind.commands.session import Session
from agentrewind.display_text import file_name, shorten
from agentrewind.errors import DamagedError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from agentrewind.backup.entries import Entry
    from agentrewind.backup.log import BackupLog
    from agentrewind.backup.store import BackupStore

_STYLES = {"restored": "good", "partly": "note", "unknown": "bad", "failed": "bad", "not covered": "note"}


@click.command("log")
@click.option("--run", "run_name", metavar="RUN", help="Only what calls of this run changed.")
@click.option("--all", "everything", is_flag=True, help="Also what restores preserved before they began.")
@json_option
@click.pass_obj
def log(session: Session, *, run_name: str | None, everything: bool, as_json: bool) -> None:
    """List what was preserved before calls, oldest first, and what became of it.

    Each line: the entry's id, its state, what it is, and the call. Entries without a target are calls for
    which nothing could be preserved.
    """
    from agentrewind.backup.entry_lines import as_document

    run_id = session.open_run(run_name).run_id if run_name else None
    found = open_log(session).read()
    entries = [
        entry
        for entry in found.entries.values()
        if (everything or entry.undoes is None) and (run_id is None or entry.run_id == run_id)
    ]
    _warn(found.damages)
    if as_json:
        emit([as_document(entry) for entry in entries])
        return
    with paged():
        for entry in entries:
            _tell(entry)
        if not entries:
            say("nothing was preserved yet")


@click.command("show")
@click.argument("entry_id", metavar="BACKUP")
@json_option
@click.pass_obj
def show(session: Session, *, entry_id: str, as_json: bool) -> None:
    """Show one backup whole: the call, what was preserved, and what a restore would do now.

    BACKUP is an id as `backup log` shows it, a unique beginning of one, or `last`.
    """
    from agentrewind.backup.entry_lines import as_document
    from agentrewind.commands.backup_restore import opened

    entry = open_log(session).entry(entry_id)
    with opened(session) as restoring:
        ((_, plan),) = restoring.plan([entry.id])
    if as_json:
        emit({**as_document(entry), "plan": list(plan)})
        return
    say(f"{entry.id}  {file_name(entry.name)}", style="strong")
    where = f"run {entry.run_id}, {entry.node}" if entry.run_id else "no run"
    rows = [
        ("state", entry.state.value),
        ("at", entry.at),
        ("call", f"{entry.tool}: {entry.call}"),
        ("where", f"{where}, in {entry.cwd}"),
        ("tier", f"{entry.tier.value}{f' by {entry.rule}' if entry.rule else ''}"),
        ("size", size(entry.captured.bytes) if entry.captured else "nothing"),
        *(("note", line) for line in _notes(entry)),
        *(("restore", line) for line in plan),
    ]
    for name, text in rows:
        say(f"  {name:<8} {file_name(text)}")


@click.command("verify")
@json_option
@click.pass_context
def verify(context: click.Context, *, as_json: bool) -> None:
    """Check that every backup can be restored: the log's lines, and each payload by its hash."""
    from agentrewind.backup.places import directory_of
    from agentrewind.backup.store import BackupStore

    session = context.find_object(Session)
    assert session is not None
    with BackupStore(directory_of(session.home)) as store, store.in_use():
        found = open_log(session).read()
        uses: dict[str, list[str]] = {}
        for entry in found.entries.values():
            for name in entry.captured.blobs if entry.captured else ():
                uses.setdefault(name, []).append(f"{entry.id} ({entry.name})")
        problems = [*found.damages, *_unsound(store, uses)]
    if as_json:
        emit({"entries": len(found.entries), "payloads": len(uses), "problems": list(problems)})
    else:
        for line in problems:
            say(file_name(line), style="bad")
        say(f"{len(found.entries)} entries, {len(uses)} payloads, {len(problems)} problems")
    if problems:
        context.exit(DamagedError.exit_code)


def _unsound(store: BackupStore, uses: Mapping[str, Sequence[str]]) -> Iterator[str]:
    for name, users in uses.items():
        try:
            store.check(name)
        except DamagedError as error:
            yield from (f"{user}: {error}" for user in users)


def open_log(session: Session) -> BackupLog:
    """The backup log of this home."""
    from agentrewind.backup.log import BackupLog
    from agentrewind.backup.places import directory_of

    return BackupLog(directory_of(session.home), session.clock)


def _tell(entry: Entry) -> None:
    style = _STYLES.get(entry.state.value, "")
    say(f"{entry.id}  {entry.state.value:<12} {_cut(entry.name, 70)}", style=style)
    if entry.target is not None:
        where = f"{entry.node}  " if entry.node else ""
        say(f"    {where}{file_name(entry.tool)}: {_cut(entry.call, 80)}", style="faint")
    for line in _notes(entry)[:3]:
        say(f"    {_cut(line, 100)}", style="faint")


def _notes(entry: Entry) -> tuple[str, ...]:
    if not entry.masked:
        return entry.detail
    return (f"{counted(entry.masked, 'credential')} masked in what the backup model saw", *entry.detail)


def _cut(text: str, width: int) -> str:
    """The text in one line of this width, where nothing that a name holds is lost but by the cut."""
    return shorten(file_name(text), width)


def _warn(damages: tuple[str, ...]) -> None:
    for line in damages:
        click.echo(f"warning: {file_name(line)}", err=True)
