"""`agentrewind keep`: a run as a folder of a repository, to be replayed by its tests."""

from __future__ import annotations

from pathlib import Path

import click

from agentrewind.commands.given_path import GivenPath
from agentrewind.commands.output import counted, emit, json_option, say, size
from agentrewind.commands.session import Session


@click.command("keep")
@click.argument("run", metavar="RUN")
@click.argument("folder", metavar="DIR", type=GivenPath(path_type=Path))
@json_option
@click.pass_obj
def keep(session: Session, *, run: str, folder: Path, as_json: bool) -> None:
    """Keep a run in a folder, absent or empty, as a test of the agent's code.

    The folder gets all that a replay needs: the log, and the workspace as the run found it. Messages and
    tool results stay as they were; read them before you commit them. The pytest fixture `kept_run` replays
    it and fails with the first difference.
    """
    from agentrewind.kept_runs import keep_run

    found = session.open_run(run)
    kept = keep_run(found, session.directory / folder, home=session.home)
    nodes = len(found.timeline().path())
    sizes = [path.stat().st_size for path in kept.rglob("*") if path.is_file()]
    if as_json:
        emit(
            {
                "run_id": found.run_id,
                "folder": str(kept),
                "nodes": nodes,
                "files": len(sizes),
                "bytes": sum(sizes),
            }
        )
        return
    what = f"{counted(len(sizes), 'file')}, {size(sum(sizes))}"
    say(f"kept {counted(nodes, 'node')} of {found.run_id} in {folder}: {what}")
