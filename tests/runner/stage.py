"""A small task, the small harness, and cells run on them in this process."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from pathlib import Path

from agentrewind.clock import SystemClock
from agentrewind.run_store import Run, RunStore
from agentrewind.timeline import Timeline
from harness_adapters.demo.command import local_provider
from harness_adapters.scripted import Policy, ScriptedAnswer, ScriptedModel, from_steps
from mettlebench.scaffold import new_task
from runner.cell import Cell, Strategy
from runner.cell_run import run_cell, try_cell
from runner.grade import STORE
from runner.machine import Machine
from runner.order import Conditions, Order
from runner.result import Result
from tests.runner.small import NAME, SUBMIT

REPOSITORY = Path(__file__).parents[2]
TASK = "sample"


def environment() -> dict[str, str]:
    """That of a process which may import the tests."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("OPENAI", "COVERAGE"))}
    return {**kept, "PYTHONPATH": str(REPOSITORY)}


def make_tasks(place: Path) -> Path:
    """A folder with the one small task."""
    new_task(place / TASK)
    return place


def cell_of(strategy: Strategy, *, model: str = "simulated:reckless", run: int = 1) -> Cell:
    return Cell(task=TASK, model=model, harness=NAME, strategy=strategy, run=run)


@dataclass(slots=True)
class Stage:
    """Runs cells below `root`."""

    root: Path
    tasks: Path
    told: list[str] = field(default_factory=list)

    def order(self, cell: Cell, **conditions: object) -> Order:
        given = replace(Conditions(grade_progress=False), **conditions)  # type: ignore[arg-type]
        return Order(cell=cell, tasks=self.tasks, conditions=given)

    def folder(self, cell: Cell) -> Path:
        return self.root / "cells" / cell.id

    def run(self, order: Order, *, env: dict[str, str] | None = None, retries: int = 0) -> Result:
        machine = Machine(environment=env or environment(), clock=SystemClock(), tell=self.told.append)
        folder = self.folder(order.cell)
        folder.mkdir(parents=True, exist_ok=True)
        if retries:
            return run_cell(order, folder, machine, retries=retries)
        return try_cell(order, folder, machine)

    def scripted(
        self,
        policy: Policy,
        *,
        strategy: Strategy = Strategy.CONTINUE,
        retries: int = 0,
        **conditions: object,
    ) -> Result:
        """A run of an agent that answers by this policy, as any model of a provider would."""
        cell = cell_of(strategy, model="openai/scripted")
        with ScriptedModel(policy) as server:
            env = {**environment(), **local_provider(server.base_url)}
            return self.run(self.order(cell, **conditions), env=env, retries=retries)

    def runs(self, cell: Cell) -> list[Run]:
        found = RunStore(self.folder(cell) / STORE).runs()
        return sorted(found, key=lambda run: (run.created_at(), run.run_id))

    def timeline(self, cell: Cell) -> Timeline:
        return self.runs(cell)[0].timeline()


def commands(*texts: str, submit: bool = True) -> Policy:
    """An agent that runs these commands, submits again and again, and never looks at an answer."""
    moves = [*texts, *([SUBMIT] * 6 if submit else [])]
    steps = [ScriptedAnswer("I go on.", tool_calls=[("bash", {"command": text})]) for text in moves]
    return from_steps([*steps, ScriptedAnswer("I have done what I can.")])
