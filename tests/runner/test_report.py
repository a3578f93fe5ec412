"""The report of a campaign: its figures, its labels, its files, and what it refuses."""

from __future__ import annotations

import csv
import io
import json
import statistics
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest

from agentrewind.errors import ProtectedError, UsageError
from mettlebench.load import load_tasks
from runner.cell import Strategy
from runner.cli import main
from runner.report.curves import by_length
from runner.report.gather import Gathered, Setting, gather
from runner.report.outcome_tables import ablation, outcome_tables, recovery
from runner.report.page import WARNING, Report, render_page
from runner.report.significance_tables import significance, significance_tables
from runner.report.table import Table
from runner.report.write import make_report, write_report
from runner.result import Endpoint, Exit, Result
from runner.statistics import signed_rank
from tests.runner.reported import TASKS, campaign, on_disk, result

HOSTILE = '=1+1<script>alert("x")</script>&$1^2$|=cmd'


def rows_of(table: Table) -> list[dict[str, object]]:
    heads = [column.head for column in table.columns]
    return [dict(zip(heads, row, strict=True)) for row in table.rows]


class Page(HTMLParser):
    """The tags of a page, its text, and everything that an attribute refers to."""

    def __init__(self, page: bytes) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.references: list[str] = []
        self.said: list[str] = []
        self.feed(page.decode())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.references += [
            value or "" for name, value in attrs if name in ("src", "href", "srcset", "action")
        ]
        assert not any(name.startswith("on") for name, _ in attrs)

    def handle_data(self, data: str) -> None:
        self.said.append(data)


@pytest.fixture(scope="module")
def gathered() -> Gathered:
    return gather(campaign())


@pytest.fixture(scope="module")
def plain(gathered: Gathered) -> Report:
    """The report of a real campaign."""
    return make_report(gathered, load_tasks(), name="x")


@pytest.fixture(scope="module")
def hostile() -> tuple[Report, Gathered]:
    """A report in which names are as bad as names can be."""
    held = gather(
        [*campaign(HOSTILE), result(task=TASKS[0], model=HOSTILE, run=9, exit_=Exit.INFRASTRUCTURE)]
    )
    return make_report(held, load_tasks(), name=HOSTILE), held


def call(*arguments: object) -> tuple[int, str, str]:
    """Exit code, output and errors of the command line, run in this process, which has read matplotlib."""
    streams = [io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2)]
    with redirect_stdout(streams[0]), redirect_stderr(streams[1]), pytest.raises(SystemExit) as ended:
        main([*map(str, arguments)])
    for stream in streams:
        stream.seek(0)
    return int(str(ended.value.code)), streams[0].read(), streams[1].read()


def test_the_command_writes_everything_and_names_what_is_left_out(tmp_path: Path) -> None:
    lost = result(task=TASKS[0], strategy=Strategy.CONTINUE, run=4, exit_=Exit.INFRASTRUCTURE)
    gone = "wal-salvage/some%2Fmodel/mini-swe-agent/rewind/4"
    root = on_disk(tmp_path / "c", [*campaign(), lost], planned=[gone])
    command = [sys.executable, "-m", "runner.cli", "report", str(root)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    assert f"left out  {lost.cell.id} (infrastructure)" in ended.stdout
    assert "1 ended abnormally and are left out; 1 planned cells have no result" in ended.stdout
    cells = list(csv.DictReader((root / "report/tables/cells.csv").read_text().splitlines()))
    assert len(cells) == len(campaign())
    assert {row["exit"] for row in cells} <= {"success", "repeated-failure"}
    page = (root / "report/report.html").read_text()
    assert lost.cell.id in page
    document = json.loads(call("report", root, "--json")[1])
    assert (document["left_out"], document["missing"]) == ([lost.cell.id], [gone])
    assert (root / "report" / document["files"][0]).exists()


@pytest.mark.parametrize(
    ("spoil", "code", "says"),
    [
        ("nothing", 2, "no result"),
        ("damage", 4, "result.json"),
        ("versions", 2, "was not the same"),
        ("path", 2, "no result is of the task"),
    ],
)
def test_what_cannot_be_reported_is_told(tmp_path: Path, spoil: str, code: int, says: str) -> None:
    root = on_disk(tmp_path / "c", [] if spoil == "nothing" else [result(), result(run=2)])
    path = root / "cells" / result().cell.id / "result.json"
    if spoil == "damage":
        path.write_text(path.read_text()[:-40])
    if spoil == "versions":
        path.write_text(path.read_text().replace('"d1"', '"d2"'))
    ended, _, said = call("report", root, *(["--path-of", "nowhere"] if spoil == "path" else []))
    assert ended == code
    assert says in said
    assert not (root / "report").exists()


def test_the_page_refers_to_nothing_and_escapes_everything(hostile: tuple[Report, Gathered]) -> None:
    page = Page(render_page(hostile[0]))
    assert "script" not in page.tags
    assert page.references
    assert all(reference.startswith("data:image/svg+xml;base64,") for reference in page.references)
    assert HOSTILE in "".join(page.said)


def test_plots_are_whole_and_refer_to_nothing(hostile: tuple[Report, Gathered]) -> None:
    names = {plot.name for plot in hostile[0].plots}
    assert names == {"over-trace-length", "by-horizon", "path"}
    for plot in hostile[0].plots:
        root = ElementTree.fromstring(plot.svg)
        links = [value for each in root.iter() for key, value in each.attrib.items() if key.endswith("href")]
        assert all(link.startswith("#") for link in links)
        assert plot.png.startswith(b"\x89PNG\r\n\x1a\n")


def test_no_cell_of_a_csv_is_a_formula(hostile: tuple[Report, Gathered], tmp_path: Path) -> None:
    written = write_report(*hostile, tmp_path / "out")
    told = [
        cell
        for name in written.files
        if name.endswith(".csv")
        for row in csv.reader(io.StringIO((tmp_path / "out" / name).read_text()))
        for cell in row
    ]
    assert any(HOSTILE in cell for cell in told)
    assert not any(cell.startswith("=") for cell in told)


def test_a_simulation_is_called_one_wherever_it_shows() -> None:
    held = gather(campaign("simulated:careless"))
    report = make_report(held, load_tasks(), name="x")
    benchmark = {"criteria-by-family", "checklists"}
    for table in report.tables:
        assert table.heading.startswith("Simulation: ") == (table.name not in benchmark), table.name
    assert all(plot.title.startswith("Simulation: ") for plot in report.plots)
    text = "".join(Page(render_page(report)).said)
    assert text.count("Simulation: Results of x") == 2
    assert WARNING in text
    assert "careless (simulation)" in text
    assert "simulated:careless," not in text


def test_what_is_real_is_not_called_a_simulation(plain: Report) -> None:
    assert "Simulation" not in "".join(Page(render_page(plain)).said)
    # one simulated arm beside real ones marks what it has a part in
    mixed = make_report(gather([*campaign(), *campaign("simulated:careless")]), (), name="x")
    assert all(table.simulated for table in mixed.tables)
    assert {plot.title.startswith("Simulation: ") for plot in mixed.plots} == {True, False}


def test_means_and_deviations_are_over_runs(gathered: Gathered) -> None:
    table = next(table for table in outcome_tables(gathered) if table.name == "strategies")
    for row, strategy in zip(rows_of(table), ("continue", "restart", "safety", "rewind"), strict=True):
        mine = [each for each in campaign() if each.cell.strategy == strategy]
        solved = [statistics.fmean(each.success for each in mine if each.cell.run == n) for n in (1, 2, 3)]
        reached = [
            statistics.fmean(each.prefix_progress for each in mine if each.cell.run == n) for n in (1, 2, 3)
        ]
        assert row["success %"] == pytest.approx(100 * statistics.fmean(solved))
        assert row["± success"] == pytest.approx(100 * statistics.stdev(solved))
        assert row["progress %"] == pytest.approx(100 * statistics.fmean(reached))
        assert row["± progress"] == pytest.approx(100 * statistics.stdev(reached))
        assert (row["tasks"], row["runs"]) == (len(TASKS), 3)


def test_tests_pair_tasks_over_the_runs_that_both_have() -> None:
    results = [each for each in campaign() if not (each.cell.strategy == "rewind" and each.cell.run == 2)]
    table = significance(gather(results))
    row = next(row for row in rows_of(table) if row["measure"] == "Checklist progress")
    differences = []
    for task in TASKS:
        sums = {
            strategy: sum(
                each.prefix
                for each in campaign()
                if (each.cell.task, each.cell.strategy) == (task, strategy) and each.cell.run != 2
            )
            for strategy in ("rewind", "continue")
        }
        differences.append(sums["rewind"] - sums["continue"])
    expected = signed_rank(differences)
    assert (row["pairs"], row["n≠"], row["W"]) == (len(TASKS), expected.nonzero, expected.w)
    assert row["p"] == pytest.approx(expected.p)
    assert row["r"] == pytest.approx(expected.effect)
    assert len(table.rows) == 6


def test_arms_without_a_difference_have_no_test() -> None:
    results = [
        result(task=task, strategy=s, run=n)
        for task in TASKS
        for n in (1, 2, 3)
        for s in (Strategy.CONTINUE, Strategy.REWIND)
    ]
    for row in rows_of(significance(gather(results))):
        assert (row["n≠"], row["p"], row["p Holm"], row["r"]) == (0, None, None, None)
    agreeing = next(t for t in significance_tables(gather(results)) if t.name == "agreement")
    assert {row["agreeing %"] for row in rows_of(agreeing)} == {100.0}


def test_a_run_without_every_task_is_told() -> None:
    results = [each for each in campaign() if each.cell.id != campaign()[0].cell.id]
    table = next(table for table in outcome_tables(gather(results)) if table.name == "strategies")
    assert any("run 1 has 6 of 7 tasks" in note for note in table.notes)


def test_recoveries_are_paired_by_the_end_that_they_start_from() -> None:
    def recovered(strategy: Strategy, run: int, prefix: int) -> Result:
        endpoint = Endpoint(cell=result(run=run).cell.id, prefix=2)
        return result(strategy=strategy, run=run, prefix=prefix, endpoint=endpoint)

    held = gather(
        [
            recovered(Strategy.RECOVERY_CONTINUE, 1, 2),
            recovered(Strategy.RECOVERY_CONTINUE, 2, 4),
            recovered(Strategy.RECOVERY_CONTINUE, 3, 8),
            recovered(Strategy.RECOVERY_REWIND, 1, 8),
            recovered(Strategy.RECOVERY_REWIND, 2, 2),
        ]
    )
    ours, theirs = rows_of(recovery(held))[1], rows_of(recovery(held))[0]
    assert (theirs["pairs"], theirs["recovered %"], theirs["change in progress"]) == (2, 0.0, 12.5)
    assert (ours["pairs"], ours["recovered %"], ours["change in progress"]) == (2, 50.0, 37.5)


def test_an_ablation_needs_something_to_be_compared_with() -> None:
    assert not ablation(gather([result(strategy=Strategy.REWIND)])).rows
    both = [result(strategy=Strategy.REWIND, prefix=8), result(strategy=Strategy.REWIND_NO_MEMORY)]
    assert [row["success %"] for row in rows_of(ablation(gather(both)))] == [100.0, 0.0]


def test_horizons_are_tertiles_of_the_median_continue_length(gathered: Gathered) -> None:
    setting = Setting(model="some/model", harness="mini-swe-agent")
    groups = by_length(gathered, setting)
    assert [len(group.tasks) for group in groups] == [3, 2, 2]
    medians = [
        statistics.median(
            each.nodes for each in campaign() if each.cell.task == task and each.cell.strategy == "continue"
        )
        for group in groups
        for task in group.tasks
    ]
    assert medians == sorted(medians)
    for group in groups:
        best = max(found.mean for strategy, found in group.success.items() if strategy != Strategy.REWIND)
        assert group.gain == pytest.approx(group.success[Strategy.REWIND].mean - best)


def test_equal_results_give_equal_files(plain: Report, gathered: Gathered, tmp_path: Path) -> None:
    again = gather(campaign())
    write_report(plain, gathered, tmp_path / "one")
    write_report(make_report(again, load_tasks(), name="x"), again, tmp_path / "two")
    files = sorted(path.relative_to(tmp_path / "one") for path in (tmp_path / "one").rglob("*.*"))
    assert len(files) > 20
    for path in files:
        assert (tmp_path / "one" / path).read_bytes() == (tmp_path / "two" / path).read_bytes(), path


def test_a_report_replaces_a_report_and_nothing_else(
    plain: Report, gathered: Gathered, tmp_path: Path
) -> None:
    write_report(plain, gathered, tmp_path / "out")
    stale = tmp_path / "out/tables/stale.csv"
    stale.write_text("old")
    write_report(plain, gathered, tmp_path / "out")
    assert not stale.exists()
    mine = tmp_path / "out/thesis.txt"
    mine.write_text("years of work")
    with pytest.raises(ProtectedError, match=r"thesis\.txt"):
        write_report(plain, gathered, tmp_path / "out")
    assert mine.read_text() == "years of work"
    (tmp_path / "file").write_text("x")
    with pytest.raises(ProtectedError, match="no part of a report"):
        write_report(plain, gathered, tmp_path / "file")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "out"]


def test_results_of_two_versions_of_a_task_are_not_mixed() -> None:
    import dataclasses

    with pytest.raises(UsageError, match="was not the same"):
        gather([result(), dataclasses.replace(result(run=2), task_digest="d2")])
