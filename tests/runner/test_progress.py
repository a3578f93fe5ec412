"""What a person sees of a campaign while it runs: a live table on a terminal, plain lines elsewhere."""

from __future__ import annotations

import dataclasses
import io
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from runner.cell import Cell
from runner.order import Order
from runner.progress import Progress, line_of
from runner.result import Result
from tests.runner.results import cells, results


def shown(found: list[Result], *, terminal: bool) -> str:
    out = io.StringIO()
    with Progress(Console(file=out, force_terminal=terminal, width=200), planned=len(found) + 1) as progress:
        for result in found:
            progress.begun(Order(cell=result.cell, tasks=Path("tasks")))
            progress.repeated(result.cell, "the machine failed [not markup]")
            progress.finished(result)
        progress.stopped("that is all")
    return out.getvalue()


@settings(deadline=None, max_examples=15)
@given(st.lists(results(), max_size=3, unique_by=lambda result: result.cell))
def test_every_cell_is_told_and_nothing_is_taken_for_markup(found: list[Result]) -> None:
    plain = shown(found, terminal=False)
    assert "that is all" in plain
    for number, result in enumerate(found, start=1):
        assert f"[{number}/{len(found) + 1}] {result.cell.id}: " in plain
    assert ("[not markup]" in plain) is bool(found)
    live = shown(found, terminal=True)
    assert "that is all" in live
    assert f"{0} running" in live


@settings(deadline=None, max_examples=40)
@given(results(), cells())
def test_a_line_says_what_makes_a_result_doubtful(result: Result, cell: Cell) -> None:
    line = line_of(result)
    assert ("not clean" in line) is (not result.clean)
    assert ("simulated" in line.partition(": ")[2]) is result.simulated
    assert ("suspect" in line.partition(": ")[2]) is bool(result.suspicions)
    assert dataclasses.replace(result, cell=cell).cell.id in line_of(dataclasses.replace(result, cell=cell))
