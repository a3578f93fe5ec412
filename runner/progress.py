"""Tells how a campaign goes: a live table with the means so far on a terminal, plain lines elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Self

from rich.box import SIMPLE
from rich.console import Console
from rich.live import Live
from rich.table import Table

from runner.cell import Cell
from runner.order import Order
from runner.result import Result

_PLAIN_WIDTH = 150


def table_of(results: Iterable[Result], *, running: int, waiting: int) -> Table:
    """A row for each model, harness and strategy, with the means over what is finished and not abnormal."""
    groups: dict[tuple[str, str, str], list[Result]] = {}
    for result in results:
        cell = result.cell
        groups.setdefault((cell.model, cell.harness, cell.strategy.value), []).append(result)
    table = Table(title=f"{running} running, {waiting} waiting", title_justify="left", box=SIMPLE)
    for name in ("model", "harness", "strategy"):
        table.add_column(name, overflow="fold")
    for name in ("done", "abnormal", "success", "progress", "nodes", "USD"):
        table.add_column(name, justify="right")
    for (model, harness, strategy), found in sorted(groups.items()):
        good = [each for each in found if not each.abnormal]
        costs = [each.cost for each in good]
        known = [cost for cost in costs if cost is not None]
        table.add_row(
            model,
            harness,
            strategy,
            str(len(good)),
            str(len(found) - len(good)),
            _mean(good, lambda each: 100.0 * each.success, "%"),
            _mean(good, lambda each: 100.0 * each.prefix_progress, "%"),
            _mean(good, lambda each: float(each.nodes)),
            f"{sum(known):.2f}" + ("" if len(known) == len(costs) else " +?"),
        )
    return table


def line_of(result: Result) -> str:
    """One finished cell in one line."""
    state = "solved" if result.success else result.exit.value
    marks = "".join(
        text
        for text, holds in (
            (", simulated", result.simulated),
            (", suspect", bool(result.suspicions)),
            (", not clean", not result.clean),
        )
        if holds
    )
    return (
        f"{result.cell.id}: {state}, {result.prefix}/{result.total}, {result.nodes} nodes, "
        f"{result.rewinds} rewinds, {result.seconds:.1f} s{marks}"
    )


def console() -> Console:
    """Standard output; where that is no terminal, wide enough for a line to stay one."""
    found = Console()
    return found if found.is_terminal else Console(width=_PLAIN_WIDTH)


class Progress:
    """Hears of a campaign; draws to the console, or writes a line for each thing that happens."""

    def __init__(self, console: Console, *, planned: int) -> None:
        self._console = console
        self._planned = planned
        self._results: dict[Cell, Result] = {}
        self._running: set[Cell] = set()
        self._skipped = 0
        self._live = Live(console=console, auto_refresh=False) if console.is_terminal else None

    def __enter__(self) -> Self:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()
        else:
            self._console.print(self._table())

    def begun(self, order: Order) -> None:
        self._running.add(order.cell)
        self._say(f"{order.cell.id}: begun" + (f", try {order.tries}" if order.tries > 1 else ""))

    def finished(self, result: Result) -> None:
        self._running.discard(result.cell)
        self._results[result.cell] = result
        self._say(f"[{len(self._results)}/{self._planned}] {line_of(result)}")

    def repeated(self, cell: Cell, reason: str) -> None:
        self._running.discard(cell)
        self._say(f"{cell.id}: to be repeated: {reason}", always=True)

    def skipped(self, cell: Cell, reason: str) -> None:
        self._skipped += 1
        self._say(f"{cell.id}: skipped: {reason}")

    def stopped(self, reason: str) -> None:
        self._say(reason, always=True)

    def _say(self, text: str, *, always: bool = False) -> None:
        if self._live is None or always:
            self._console.print(text, markup=False, highlight=False, soft_wrap=True)
        if self._live is not None:
            self._live.update(self._table(), refresh=True)

    def _table(self) -> Table:
        waiting = self._planned - len(self._results) - len(self._running) - self._skipped
        return table_of(self._results.values(), running=len(self._running), waiting=waiting)


def _mean(found: list[Result], value: Callable[[Result], float], unit: str = "") -> str:
    return f"{sum(map(value, found)) / len(found):.1f}{unit}" if found else "–"
