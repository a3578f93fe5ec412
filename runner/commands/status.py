"""`runner status` and `runner cancel`: how a campaign stands, and its end."""

from __future__ import annotations

import json
from pathlib import Path

import click

from agentrewind.commands.given_path import GivenPath
from agentrewind.errors import UsageError
from runner.campaign import Campaign
from runner.commands.session import session_of
from runner.progress import console, line_of, table_of
from runner.result_form import load_results


@click.command("status")
@click.argument("out", type=GivenPath(path_type=Path, exists=True, file_okay=False), default="campaign")
@click.option("--cells", is_flag=True, help="A line for each finished cell as well.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def status(context: click.Context, /, *, out: Path, cells: bool, as_json: bool) -> int:
    """Show how the campaign in OUT stands: what is finished, with means so far, what runs, what is left."""
    campaign = Campaign((session_of(context).directory / out).resolve())
    planned = campaign.planned()
    results = load_results(campaign.root)
    driver = campaign.driver()
    alive = driver is not None and driver.alive is not False
    running = driver.running if driver is not None and alive else ()
    left = [each for each in planned if each not in {result.cell.id for result in results}]
    if as_json:
        document = {
            "planned": len(planned),
            "finished": len(results),
            "abnormal": sum(each.abnormal for each in results),
            "running": list(running),
            "left": left,
            "driver": None if driver is None or not alive else {"host": driver.host, "pid": driver.pid},
        }
        click.echo(json.dumps(document))
        return 0
    if cells:
        for result in results:
            click.echo(line_of(result))
    console().print(table_of(results, running=len(running), waiting=len(left) - len(running)))
    for each in running:
        click.echo(f"running   {each}")
    if driver is not None and not alive:
        click.echo("nothing drives this campaign: its driver was killed; call `runner batch` again")
    return 0


@click.command("cancel")
@click.argument("out", type=GivenPath(path_type=Path, exists=True, file_okay=False))
@click.argument("cells", nargs=-1)
@click.pass_context
def cancel(context: click.Context, /, *, out: Path, cells: tuple[str, ...]) -> int:
    """Ask the driver of the campaign in OUT to end these CELLS, or everything.

    A cancelled cell is marked so and is run again by the next `runner batch`.
    """
    campaign = Campaign((session_of(context).directory / out).resolve())
    unknown = sorted(set(cells) - set(campaign.planned()))
    if unknown:
        raise UsageError(f"the campaign has no cell {unknown[0]!r}; `runner status --json` names those left")
    campaign.ask_to_cancel(cells)
    click.echo("the driver will end " + (f"{len(cells)} cells" if cells else "everything") + " in a moment")
    return 0
