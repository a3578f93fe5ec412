"""Drives a campaign: begins cells as caps allow, repeats what the machine has spoilt, stops when asked.

An agent's failure is a result and is never repeated. A cell is finished once its `result.json` is there, so
a driver may be killed at any moment and started again.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Protocol

from agentrewind.clock import Clock
from agentrewind.errors import DamagedError
from mettlebench.load import load_task
from runner.assemble import abnormal
from runner.campaign import Campaign
from runner.cell import Cell, Strategy
from runner.cell_run import FAILURE_FILE
from runner.executors.executor import Ended, Executor
from runner.order import Order, save_order
from runner.plan import Limits, Plan
from runner.result import Exit, Result
from runner.result_form import save_result

_LOOK_SECONDS = 0.5


class Told(Protocol):
    """What hears of a campaign's progress."""

    def begun(self, order: Order) -> None: ...
    def finished(self, result: Result) -> None: ...
    def repeated(self, cell: Cell, reason: str) -> None: ...
    def skipped(self, cell: Cell, reason: str) -> None: ...
    def stopped(self, reason: str) -> None: ...


@dataclass(slots=True)
class _Standing:
    """Where the cells of a campaign stand."""

    waiting: list[Order] = field(default_factory=list)
    running: dict[Cell, Order] = field(default_factory=dict)
    done: dict[Cell, Result] = field(default_factory=dict)
    failures: Counter[Cell] = field(default_factory=Counter)
    cancelled: set[Cell] = field(default_factory=set)


class Batch:
    """One driver's work on a campaign, whose folder it owns.

    Args:
        stopping: tells whether a person wants the driver to end (Ctrl-C, SIGTERM).
    """

    def __init__(
        self,
        plan: Plan,
        campaign: Campaign,
        executor: Executor,
        *,
        told: Told,
        clock: Clock,
        stopping: Callable[[], bool] = lambda: False,
    ) -> None:
        self._limits: Limits = plan.limits
        self._campaign = campaign
        self._executor = executor
        self._told = told
        self._clock = clock
        self._stopping = stopping
        self._at = _Standing()
        self._closed = False
        for order in plan.orders:
            self._place(campaign.resumed(order))
        campaign.save_plan(order.cell for order in plan.orders)

    def run(self) -> bool:
        """Run until nothing is left to do; False where a cell has no result of its own."""
        while self._at.running or (self._at.waiting and not self._closed):
            self._look_for_wishes()
            self._begin_what_fits()
            for ended in self._executor.wait(_LOOK_SECONDS):
                self._end(ended)
                self._campaign.save_running(self._at.running)
        return not self._at.waiting and not any(each.abnormal for each in self._at.done.values())

    def _place(self, order: Order) -> None:
        result = self._campaign.result(order.cell)
        if result is None or result.abnormal:
            self._at.waiting.append(order)
            return
        self._at.done[order.cell] = result
        self._told.finished(result)

    # --- beginning ---

    def _begin_what_fits(self) -> None:
        if self._closed:
            return
        if self._over_cost():
            self._close(f"the campaign has cost {self._spent():.2f} USD of {self._limits.cost:.2f}")
            return
        waiting, self._at.waiting = self._at.waiting, []
        for order in waiting:
            if not self._fits(order):
                self._at.waiting.append(order)
            elif (ready := self._ready(order)) is not None:
                self._begin(ready)

    def _fits(self, order: Order) -> bool:
        if len(self._at.running) >= self._executor.capacity:
            return False
        cap = self._limits.model_jobs.get(order.cell.model)
        same = sum(cell.model == order.cell.model for cell in self._at.running)
        if cap is not None and same >= cap:
            return False
        source = self._source(order.cell)
        return not (order.cell.strategy.recovers and source not in self._at.done and self._is_coming(source))

    def _ready(self, order: Order) -> Order | None:
        """The order with its endpoint; None where there is none to recover from."""
        if not order.cell.strategy.recovers:
            return order
        source = self._source(order.cell)
        result = self._at.done.get(source)
        if result is None or result.exit is not Exit.REPEATED_FAILURE:
            self._told.skipped(order.cell, f"{source.id} has not failed, so there is nothing to recover from")
            return None
        return replace(order, endpoint=self._campaign.folder(source).resolve())

    def _source(self, cell: Cell) -> Cell:
        return Cell(
            task=cell.task, model=cell.model, harness=cell.harness, strategy=Strategy.CONTINUE, run=cell.run
        )

    def _is_coming(self, cell: Cell) -> bool:
        return cell in self._at.running or any(order.cell == cell for order in self._at.waiting)

    def _begin(self, order: Order) -> None:
        folder = self._campaign.folder(order.cell)
        folder.mkdir(parents=True, exist_ok=True)
        for name in (FAILURE_FILE, "result.json"):
            (folder / name).unlink(missing_ok=True)
        save_order(order, folder)
        self._at.running[order.cell] = order
        self._campaign.save_running(self._at.running)
        self._told.begun(order)
        self._executor.submit(order, folder)

    # --- ending ---

    def _end(self, ended: Ended) -> None:
        order = self._at.running.pop(ended.cell)
        if order.cell in self._at.cancelled:
            self._finish(self._abnormal(order, Exit.CANCELLED, "cancelled by a person"))
            return
        if self._stopping():
            self._at.waiting.append(order)  # its end was ours; the next driver takes it up
            return
        result = None if ended.lost else self._campaign.result(order.cell)
        if result is not None:
            self._finish(result)
            return
        reason, clean, again = self._failure(order, ended)
        self._at.failures[order.cell] += 1
        if again and self._at.failures[order.cell] <= self._limits.retries:
            self._told.repeated(order.cell, reason)
            self._at.waiting.insert(0, order.again(clean=clean))
            return
        self._finish(self._abnormal(order, Exit.INFRASTRUCTURE, reason))

    def _failure(self, order: Order, ended: Ended) -> tuple[str, bool, bool]:
        if ended.lost:
            return ended.lost, True, True
        path = self._campaign.folder(order.cell) / FAILURE_FILE
        try:
            document = json.loads(path.read_bytes())
            return str(document["reason"]), bool(document["clean"]), bool(document["again"])
        except FileNotFoundError:
            return "the cell's process ended without a result; cell.log holds its last words", True, True
        except (ValueError, KeyError, TypeError) as error:
            raise DamagedError(f"{path} cannot be read: {error!r}") from error

    def _abnormal(self, order: Order, exit_: Exit, reason: str) -> Result:
        family = load_task(order.cell.task, order.tasks).family.value
        result = abnormal(order, exit_, reason, family=family, clock=self._clock)
        save_result(result, self._campaign.folder(order.cell))
        return result

    def _finish(self, result: Result) -> None:
        self._at.done[result.cell] = result
        self._told.finished(result)

    # --- stopping ---

    def _look_for_wishes(self) -> None:
        if self._stopping():
            self._close("stopped; the same command goes on with what is left")
            for cell in list(self._at.running):
                self._executor.cancel(cell)
            return
        wish = self._campaign.asked_to_cancel()
        if wish is None:
            return
        chosen = [cell for cell in self._at.running if not wish or cell.id in wish]
        if not wish:
            self._close("cancelled by a person; the same command goes on with what is left")
        for order in [order for order in self._at.waiting if order.cell.id in wish]:
            self._at.waiting.remove(order)
            self._campaign.folder(order.cell).mkdir(parents=True, exist_ok=True)
            self._finish(self._abnormal(order, Exit.CANCELLED, "cancelled by a person"))
        for cell in chosen:
            self._at.cancelled.add(cell)
            self._executor.cancel(cell)
        self._campaign.cancel_done()

    def _close(self, reason: str) -> None:
        if not self._closed:
            self._closed = True
            self._told.stopped(reason)

    def _spent(self) -> float:
        return sum(result.cost or 0.0 for result in self._at.done.values())

    def _over_cost(self) -> bool:
        return self._limits.cost is not None and bool(self._at.waiting) and self._spent() >= self._limits.cost
