"""Makes the report of a campaign and writes it into a folder: page, Markdown, tables, plots."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from agentrewind.durable import make_directory, storage_error
from agentrewind.errors import ProtectedError
from mettlebench.task import Task
from runner.report.cell_tables import all_cells, cell_tables
from runner.report.checklist_tables import checklist_tables
from runner.report.cost_tables import cost_tables
from runner.report.gather import Gathered
from runner.report.ground_tables import ground_tables
from runner.report.outcome_tables import outcome_tables
from runner.report.page import Report, render_markdown, render_page
from runner.report.plots import plots
from runner.report.significance_tables import significance_tables
from runner.report.table import Table, as_csv

PAGE, MARKDOWN = "report.html", "report.md"
TABLES, PLOTS = "tables", "plots"


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """What was written, as paths below the folder."""

    folder: Path
    files: tuple[str, ...]


def make_report(
    gathered: Gathered, tasks: Sequence[Task], *, name: str, path_of: str | None = None
) -> Report:
    """Tables and plots of what was gathered; `tasks` are those the campaign is about."""
    tables = [
        *outcome_tables(gathered),
        *significance_tables(gathered),
        *cost_tables(gathered),
        *ground_tables(gathered),
        *checklist_tables(tasks),
        *cell_tables(gathered),
    ]
    return Report(
        title=f"Results of {name}",
        facts=_facts(gathered),
        tables=tuple(tables),
        plots=tuple(plots(gathered, path_of)),
        simulated=gathered.simulated,
    )


def _facts(gathered: Gathered) -> tuple[str, ...]:
    tasks = {result.cell.task for result in gathered.results}
    facts = [
        f"{len(gathered.results)} runs of {len(tasks)} tasks are in the figures; {len(gathered.left_out)} "
        f"ended abnormally and are left out; {len(gathered.missing)} planned cells have no result."
    ]
    sandboxes = sorted({result.sandbox for result in gathered.results})
    unclean = sum(not result.clean for result in gathered.results)
    if unclean:
        facts.append(f"{unclean} cells were run again after a command in them had to be ended.")
    if sandboxes:
        facts.append(f"Sandbox: {', '.join(sandboxes)}.")
    return tuple(facts)


def write_report(report: Report, gathered: Gathered, folder: Path) -> Written:
    """Write everything; a report that is there already is replaced as a whole.

    Raises ProtectedError where the folder holds something that is no report.
    """
    files = _files(report, gathered)
    _replaceable(folder)
    make_directory(folder.parent)
    try:
        place = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    except OSError as error:
        raise storage_error("write", folder, error) from error
    try:
        for name, data in files.items():
            (place / name).parent.mkdir(exist_ok=True)
            (place / name).write_bytes(data)
        place.chmod(0o755)
        if folder.exists():
            shutil.rmtree(folder)
        place.rename(folder)
    except OSError as error:
        raise storage_error("write", folder, error) from error
    finally:
        shutil.rmtree(place, ignore_errors=True)
    return Written(folder=folder, files=tuple(files))


def _files(report: Report, gathered: Gathered) -> Mapping[str, bytes]:
    images = [f"{PLOTS}/{plot.name}.svg" for plot in report.plots]
    files = {PAGE: render_page(report), MARKDOWN: render_markdown(report, images)}
    for plot in report.plots:
        files[f"{PLOTS}/{plot.name}.svg"] = plot.svg
        files[f"{PLOTS}/{plot.name}.png"] = plot.png
    tables: list[Table] = [*report.tables, all_cells(gathered)]
    for table in tables:
        files[f"{TABLES}/{table.name}.csv"] = as_csv(table)
    return files


def _replaceable(folder: Path) -> None:
    if not folder.exists():
        return
    known = {PAGE, MARKDOWN, TABLES, PLOTS}
    held = {path.name for path in folder.iterdir()} if folder.is_dir() else {folder.name}
    if held and (PAGE not in held or not held <= known):
        other = sorted(held - known) or sorted(held)
        raise ProtectedError(
            f"{folder} holds {other[0]}, which is no part of a report: name another folder with --out"
        )
