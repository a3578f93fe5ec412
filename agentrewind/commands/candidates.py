"""`agentrewind candidates`: what the agent would see now if it asked where it could go back to."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from agentrewind.commands.output import counted, emit, json_option, say
from agentrewind.commands.session import Session

if TYPE_CHECKING:
    from agentrewind.records import Json


@click.command("candidates")
@click.argument("run", metavar="RUN")
@json_option
@click.pass_obj
def candidates(session: Session, *, run: str, as_json: bool) -> None:
    """Show where the agent could go back to now, newest first.

    At most 80 checkpoints of the current path, each with the calls that followed it, the files they
    changed, and the notes that were brought back to it.
    """
    from agentrewind.provenance import refuse_trajectory
    from agentrewind.rewind.candidates import listing
    from agentrewind.rewind.conduct import view_of

    timeline = session.open_run(run).timeline()
    refuse_trajectory(timeline)
    found = listing(view_of(timeline, asking=None))
    entries = found["candidates"]
    if as_json:
        emit(entries)
        return
    assert isinstance(entries, list)
    for entry in entries:
        _tell(entry)
    if not entries:
        say("no checkpoint yet: the agent has given no answer")
    if "older_not_shown" in found:
        say(f"… {_text(found['older_not_shown'])} older ones not shown", style="faint")


def _tell(entry: Json) -> None:
    from agentrewind.display_text import shorten

    assert isinstance(entry, dict)
    summary = shorten(_text(entry["summary"]), 90)
    say(f"{_text(entry['record_uid'])}  step {_text(entry['step'])}  {summary}", style="strong")
    for tool in _list(entry["tools"]):
        code = f"  exit {_text(tool['exit_code'])}" if "exit_code" in tool else ""
        say(f"    {_text(tool['name'])} {shorten(_text(tool['arguments']), 80)}{code}")
    files = _list(entry["files"])
    if files:
        names = ", ".join(f"{_text(each['status'])} {_text(each['path'])}" for each in files[:5])
        say(f"    {counted(len(files), 'file')}: {shorten(names, 90)}", style="faint")
    for each in _list(entry["external"]):
        outcome = "can be restored" if each.get("restorable") else _text(each.get("state", "not restorable"))
        say(f"    outside: {shorten(_text(each.get('what', '')), 70)} ({outcome})", style="note")
    memories = entry["memories"]
    for memory in memories if isinstance(memories, list) else ():
        say(f"    note: {shorten(_text(memory), 90)}", style="rewind")


def _text(value: Json) -> str:
    return value if isinstance(value, str) else repr(value)


def _list(value: Json) -> list[dict[str, Json]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []
