"""`runner report`: tables, plots and pages of a campaign."""

from __future__ import annotations

import json
from pathlib import Path

import click

from agentrewind.commands.given_path import GivenPath
from agentrewind.errors import UsageError
from mettlebench.load import BUILT_IN, load_tasks
from runner.campaign import Campaign
from runner.commands.session import session_of
from runner.report.gather import gather
from runner.report.write import PAGE, make_report, write_report
from runner.result_form import load_results


@click.command("report")
@click.argument("campaign", type=GivenPath(path_type=Path, exists=True, file_okay=False))
@click.option(
    "--out",
    metavar="DIR",
    type=GivenPath(path_type=Path),
    help="Where it is written, in place of an earlier report.  [default: report, in the campaign's folder]",
)
@click.option("--title", metavar="TEXT", help="What the report calls the campaign.  [default: its folder]")
@click.option(
    "--path-of", metavar="TASK", help="Whose execution paths are drawn; by default the most telling."
)
@click.option(
    "--tasks",
    metavar="DIR",
    type=GivenPath(path_type=Path),
    default=BUILT_IN,
    help="The folder of tasks; by default those of mettlebench.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def report(
    context: click.Context,
    /,
    *,
    campaign: Path,
    out: Path | None,
    title: str | None,
    path_of: str | None,
    tasks: Path,
    as_json: bool,
) -> int:
    """Write what the CAMPAIGN in a folder found: one page, Markdown, tables as CSV, plots as SVG and PNG.

    Cells that ended abnormally are left out and named; the next batch runs them again. Needs the extra
    `bench`.
    """
    directory = session_of(context).directory
    root = (directory / campaign).resolve()
    results = load_results(root)
    if not results:
        raise UsageError(f"there is no result below {root / 'cells'} yet")
    gathered = gather(results, Campaign(root).planned())
    used = {result.cell.task for result in results}
    if path_of is not None and path_of not in used:
        raise UsageError(f"no result is of the task {path_of!r}; there are {', '.join(sorted(used))}")
    known = [task for task in load_tasks(tasks) if task.id in used]
    try:
        made = make_report(gathered, known, name=title or root.name, path_of=path_of)
    except ModuleNotFoundError as error:
        raise UsageError(f"a report needs {error.name}: pip install 'agentrewind[bench]'") from error
    written = write_report(made, gathered, (directory / out if out else root / "report").resolve())
    if as_json:
        document = {
            "report": str(written.folder),
            "simulated": gathered.simulated,
            "results": len(gathered.results),
            "left_out": [each.cell.id for each in gathered.left_out],
            "missing": list(gathered.missing),
            "files": list(written.files),
        }
        click.echo(json.dumps(document))
        return 0
    for fact in made.facts:
        click.echo(fact)
    for each in gathered.left_out:
        click.echo(f"left out  {each.cell.id} ({each.exit}): run again by the next batch")
    click.echo(f"report    {written.folder / PAGE}")
    return 0
