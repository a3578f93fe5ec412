"""`runner run`: one agent on one task under one strategy."""

from __future__ import annotations

from pathlib import Path

import click

from agentrewind.adapters import check_harness
from agentrewind.commands.given_number import GivenNumber
from agentrewind.commands.given_path import GivenPath
from agentrewind.errors import ProtectedError, UsageError
from mettlebench.load import BUILT_IN, load_task
from mettlebench.sandbox import GIVEN_UP_BY_NONE, SandboxMode
from runner.cell import Cell, Strategy
from runner.cell_run import run_cell
from runner.commands.session import session_of
from runner.order import Conditions, Order, save_order
from runner.result import Result
from runner.result_form import RESULT_FILE, encode_result, load_result
from runner.simulation.profile import profile_of


@click.command("run")
@click.argument("task")
@click.option("--harness", metavar="NAME", default="mini-swe-agent", show_default=True, help="The agent.")
@click.option("--model", metavar="MODEL", required=True, help="As the harness takes it, or simulated:NAME.")
@click.option(
    "--strategy",
    type=click.Choice([each.value for each in Strategy]),
    default=Strategy.REWIND.value,
    show_default=True,
    help="What follows a rejected submission.",
)
@click.option(
    "--out",
    metavar="DIR",
    type=GivenPath(path_type=Path),
    default=Path("campaign"),
    show_default=True,
    help="The campaign's folder; the cell's own is below cells/.",
)
@click.option("--run", "index", type=click.IntRange(1), default=1, show_default=True, help="Which run of it.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Of a simulated agent.")
@click.option(
    "--tasks",
    metavar="DIR",
    type=GivenPath(path_type=Path),
    default=BUILT_IN,
    help="A folder of tasks; by default those of mettlebench.",
)
@click.option(
    "--sandbox",
    type=click.Choice([mode.value for mode in SandboxMode]),
    default=SandboxMode.BUBBLEWRAP.value,
    show_default=True,
    help="How the agent's commands are kept apart from this machine.",
)
@click.option("--network", is_flag=True, help="Let the agent's commands reach the network.")
@click.option("--monitor", metavar="MODEL", default="", help="Reviews each action under the strategy safety.")
@click.option(
    "--temperature",
    metavar="T",
    type=GivenNumber(),
    default=0.0,
    show_default=True,
    help="Of the agent's requests.",
)
@click.option("--no-temperature", is_flag=True, help="Send none: some models take no other than their own.")
@click.option("--cost-limit", metavar="DOLLARS", type=GivenNumber(0), help="Ends the run beyond it.")
@click.option(
    "--stuck-after",
    metavar="SECONDS",
    type=GivenNumber(1),
    default=1800.0,
    show_default=True,
    help="A command in which nothing has run for so long is ended, and the cell run again.",
)
@click.option("--no-progress", is_flag=True, help="Grade the last state alone, not every snapshot.")
@click.option(
    "--retries", type=click.IntRange(0), default=2, show_default=True, help="After infrastructure errors."
)
@click.option("-c", "settings", metavar="NAME=VALUE", multiple=True, help="A setting of the harness.")
@click.option(
    "--endpoint",
    metavar="DIR",
    type=GivenPath(path_type=Path),
    help="A failed Continue cell to recover from.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
@click.pass_context
def run(context: click.Context, /, **given: object) -> int:
    """Run one agent on TASK and write its result.json.

    Exit codes: 0 the task was solved, 1 it was not or the machine failed, 2 wrong usage.
    """
    session = session_of(context)
    order = _order(given, session.directory)
    check_harness(order.cell.harness)
    load_task(order.cell.task, order.tasks)
    if order.cell.simulated:
        profile_of(order.cell.model)
    folder = session.directory / _path(given["out"]) / "cells" / order.cell.id
    if load_result(folder) is not None:
        raise ProtectedError(f"{folder / RESULT_FILE} is there already; choose another --run or --out")
    if order.conditions.sandbox is SandboxMode.NONE:
        click.echo(f"warning: {GIVEN_UP_BY_NONE}", err=True)
    folder.mkdir(parents=True, exist_ok=True)
    save_order(order, folder)
    result = run_cell(order, folder, session.machine(), retries=int(str(given["retries"])))
    if given["as_json"]:
        click.echo(encode_result(result).decode(), nl=False)
    else:
        for line in told(result):
            click.echo(line)
        click.echo(f"  result    {folder / RESULT_FILE}")
    return 0 if result.success else 1


def told(result: Result) -> list[str]:
    """A result for people."""
    cell = result.cell
    head = "solved" if result.success else f"not solved ({result.exit.value})"
    lines = [
        f"{cell.task}: {head}, {result.prefix} of {result.total} criteria in order",
        f"  agent     {cell.harness}, {cell.model}, {cell.strategy.value}, run {cell.run}",
        f"  took      {result.nodes} nodes, {len(result.submissions)} submissions, {result.rewinds} rewinds, "
        f"{result.attempts} attempts, {result.seconds:.1f} s, {result.storage_bytes / 1e6:.1f} MB",
        f"  tokens    {result.tokens.input} in ({result.tokens.cached} cached), {result.tokens.output} out, "
        + ("cost unknown" if result.cost is None else f"{result.cost:.2f} USD"),
    ]
    if result.simulated:
        lines.append("  note      a simulation: it says nothing about any model")
    for mark in result.suspicions:
        lines.append(f"  suspect   {mark.kind} at {mark.record_uid}: {mark.text}")
    return lines


def _order(given: dict[str, object], directory: Path) -> Order:
    cell = Cell(
        task=str(given["task"]),
        model=str(given["model"]),
        harness=str(given["harness"]),
        strategy=Strategy(str(given["strategy"])),
        run=int(str(given["index"])),
    )
    endpoint = given["endpoint"]
    if cell.strategy.recovers is (endpoint is None):
        raise UsageError(
            "--endpoint belongs to the strategies recovery-continue and recovery-rewind, and to no other"
        )
    settings = given["settings"]
    limit = given["cost_limit"]
    assert isinstance(settings, tuple)
    return Order(
        cell=cell,
        tasks=(directory / _path(given["tasks"])).resolve(),
        seed=int(str(given["seed"])),
        endpoint=None if endpoint is None else (directory / _path(endpoint)).resolve(),
        conditions=Conditions(
            sandbox=SandboxMode(str(given["sandbox"])),
            network=bool(given["network"]),
            monitor=str(given["monitor"]),
            temperature=None if given["no_temperature"] else float(str(given["temperature"])),
            cell_cost=None if limit is None else float(str(limit)),
            stuck_seconds=float(str(given["stuck_after"])),
            grade_progress=not given["no_progress"],
            settings=tuple(map(str, settings)),
        ),
    )


def _path(value: object) -> Path:
    assert isinstance(value, Path)
    return value
