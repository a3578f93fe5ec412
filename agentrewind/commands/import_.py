"""`agentrewind import`: a run that was exported elsewhere, into this store."""

from __future__ import annotations

from pathlib import Path

import click

from agentrewind.commands.given_path import GivenPath
from agentrewind.commands.output import counted, emit, json_option, say
from agentrewind.commands.session import Session


@click.command("import")
@click.argument("file", metavar="FILE|DIR", type=GivenPath(exists=True, path_type=Path))
@json_option
@click.pass_obj
def import_(session: Session, *, file: Path, as_json: bool) -> None:
    """Bring the run of FILE, which `agentrewind export` wrote, into the store.

    Every member is compared with its hash first; a damaged archive brings nothing. The run can be looked at,
    compared, replayed and its files restored; a variable of an agent's code that was kept there never loads.

    FILE may also be a trajectory that mini-SWE-agent saved (*.traj.json), which its contents tell. The run
    that is made of it was not recorded: it can be looked at and compared, and nothing else.

    A folder is one that `agentrewind keep` made: it holds the log, and of the files only how they were at the
    beginning.
    """
    from agentrewind.archive import import_run
    from agentrewind.kept_runs import import_kept
    from agentrewind.trajectories import import_trajectory, is_trajectory

    path = session.directory / file
    other = import_trajectory if is_trajectory(path) else import_run
    report = (import_kept if path.is_dir() else other)(path, home=session.home, clock=session.clock)
    if as_json:
        emit(report)
        return
    nodes, snapshots, absent = (int(str(report[name])) for name in ("nodes", "snapshots", "absent"))
    say(f"imported {report['run_id']!s}: {counted(nodes, 'node')}, {counted(snapshots, 'snapshot')}")
    if "digest" in report:
        say(f"digest {report['digest']!s}")
    if "trajectory" in report:
        say("it was made of a trajectory and not recorded: it can be looked at and compared", style="note")
    elif report["redacted"]:
        say("it was redacted: it has no files, and cannot be replayed", style="note")
    elif absent:
        say(f"{counted(absent, 'other state')} of its files did not come along", style="note")
