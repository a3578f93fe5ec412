"""Runs a cell once: workspace, agent, verdicts, and the attempts of Restart with Experiences.

What goes wrong with the machine, the provider or the evaluator raises InfrastructureError, and the cell may
be run again. What the agent does wrong is a result.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from agentrewind.errors import AgentRewindError, HarnessError, UsageError
from agentrewind.options import REPEATED_FAILURES, Ablation, RunOptions
from agentrewind.options import Strategy as RunStrategy
from agentrewind.outcome import RunResult
from agentrewind.records import JsonObject, ToolNode
from agentrewind.run_store import Run
from agentrewind.runs import NewRun, start_run
from agentrewind.supervise import Surroundings
from agentrewind.workspace.policy import Policy
from mettlebench.build import build_workspace
from mettlebench.errors import MettleBenchError
from mettlebench.load import load_task
from mettlebench.task import Task
from mettlebench.tree import remove_tree
from mettlebench.verdict import Verdict
from runner import check, experiences
from runner.agent_shell import STUCK_FILE
from runner.cell import SIMULATED, Strategy
from runner.grade import GRADING, STORE
from runner.harnesses import harness_settings
from runner.machine import Machine
from runner.order import Order, Price, shell_settings
from runner.prices import price_of
from runner.recovery import begin_recovery
from runner.simulation.serving import AGENT, MONITOR, simulated_models
from runner.spending import Spending

WORKSPACE = "workspace"
REVIEWS_FILE = "reviews.jsonl"
EXPERIENCES_FILE = "experiences.md"
POLICY = Policy(excluded=(), volatile=(), track_everything=True)

_ABLATIONS = {
    Strategy.REWIND_NO_ENVIRONMENT: Ablation.ENVIRONMENT,
    Strategy.REWIND_NO_CONTEXT: Ablation.CONTEXT,
    Strategy.REWIND_NO_MEMORY: Ablation.MEMORY,
}
_AGENTS_OWN = ("ContextWindowExceededError", "ContentPolicyViolationError")
"""Errors of a provider that the agent has brought about by what it said."""


class InfrastructureError(HarnessError):
    """Something other than the agent failed. `clean` is False where a stuck command had to be ended."""

    def __init__(self, message: str, *, clean: bool = True) -> None:
        self.clean = clean
        super().__init__(message)


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """What a cell came to, before it is graded: its runs in order, how the last ended, what it took."""

    order: Order
    task: Task
    runs: tuple[Run, ...]
    ended: RunResult
    over_cost: bool
    seconds: float
    started_at: str


def run_trial(order: Order, folder: Path, machine: Machine) -> Trial:
    """Run the cell in its folder, which an earlier try may have left half done.

    Raises InfrastructureError, UsageError, and TaskFormatError or UnknownTaskError for the task.
    """
    task = load_task(order.cell.task, order.tasks)
    clear(folder)
    started_at, began = machine.clock.now(), machine.clock.monotonic()
    with ExitStack() as stack:
        environment = stack.enter_context(_models(order, task, machine.environment))
        spending = stack.enter_context(Spending(_price(order), order.conditions.cell_cost))
        attempts = _Attempts(order, task, folder, replace(machine, environment=environment), spending)
        try:
            ended = attempts.all()
        except MettleBenchError as error:
            raise InfrastructureError(str(error)) from error
    if ended.state == "error" and not any(name in ended.detail for name in _AGENTS_OWN):
        raise InfrastructureError(ended.detail, clean=not (folder / STUCK_FILE).exists())
    return Trial(
        order=order,
        task=task,
        runs=tuple(attempts.runs),
        ended=ended,
        over_cost=spending.over,
        seconds=round(machine.clock.monotonic() - began, 3),
        started_at=started_at,
    )


def _price(order: Order) -> Price | None:
    """What the model costs, needed only for a limit. Raises UsageError where a limit has no price."""
    conditions = order.conditions
    if conditions.cell_cost is None or order.cell.simulated:
        return conditions.price
    price = conditions.price or price_of(order.cell.model)
    if price is None:
        raise UsageError(
            f"a limit of cost needs the price of {order.cell.model}, which is not known; give it"
        )
    return price


def clear(folder: Path) -> None:
    """Remove what an earlier try has left, its store kept as `failed-N` for whoever wants to know why."""
    folder.mkdir(parents=True, exist_ok=True)
    for left in (folder / WORKSPACE, *folder.glob(f"{GRADING}*")):
        remove_tree(left)
    if (folder / STORE).exists():
        number = 1
        while (folder / f"failed-{number}").exists():
            number += 1
        (folder / STORE).rename(folder / f"failed-{number}")
    for name in (check.VERDICTS_FILE, REVIEWS_FILE, EXPERIENCES_FILE, STUCK_FILE):
        (folder / name).unlink(missing_ok=True)


@contextmanager
def _models(order: Order, task: Task, environment: Mapping[str, str]) -> Iterator[Mapping[str, str]]:
    """The environment in which the agent's and the monitor's models can be reached."""
    simulated = [order.cell.simulated]
    if order.cell.strategy is Strategy.SAFETY:
        if not order.conditions.monitor:
            raise UsageError("the strategy safety needs a monitor: --monitor MODEL, or monitor in the plan")
        simulated.append(order.conditions.monitor.startswith(SIMULATED))
    if not any(simulated):
        yield environment
        return
    if not all(simulated):
        raise UsageError("agent and monitor are both simulated or both real, not one of each")
    with simulated_models(order, task, environment) as served:
        yield served


class _Attempts:
    """The runs of one cell: one, or for Restart one after the other."""

    def __init__(self, order: Order, task: Task, folder: Path, machine: Machine, spending: Spending) -> None:
        self._order = order
        self._task = task
        self._folder = folder
        self._machine = machine
        self._spending = spending
        self._home = folder / STORE
        self.runs: list[Run] = []

    def all(self) -> RunResult:
        """Run them; returns how the last one ended."""
        if self._order.cell.strategy.recovers:
            return begin_recovery(self._order, self._options(""), self._folder / WORKSPACE, self._around())
        blocks = ""
        while True:
            self._fresh_workspace()
            ended = self._one(self._options(blocks))
            verdicts = check.read_verdicts(self._folder)
            if ended.state != "rejected" or self._order.cell.strategy is not Strategy.RESTART:
                return ended
            repeated = repeated_failures(verdicts)
            if repeated >= REPEATED_FAILURES or self._spending.over:
                return ended
            blocks += "\n" * bool(blocks) + experiences.block(
                attempt=len(self.runs),
                verdict=verdicts[-1],
                repeated=repeated,
                limit=REPEATED_FAILURES,
                excerpt=_last_output(self.runs[-1]),
            )
            (self._folder / EXPERIENCES_FILE).write_text(blocks, encoding="utf-8")

    def _fresh_workspace(self) -> None:
        workspace = self._folder / WORKSPACE
        remove_tree(workspace)
        build_workspace(self._task, workspace, mode=self._order.conditions.sandbox)

    def _one(self, options: RunOptions) -> RunResult:
        cell = self._order.cell
        new = NewRun(
            root=self._folder / WORKSPACE,
            harness=cell.harness,
            model=AGENT if cell.simulated else cell.model,
            options=options,
            policy=POLICY,
        )
        try:
            return start_run(new, self._around())
        except UsageError:
            raise
        except AgentRewindError as error:
            raise InfrastructureError(f"{type(error).__name__}: {error}") from error

    def _around(self) -> Surroundings:
        def created(run: Run) -> None:
            self.runs.append(run)
            self._spending.follow(run)
            self._machine.tell(f"{self._order.cell.id}: run {run.run_id} in {self._home}")

        return Surroundings(
            home=self._home,
            user_home=None,
            environment=self._machine.environment,
            clock=self._machine.clock,
            tell=self._machine.tell,
            on_created=created,
        )

    def _options(self, blocks: str) -> RunOptions:
        order, strategy = self._order, self._order.cell.strategy
        shell = shell_settings(order, self._folder)
        if strategy is Strategy.SAFETY:
            shell["monitor"] = self._monitor()
        return RunOptions(
            task=experiences.with_experiences(self._task.instruction, blocks),
            check=check.command(
                task_id=self._task.id,
                tasks=order.tasks,
                folder=self._folder,
                mode=order.conditions.sandbox,
            ),
            strategy=RunStrategy.REWIND if strategy.rewinds else RunStrategy.CONTINUE,
            ablations=frozenset({_ABLATIONS[strategy]} if strategy in _ABLATIONS else ()),
            repeated_failures=1 if strategy is Strategy.RESTART else REPEATED_FAILURES,
            jobs_end=True,
            settings={**harness_settings(order.cell.harness, order.conditions), "shell": shell},
        )

    def _monitor(self) -> JsonObject:
        conditions = self._order.conditions
        return {
            "model": MONITOR if conditions.monitor.startswith(SIMULATED) else conditions.monitor,
            "task": self._task.instruction,
            "log": str(self._folder / REVIEWS_FILE),
            "temperature": conditions.temperature,
        }


def repeated_failures(verdicts: tuple[Verdict, ...]) -> int:
    """How many of the last verdicts in a row failed first at the same criterion."""
    count = 0
    for verdict in reversed(verdicts):
        if verdict.accepted or verdict.first_failure != verdicts[-1].first_failure:
            break
        count += 1
    return count


def _last_output(run: Run) -> str:
    """What the agent's last command but the submission printed."""
    for node in reversed(run.timeline().path()):
        if isinstance(node, ToolNode) and isinstance(node.output, dict):
            text = node.output.get("output") or node.output.get("text")
            if isinstance(text, str) and text.strip():
                return text
    return ""
