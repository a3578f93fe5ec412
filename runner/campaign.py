"""A campaign's folder: what is planned, what is finished, what runs, and the wish to cancel it.

```text
OUT/
  plan.json       every planned cell
  running.json    who drives it, and the cells that run now
  cancel          there while somebody wants it ended: cell ids, a line each, or nothing for all
  cells/TASK/MODEL/HARNESS/STRATEGY/RUN/
    cell.json  result.json  verdicts.jsonl  store/  cell.log
```
"""

from __future__ import annotations

import fcntl
import json
import os
import socket
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from agentrewind.durable import make_directory, write_file
from agentrewind.errors import DamagedError, ProtectedError, UsageError
from agentrewind.processes import identity_of
from runner.cell import Cell
from runner.order import ORDER_FILE, Conditions, Order, load_order
from runner.result import Result
from runner.result_form import load_result

_PLAN, _RUNNING, _CANCEL, _LOCK = "plan.json", "running.json", "cancel", "lock"


@dataclass(frozen=True, slots=True, kw_only=True)
class Driver:
    """The process that runs a campaign now, and its running cells."""

    host: str
    pid: int
    start: int
    running: tuple[str, ...]

    @property
    def alive(self) -> bool | None:
        """Whether it still runs; None where that cannot be told from this host."""
        if self.host != socket.gethostname():
            return None
        return identity_of(self.pid) == (self.pid, self.start)


class Campaign:
    """A campaign's folder."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def folder(self, cell: Cell) -> Path:
        """Where a cell keeps everything."""
        return self.root / "cells" / cell.id

    def result(self, cell: Cell) -> Result | None:
        """The result of a cell, None while there is none. Raises DamagedError."""
        return load_result(self.folder(cell))

    @contextmanager
    def owned(self) -> Iterator[None]:
        """Be the only driver. Raises ProtectedError where another one is at work."""
        make_directory(self.root)
        with (self.root / _LOCK).open("a") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise ProtectedError(f"another `runner batch` is at work in {self.root}") from None
            self.cancel_done()
            try:
                yield
            finally:
                (self.root / _RUNNING).unlink(missing_ok=True)

    def save_plan(self, cells: Iterable[Cell]) -> None:
        """Add these cells to those that are planned."""
        known = dict.fromkeys([*self.planned(), *(cell.id for cell in cells)])
        write_file(self.root / _PLAN, json.dumps({"cells": list(known)}, indent=1).encode() + b"\n")

    def planned(self) -> tuple[str, ...]:
        """The ids of all planned cells."""
        document = self._read(_PLAN)
        return () if document is None else tuple(document["cells"])

    def save_running(self, cells: Iterable[Cell]) -> None:
        """Say who drives the campaign and which cells run."""
        identity = identity_of(os.getpid())
        document = {
            "host": socket.gethostname(),
            "pid": os.getpid(),
            "start": identity[1] if identity else 0,
            "running": [cell.id for cell in cells],
        }
        write_file(self.root / _RUNNING, json.dumps(document).encode() + b"\n")

    def driver(self) -> Driver | None:
        """The last driver that did not end by itself, or runs still."""
        document = self._read(_RUNNING)
        if document is None:
            return None
        return Driver(
            host=document["host"],
            pid=document["pid"],
            start=document["start"],
            running=tuple(document["running"]),
        )

    def ask_to_cancel(self, cells: Iterable[str]) -> None:
        """Ask the driver to end these cells, or everything."""
        driver = self.driver()
        if driver is None or driver.alive is False:
            raise UsageError(f"nothing runs in {self.root}, so there is nothing to cancel")
        write_file(self.root / _CANCEL, "".join(f"{each}\n" for each in cells).encode())

    def asked_to_cancel(self) -> tuple[str, ...] | None:
        """Ids of the cells to end, empty for all; None where nobody has asked."""
        try:
            return tuple((self.root / _CANCEL).read_text().split())
        except FileNotFoundError:
            return None

    def cancel_done(self) -> None:
        """The wish has been carried out."""
        (self.root / _CANCEL).unlink(missing_ok=True)

    def resumed(self, order: Order) -> Order:
        """The order as the next try of what was begun here, if anything was.

        Raises ProtectedError where a finished cell was run under other conditions than are planned now.
        """
        folder = self.folder(order.cell)
        if not (folder / ORDER_FILE).exists():
            return order
        earlier = load_order(folder)
        result = self.result(order.cell)
        if result is not None and not result.abnormal:
            _refuse_other_conditions(order, earlier, folder)
        return replace(order, tries=earlier.tries + 1, clean=earlier.clean)

    def _read(self, name: str) -> dict[str, Any] | None:
        path = self.root / name
        try:
            found = json.loads(path.read_bytes())
        except FileNotFoundError:
            return None
        except ValueError as error:
            raise DamagedError(f"{path} is no JSON: {error}") from error
        if not isinstance(found, dict):
            raise DamagedError(f"{path} holds no object")
        return found


def _refuse_other_conditions(order: Order, earlier: Order, folder: Path) -> None:
    """What decides about a result must not change within one campaign."""
    if order.seed != earlier.seed or _deciding(order.conditions) != _deciding(earlier.conditions):
        raise ProtectedError(
            f"{folder} was finished under other conditions (seed, sandbox, network, monitor, temperature or "
            "settings) than the plan has now; choose another --out, so that results are not mixed"
        )


def _deciding(conditions: Conditions) -> Conditions:
    return replace(conditions, price=None, cell_cost=None, stuck_seconds=0.0, grade_progress=True)
