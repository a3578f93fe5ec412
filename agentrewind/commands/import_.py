"""`agentrewind import`: a run that was exported elsewhere, into this store."""

from __future__ import annotations

from pathlib import Path

import click

from agentrewind.commands.output import counted, emit, json_option, say
from agentrewind.commands.session import Session


@click.command("import")
@click.argument("file", metavar="FILE", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@json_option
@click.pass_obj
def import_(session: Session, *, file: Path, as_json: bool) -> None:
    """Bring the run of FILE, which `agentrewind export` wrote, into the store.

    Every member is compared with its hash first; a damaged archive brings nothing. The run can be looked at,
    compared, replayed and its files restored; a variable of an agent's code that was kept there never loads.
    """
    from agentrewind.archive import import_run

    report = import_run(session.directory / file, home=session.home)
    if as_json:
        emit(report)
        return
    nodes, snapshots = int(str(report["nodes"])), int(str(report["snapshots"]))
    say(f"imported {report['run_id']!s}: {counted(nodes, 'node')}, {counted(snapshots, 'snapshot')}")
    if report["redacted"]:
        say("it was redacted: it has no files, and cannot be replayed", style="note")
