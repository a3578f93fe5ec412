"""`agentrewind list`: all runs and how each stands."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING

import click

from agentrewind.commands.output import emit, json_option, say, size
from agentrewind.commands.session import Session

if TYPE_CHECKING:
    from agentrewind.run_store import Run


@click.command("list")
@json_option
@click.pass_obj
def list_runs(session: Session, *, as_json: bool) -> None:
    """List runs, newest first.

    A run is `running` while a live process holds its workspace, `interrupted` where nothing tells of an end
    and none does, `damaged` where its log cannot be opened at all.
    """
    from agentrewind.run_store import RunStore

    rows = [_row(session, run) for run in RunStore(session.home).runs()]
    if as_json:
        emit([asdict(row) for row in rows])
        return
    if not rows:
        say(f"no runs in {session.home}; begin with `agentrewind demo`")
        return
    titles = f"{'run':<24}{'state':<13}{'nodes':>6}{'rewinds':>9}{'size':>10}"
    say(f"{titles}  harness, model, workspace", style="faint")
    for row in rows:
        say(_line(row))


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """How a run stands; the field names are those of the document."""

    run_id: str
    state: str = "damaged"
    harness: str | None = None
    model: str | None = None
    nodes: int = 0
    rewinds: int = 0
    bytes: int
    created_at: str
    workspace: str | None = None
    damages: int = 0
    detail: str | None = None


def _row(session: Session, run: Run) -> Row:
    from agentrewind.commands.alive import is_running
    from agentrewind.errors import DamagedError
    from agentrewind.records import MAIN_WORKSPACE
    from agentrewind.rewind.conduct import count_rewinds

    row = Row(run_id=run.run_id, bytes=run.size_bytes(), created_at=run.created_at())
    try:
        timeline = run.timeline()
        header = timeline.header
    except DamagedError as error:
        return replace(row, detail=str(error))
    workspace = header.workspaces.get(MAIN_WORKSPACE)
    finished = timeline.last_finished()
    return replace(
        row,
        state="running" if is_running(session.home, timeline) else timeline.state(),
        harness=header.harness,
        model=header.model,
        nodes=len(timeline.nodes),
        rewinds=count_rewinds(timeline),
        workspace=workspace.root if workspace else None,
        damages=len(timeline.damages),
        detail=finished.detail if finished else None,
    )


def _line(row: Row) -> str:
    line = f"{row.run_id:<24}{row.state:<13}{row.nodes:>6}{row.rewinds:>9}{size(row.bytes):>10}"
    if row.state == "damaged":
        return f"{line}  {row.detail}"
    return f"{line}  {row.harness}, {row.model}, {row.workspace}"
