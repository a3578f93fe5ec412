"""`agentrewind list`: all runs and how each stands."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from agentrewind.commands.output import amount, counted, emit, json_option, paged, say, size
from agentrewind.commands.session import Session
from agentrewind.display_text import one_line

if TYPE_CHECKING:
    from agentrewind.run_store import Run

STATES = ("accepted", "rejected", "stopped", "error", "running", "interrupted", "damaged")
_STYLES = {"error": "bad", "damaged": "bad", "running": "note"}
_AGES = ((86_400, "d"), (3600, "h"), (60, "min"))


@click.command("list")
@click.option("--state", multiple=True, type=click.Choice(STATES), help="Only these; may be repeated.")
@click.option("--harness", metavar="NAME", help="Only runs of this harness.")
@click.option("--model", metavar="NAME", help="Only runs whose model's name contains this.")
@click.option("--workspace", metavar="DIR", help="Only runs whose workspace is this folder or lies in it.")
@json_option
@click.pass_obj
def list_runs(session: Session, /, *, as_json: bool, **wanted: Any) -> None:
    """List runs, newest first.

    A run is `running` while a live process holds its workspace, `interrupted` where nothing tells of an end
    and none does, `damaged` where its log cannot be opened at all. Tokens are those of all its LLM calls,
    abandoned ones too; the cost is what providers named and a dash where none did.
    """
    from agentrewind.run_store import RunStore

    runs = RunStore(session.home).runs()
    fits = _filter(session, wanted)
    backups = _backup_sizes(session)
    rows = [row for run in runs if fits(row := row_of(session.home, run, backups.get(str(run.run_id), 0)))]
    if as_json:
        emit([asdict(row) for row in rows])
        return
    if not runs:
        say(f"no runs in {session.home}; begin with `agentrewind demo`")
    elif not rows:
        say(f"none of {counted(len(runs), 'run')} is like that; `agentrewind list` shows all")
    else:
        with paged():
            _tell(rows, session.clock.now())


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """How a run stands; the field names are those of the document."""

    run_id: str
    state: str = "damaged"
    harness: str | None = None
    agent: str | None = None
    model: str | None = None
    nodes: int = 0
    rewinds: int = 0
    tokens_in: int | None = None
    tokens_out: int | None = None
    cost: float | None = None
    bytes: int
    backup_bytes: int = 0
    created_at: str
    workspace: str | None = None
    damages: int = 0
    detail: str | None = None


def row_of(home: Path, run: Run, backup_bytes: int = 0) -> Row:
    """How the run stands now; damage is told, not raised."""
    from agentrewind.agent_name import agent_of, models_of
    from agentrewind.commands.alive import is_running
    from agentrewind.errors import DamagedError
    from agentrewind.records import MAIN_WORKSPACE
    from agentrewind.rewind.conduct import count_rewinds
    from agentrewind.usage import usage_of

    row = Row(
        run_id=run.run_id, bytes=run.size_bytes(), backup_bytes=backup_bytes, created_at=run.created_at()
    )
    try:
        timeline = run.timeline()
        header = timeline.header
    except DamagedError as error:
        return replace(row, detail=str(error))
    workspace = header.workspaces.get(MAIN_WORKSPACE)
    finished = timeline.last_finished()
    usage = usage_of(timeline.nodes.values())
    return replace(
        row,
        state="running" if is_running(home, timeline) else timeline.state(),
        harness=header.harness,
        model=models_of(timeline),
        agent=agent_of(timeline),
        nodes=len(timeline.nodes),
        rewinds=count_rewinds(timeline),
        tokens_in=usage.tokens_in,
        tokens_out=usage.tokens_out,
        cost=usage.cost,
        workspace=workspace.root if workspace else None,
        damages=len(timeline.damages),
        detail=finished.detail if finished else None,
    )


def _backup_sizes(session: Session) -> Mapping[str, int]:
    """What the backups of each run take; nothing is known where their log cannot be read, which is said."""
    from agentrewind.backup.places import has_backups
    from agentrewind.errors import DamagedError

    if not has_backups(session.home):
        return {}
    from agentrewind.backup.sizes import backup_sizes

    try:
        return backup_sizes(session.home, clock=session.clock).of_run
    except DamagedError as error:
        click.echo(f"warning: the sizes of backups are not known: {error}", err=True)
        return {}


def _filter(session: Session, wanted: dict[str, Any]) -> Callable[[Row], bool]:
    """Whether a run is one of those asked for."""
    states, harness, model = wanted["state"], wanted["harness"], wanted["model"]
    below = None if wanted["workspace"] is None else (session.directory / wanted["workspace"]).resolve()

    def fits(row: Row) -> bool:
        return (
            (not states or row.state in states)
            and (harness is None or row.harness == harness)
            and (model is None or model in (row.model or ""))
            and (below is None or _lies_in(row.workspace, below))
        )

    return fits


def _lies_in(workspace: str | None, folder: Path) -> bool:
    return workspace is not None and (Path(workspace) == folder or folder in Path(workspace).parents)


def _tell(rows: list[Row], now: str) -> None:
    width = max(24, 2 + max(len(row.run_id) for row in rows))
    say(
        f"{'run':<{width}}{'state':<13}{'nodes':>6}{'rewinds':>9}{'tokens in/out':>15}{'cost':>9}"
        f"{'size':>10}{'backups':>10}{'age':>9}  harness, model, workspace",
        style="faint",
    )
    for row in rows:
        say(_line(row, width, now), style=_STYLES.get(row.state, ""))


def _line(row: Row, width: int, now: str) -> str:
    tokens = f"{amount(row.tokens_in)}/{amount(row.tokens_out)}"
    cost = "–" if row.cost is None else f"${row.cost:.4f}"
    line = (
        f"{row.run_id:<{width}}{row.state:<13}{row.nodes:>6}{row.rewinds:>9}{tokens:>15}{cost:>9}"
        f"{size(row.bytes):>10}{_backups(row):>10}{age(row.created_at, now):>9}"
    )
    if row.state == "damaged":
        return f"{line}  {one_line(row.detail or '')}"
    what = f"{row.agent}, {row.model or 'no model yet'}, {row.workspace or 'no workspace'}"
    return f"{line}  {one_line(what)}"


def _backups(row: Row) -> str:
    return size(row.backup_bytes) if row.backup_bytes else "–"


def age(since: str, now: str) -> str:
    """How long ago a moment was, in its largest unit; a dash where it is none.

    >>> age("2026-01-31T08:00:00.000Z", "2026-01-31T10:59:00.000Z")
    '2 h'
    """
    try:
        seconds = (datetime.fromisoformat(now) - datetime.fromisoformat(since)).total_seconds()
    except (ValueError, TypeError):
        return "–"
    for length, unit in _AGES:
        if seconds >= length:
            return f"{int(seconds // length)} {unit}"
    return f"{max(0, int(seconds))} s"
