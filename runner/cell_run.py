"""One cell from its order to its `result.json`, with the retries that infrastructure errors are given."""

from __future__ import annotations

import json
from pathlib import Path

from agentrewind.durable import write_file
from agentrewind.errors import AgentRewindError
from mettlebench.errors import MettleBenchError
from mettlebench.tree import remove_tree
from runner.assemble import assemble
from runner.machine import Machine
from runner.order import Order
from runner.result import Result
from runner.result_form import save_result
from runner.trial import WORKSPACE, InfrastructureError, run_trial

FAILURE_FILE = "failure.json"
"""Why a try came to no result: `reason`, `clean`, and whether another try makes sense (`again`)."""


def try_cell(order: Order, folder: Path, machine: Machine) -> Result:
    """Run a cell once and write its result. Raises InfrastructureError; then there is no result."""
    (folder / FAILURE_FILE).unlink(missing_ok=True)
    result = assemble(run_trial(order, folder, machine), folder, machine.clock)
    save_result(result, folder)
    remove_tree(folder / WORKSPACE)  # the last snapshot holds it
    return result


def try_and_tell(order: Order, folder: Path, machine: Machine) -> int:
    """The same for a process of its own: exit code 0, or 1 with the reason in `failure.json`."""
    try:
        try_cell(order, folder, machine)
    except InfrastructureError as error:
        _write_failure(folder, str(error), clean=error.clean, again=True)
    except (AgentRewindError, MettleBenchError) as error:
        _write_failure(folder, f"{type(error).__name__}: {error}", clean=True, again=error.exit_code != 2)
    else:
        return 0
    return 1


def run_cell(order: Order, folder: Path, machine: Machine, *, retries: int) -> Result:
    """Run a cell, again after an infrastructure error; raises the last one."""
    while True:
        try:
            return try_cell(order, folder, machine)
        except InfrastructureError as error:
            if order.tries > retries:
                raise
            machine.tell(f"{order.cell.id}: try {order.tries} failed and is repeated: {error}")
            order = order.again(clean=error.clean)


def _write_failure(folder: Path, reason: str, *, clean: bool, again: bool) -> None:
    document = {"reason": reason[:4000], "clean": clean, "again": again}
    write_file(folder / FAILURE_FILE, json.dumps(document).encode() + b"\n")
