"""Reads a campaign's plan: which cells are to be run, and under which conditions.

Whatever is wrong with it is told with file, line, and what was expected.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from agentrewind.adapters import check_harness
from agentrewind.errors import UsageError
from mettlebench.errors import UnknownTaskError
from mettlebench.load import BUILT_IN, load_task, task_ids
from mettlebench.sandbox import SandboxMode
from mettlebench.toml_file import Table, TomlFile
from runner.cell import SIMULATED, Cell, Strategy
from runner.order import Conditions, Order, Price
from runner.simulation.profile import profile_of

ALL = "all"
MOST_CELLS = 100_000
"""Of one plan; each is an order in memory and a folder on disk."""

_ROOT_KEYS = {
    "tasks",
    "tasks_folder",
    "harnesses",
    "strategies",
    "runs",
    "seed",
    "sandbox",
    "network",
    "monitor",
    "stuck_after",
    "progress",
    "limits",
    "models",
}
_PRICE_KEYS = {"input_price", "output_price", "cached_price"}
_MODEL_KEYS = {"name", "jobs", "temperature", "own_temperature", "settings", *_PRICE_KEYS}
_LIMIT_KEYS = {"jobs", "cost", "cell_cost", "retries"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a campaign may take.

    Attributes:
        jobs: cells at a time on one host.
        cost: US dollars for the whole campaign; no cell begins beyond it. None: no limit.
        retries: of a cell after infrastructure errors.
        model_jobs: cells at a time of one model, over all hosts.
    """

    jobs: int
    cost: float | None
    retries: int
    model_jobs: dict[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The cells of a campaign in the order in which they are begun, as first orders without an endpoint."""

    path: Path
    orders: tuple[Order, ...]
    limits: Limits


def read_plan(path: Path) -> Plan:
    """The plan in this file. Raises TaskFormatError with file and line."""
    root = TomlFile(path).root
    root.only(_ROOT_KEYS)
    tasks = (path.parent / root.text("tasks_folder")).resolve() if root.has("tasks_folder") else BUILT_IN
    task_names = _tasks(root, tasks)
    harnesses = _checked(root, "harnesses", check_harness)
    strategies = _strategies(root)
    runs = root.number("runs", least=1, default=1)
    seed = root.number("seed", least=0, default=0)
    models = root.tables("models")
    if not models:
        root.refuse("a plan names at least one model: write [[models]] with a name")
    limits = root.table("limits") if root.has("limits") else None
    found: dict[str, Conditions] = {}
    caps: dict[str, int] = {}
    for table in models:
        name = _model_name(table, found)
        found[name] = _conditions(root, table, limits, simulated=name.startswith(SIMULATED))
        if table.has("jobs"):
            caps[name] = table.number("jobs", least=1)
    planned = runs * len(task_names) * len(found) * len(harnesses) * len(strategies)
    if planned > MOST_CELLS:
        root.refuse(f"the plan has {planned:,} cells, more than {MOST_CELLS:,}: write several", "runs")
    orders = tuple(
        Order(
            cell=Cell(task=task, model=model, harness=harness, strategy=strategy, run=run),
            tasks=tasks,
            seed=seed,
            conditions=conditions,
        )
        for run, task, (model, conditions), harness, strategy in product(
            range(1, runs + 1), task_names, found.items(), harnesses, strategies
        )
    )
    return Plan(path=path, orders=orders, limits=_limits(limits, caps))


def _tasks(root: Table, folder: Path) -> Sequence[str]:
    key = "tasks_folder" if root.has("tasks_folder") else "tasks"
    if not folder.is_dir():
        root.refuse(f"there is no folder {folder}", key)
    names = root.texts("tasks")
    if not names:
        root.refuse(f'tasks must name at least one task, or be ["{ALL}"]', "tasks")
    if names == (ALL,):
        return task_ids(folder)

    def check(name: str) -> None:
        try:
            load_task(name, folder)
        except UnknownTaskError as error:
            raise UsageError(str(error)) from error

    return _checked(root, "tasks", check)


def _checked(root: Table, key: str, check: Callable[[str], None]) -> tuple[str, ...]:
    names = root.texts(key)
    if not names:
        root.refuse(f"{key} must be a list of at least one name", key)
    for name in names:
        try:
            check(name)
        except UsageError as error:
            root.refuse(str(error), key)
        if names.count(name) > 1:
            root.refuse(f"{key} names {name!r} twice", key)
    return names


def _strategies(root: Table) -> tuple[Strategy, ...]:
    def check(name: str) -> None:
        if name not in list(Strategy):
            raise UsageError(f"no strategy is called {name!r}; there are {', '.join(Strategy)}")

    found = tuple(Strategy(name) for name in _checked(root, "strategies", check))
    if any(each.recovers for each in found) and Strategy.CONTINUE not in found:
        root.refuse(
            "a recovery starts from a failed run of continue, which must be planned too", "strategies"
        )
    if Strategy.SAFETY in found and not root.has("monitor"):
        root.refuse('the strategy safety needs a monitor: write monitor = "MODEL"', "strategies")
    # what others start from comes first
    return tuple(sorted(found, key=lambda each: each.recovers))


def _model_name(table: Table, known: dict[str, Conditions]) -> str:
    table.only(_MODEL_KEYS)
    name = table.text("name")
    if name in known:
        table.refuse(f"the model {name!r} is there twice", "name")
    _check_simulated(table, name, "name")
    return name


def _check_simulated(table: Table, name: str, key: str) -> None:
    if name.startswith(SIMULATED):
        try:
            profile_of(name)
        except UsageError as error:
            table.refuse(str(error), key)


def _conditions(root: Table, model: Table, limits: Table | None, *, simulated: bool) -> Conditions:
    monitor = root.text("monitor") if root.has("monitor") else ""
    _check_simulated(root, monitor, "monitor")
    if monitor and monitor.startswith(SIMULATED) is not simulated:
        root.refuse("agent and monitor are both simulated or both real, not one of each", "monitor")
    return Conditions(
        sandbox=_sandbox(root),
        network=root.flag("network", default=False),
        monitor=monitor,
        temperature=_temperature(model),
        price=_price(model),
        cell_cost=limits.real("cell_cost", least=0)
        if limits is not None and limits.has("cell_cost")
        else None,
        stuck_seconds=root.real("stuck_after", least=1) if root.has("stuck_after") else 1800.0,
        grade_progress=root.flag("progress", default=True),
        settings=model.texts("settings"),
    )


def _sandbox(root: Table) -> SandboxMode:
    name = root.text("sandbox") if root.has("sandbox") else SandboxMode.BUBBLEWRAP.value
    if name not in list(SandboxMode):
        root.refuse(f"sandbox must be one of {', '.join(SandboxMode)}, not {name!r}", "sandbox")
    return SandboxMode(name)


def _temperature(model: Table) -> float | None:
    """Absent: greedy. A model that takes none but its own has `own_temperature = true`."""
    if model.flag("own_temperature", default=False):
        return None
    return model.real("temperature", least=0) if model.has("temperature") else 0.0


def _price(model: Table) -> Price | None:
    if not any(model.has(key) for key in _PRICE_KEYS):
        return None
    fresh = model.real("input_price", least=0)
    return Price(
        input=fresh,
        output=model.real("output_price", least=0),
        cached=model.real("cached_price", least=0) if model.has("cached_price") else fresh,
    )


def _limits(table: Table | None, caps: dict[str, int]) -> Limits:
    if table is None:
        return Limits(jobs=1, cost=None, retries=2, model_jobs=caps)
    table.only(_LIMIT_KEYS)
    return Limits(
        jobs=table.number("jobs", least=1, default=1),
        cost=table.real("cost", least=0) if table.has("cost") else None,
        retries=table.number("retries", least=0, default=2),
        model_jobs=caps,
    )
