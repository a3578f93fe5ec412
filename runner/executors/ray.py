"""Runs tries on Ray: on this machine, or on the cluster at an address. Results come back as bytes.

Ray is told to retry nothing: whether a lost try is repeated the campaign decides, and counts.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from agentrewind.errors import UsageError
from runner.cell import Cell
from runner.executors.executor import Ended
from runner.executors.ray_work import pack_order, run_packed, unpack_folder
from runner.order import Order


class RayExecutor:
    """Cells as Ray tasks of one processor each, spread over the nodes.

    Args:
        jobs: tries at a time on one node.
        address: of a running cluster; None starts one on this machine and ends it with `close`.
        campaign: a name for the workers' temporary folders.

    Raises UsageError where Ray is not installed or the cluster does not answer.
    """

    def __init__(self, jobs: int, *, address: str | None, campaign: str) -> None:
        try:
            ray: Any = importlib.import_module("ray")
        except ImportError as error:
            raise UsageError("Ray is not installed: pip install 'agentrewind[ray]'") from error
        self._ray = ray
        self._campaign = campaign
        # bound to loopback: whoever reaches Ray's ports can run code
        here = {"num_cpus": jobs, "include_dashboard": False, "_node_ip_address": "127.0.0.1"}
        try:
            ray.init(
                address=address, log_to_driver=False, logging_level="WARNING", **({} if address else here)
            )
        except (ConnectionError, RuntimeError, ValueError) as error:
            raise UsageError(f"Ray cannot be reached at {address or 'this machine'}: {error}") from error
        nodes = sum(bool(node["Alive"]) for node in ray.nodes())
        self.capacity = jobs * max(nodes, 1)
        # spread, so that the cap for one host holds where nodes are alike
        self._run = ray.remote(num_cpus=1, max_retries=0, scheduling_strategy="SPREAD")(run_packed)
        self._running: dict[Any, tuple[Cell, Path]] = {}

    def submit(self, order: Order, folder: Path) -> None:
        """Send the order to a worker."""
        place = f"runner-{self._campaign}/{order.cell.id}"
        self._running[self._run.remote(pack_order(order, folder), place)] = (order.cell, folder)

    def wait(self, seconds: float) -> Sequence[Ended]:
        """The tries whose results are here, unpacked."""
        if not self._running:
            time.sleep(seconds)
            return []
        ready, _ = self._ray.wait(list(self._running), num_returns=1, timeout=seconds)
        return [self._collect(each) for each in ready]

    def cancel(self, cell: Cell) -> None:
        """End the worker, and with it the cell's process."""
        for each, (running, _) in self._running.items():
            if running == cell:
                self._ray.cancel(each, force=True)

    def close(self) -> None:
        for cell, _ in list(self._running.values()):
            self.cancel(cell)
        self._ray.shutdown()

    def _collect(self, reference: Any) -> Ended:
        cell, folder = self._running.pop(reference)
        try:
            unpack_folder(self._ray.get(reference), folder)
        except self._ray.exceptions.RayError as error:
            return Ended(cell=cell, lost=f"the worker was lost: {type(error).__name__}")
        return Ended(cell=cell)
