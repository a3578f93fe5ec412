"""What a cell's process is told: the cell, and under which conditions it is run. Kept as `cell.json`."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from agentrewind.durable import write_file
from agentrewind.errors import DamagedError
from agentrewind.fields import Fields
from agentrewind.records import JsonObject
from mettlebench.sandbox import SandboxMode
from runner.cell import Cell

ORDER_FILE = "cell.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """US dollars for a million tokens; `cached` ones are a part of the input."""

    input: float
    output: float
    cached: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditions:
    """What the cells of a campaign share, as far as the model has none of its own.

    Attributes:
        network: whether the agent's commands reach the network.
        monitor: model that reviews actions under Safety Review, as litellm names it.
        temperature: of the agent's requests; None sends none.
        price: of the model; None takes what litellm knows.
        cell_cost: US dollars after which a cell is stopped; None: no limit.
        stuck_seconds: a command in which nothing has run for so long counts as waiting for input.
        grade_progress: grade every snapshot of a run afterwards, not the last alone.
        settings: of the harness, as `NAME=VALUE` texts.
    """

    sandbox: SandboxMode = SandboxMode.BUBBLEWRAP
    network: bool = False
    monitor: str = ""
    temperature: float | None = 0.0
    price: Price | None = None
    cell_cost: float | None = None
    stuck_seconds: float = 1800.0
    grade_progress: bool = True
    settings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """One try of one cell. `tasks` is the folder that holds the task; `endpoint` that of a Continue cell."""

    cell: Cell
    tasks: Path
    seed: int = 0
    tries: int = 1
    clean: bool = True
    endpoint: Path | None = None
    conditions: Conditions = field(default_factory=Conditions)

    def again(self, *, clean: bool) -> Order:
        """The next try of the same cell."""
        return replace(self, tries=self.tries + 1, clean=self.clean and clean)


def save_order(order: Order, folder: Path) -> None:
    """Write `cell.json` into the folder."""
    conditions = asdict(order.conditions)
    document = {
        "cell": order.cell.id,
        "tasks": str(order.tasks),
        "seed": order.seed,
        "tries": order.tries,
        "clean": order.clean,
        "endpoint": None if order.endpoint is None else str(order.endpoint),
        "conditions": {**conditions, "settings": list(order.conditions.settings)},
    }
    write_file(folder / ORDER_FILE, json.dumps(document, indent=1).encode() + b"\n")


def load_order(folder: Path) -> Order:
    """The inverse of `save_order`. Raises DamagedError with file and field."""
    path = folder / ORDER_FILE
    try:
        root = Fields(json.loads(path.read_bytes()))
        endpoint = root.text_or_none("endpoint")
        return Order(
            cell=Cell.from_id(root.text("cell")),
            tasks=Path(root.text("tasks")),
            seed=root.integer("seed"),
            tries=root.integer("tries"),
            clean=root.flag("clean"),
            endpoint=None if endpoint is None else Path(endpoint),
            conditions=_conditions(root.fields("conditions")),
        )
    except (OSError, ValueError, DamagedError) as error:
        raise DamagedError(f"{path}: {error}") from error


def _conditions(fields: Fields) -> Conditions:
    return Conditions(
        sandbox=SandboxMode(fields.text("sandbox")),
        network=fields.flag("network"),
        monitor=fields.text("monitor"),
        temperature=number_or_none(fields, "temperature"),
        price=fields.optional("price", _price),
        cell_cost=number_or_none(fields, "cell_cost"),
        stuck_seconds=number(fields, "stuck_seconds"),
        grade_progress=fields.flag("grade_progress"),
        settings=fields.texts("settings"),
    )


def _price(fields: Fields) -> Price:
    return Price(
        input=number(fields, "input"), output=number(fields, "output"), cached=number(fields, "cached")
    )


def number(fields: Fields, name: str) -> float:
    """A number in a decoded object. Raises DamagedError that names it."""
    found = fields.value(name)
    if isinstance(found, bool) or not isinstance(found, int | float):
        raise DamagedError(f"the field {fields.place(name)} is not a number")
    return float(found)


def number_or_none(fields: Fields, name: str) -> float | None:
    """The same, or None where it is missing or null."""
    return None if fields.get(name) is None else number(fields, name)


def shell_settings(order: Order, folder: Path) -> JsonObject:
    """The harness's setting `shell`: the sandbox of the agent's commands, for every process of the run."""
    conditions = order.conditions
    return {
        "use": "runner.agent_shell:open_shell",
        "sandbox": conditions.sandbox.value,
        "network": conditions.network,
        "stuck_seconds": conditions.stuck_seconds,
        "folder": str(folder),
    }
