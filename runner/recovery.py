"""The paired recovery: two runs that go on from the same failed end of a Continue run."""

from __future__ import annotations

from pathlib import Path

from agentrewind.errors import UsageError
from agentrewind.options import RunOptions
from agentrewind.outcome import RunResult
from agentrewind.supervise import Surroundings
from runner.order import Order
from runner.result import Endpoint
from runner.result_form import load_result


def endpoint_of(order: Order) -> Endpoint | None:
    """The endpoint from which the cell starts, None where it starts from the untouched workspace."""
    if order.endpoint is None:
        return None
    result = load_result(order.endpoint)
    if result is None:
        raise UsageError(f"{order.endpoint} holds no finished cell to recover from")
    return Endpoint(cell=result.cell.id, prefix=result.prefix)


def begin_recovery(order: Order, options: RunOptions, workspace: Path, around: Surroundings) -> RunResult:
    """Copy the endpoint's log and files, and go on from there with a counter of failures at zero."""
    raise UsageError("not yet")
