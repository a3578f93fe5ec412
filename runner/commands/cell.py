"""`runner cell`: one try of one cell, in a process of its own; started by an executor and by nobody else."""

from __future__ import annotations

from pathlib import Path

import click

from agentrewind.commands.given_path import GivenPath
from agentrewind.processes import die_with_parent
from runner.cell_run import try_and_tell
from runner.commands.session import session_of
from runner.order import load_order


@click.command("cell", hidden=True)
@click.argument("folder", type=GivenPath(path_type=Path))
@click.option("--parent", type=int, required=True, help="Process whose end is this one's too.")
@click.pass_context
def cell(context: click.Context, folder: Path, parent: int) -> int:
    """Run the cell that FOLDER/cell.json describes, once."""
    die_with_parent(parent)
    session = session_of(context)
    return try_and_tell(load_order(folder), folder, session.machine())
