"""`runner regrade`: judge finished cells again, by their snapshots and the tasks as they are now."""

from __future__ import annotations

from pathlib import Path

import click

from agentrewind.commands.given_path import GivenPath
from agentrewind.run_store import RunStore
from mettlebench.load import load_task
from runner.assemble import digest_of, regraded
from runner.campaign import Campaign
from runner.commands.session import session_of
from runner.grade import STORE, grader, states
from runner.order import load_order
from runner.result import Result
from runner.result_form import load_results, save_result


@click.command("regrade")
@click.argument("out", type=GivenPath(path_type=Path, exists=True, file_okay=False))
@click.argument("cells", nargs=-1)
@click.option(
    "--tasks", metavar="DIR", type=GivenPath(path_type=Path), help="In place of the folder they had."
)
@click.option("--progress", is_flag=True, help="Grade every snapshot, not the last alone.")
@click.option("--dry-run", is_flag=True, help="Say what would change, and change nothing.")
@click.pass_context
def regrade(
    context: click.Context,
    /,
    *,
    out: Path,
    cells: tuple[str, ...],
    tasks: Path | None,
    progress: bool,
    dry_run: bool,
) -> int:
    """Grade the last snapshot of finished CELLS, or of all, and write that into their results.

    What the agent was told at its submissions stays as it was.
    """
    directory = session_of(context).directory
    campaign = Campaign((directory / out).resolve())
    chosen = [each for each in load_results(campaign.root) if not each.abnormal]
    if cells:
        chosen = [each for each in chosen if each.cell.id in cells]
    changed = 0
    for result in chosen:
        folder = None if tasks is None else (directory / tasks).resolve()
        new = _graded(campaign, result, folder, progress=progress)
        if new == result:
            continue
        changed += 1
        click.echo(f"{result.cell.id}: {result.prefix}/{result.total} is {new.prefix}/{new.total} now")
        if not dry_run:
            save_result(new, campaign.folder(result.cell))
    click.echo(f"{len(chosen)} cells graded, {changed} results " + ("would change" if dry_run else "changed"))
    return 0


def _graded(campaign: Campaign, result: Result, tasks: Path | None, *, progress: bool) -> Result:
    folder = campaign.folder(result.cell)
    order = load_order(folder)
    task = load_task(result.cell.task, tasks or order.tasks)
    home = folder / STORE
    runs = sorted(RunStore(home).runs(), key=lambda run: (run.created_at(), run.run_id))
    with grader(task, home, mode=order.conditions.sandbox) as grades:
        found = states(runs)
        verdict = grades.verdict(found[-1].commit)
        points = grades.curve(found) if progress else result.progress
    return regraded(result, verdict, points, digest_of(task))
