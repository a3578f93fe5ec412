"""Makes the result of a cell out of its trial: counts, tokens, grades, suspicions."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from agentrewind.clock import Clock
from agentrewind.errors import DamagedError
from agentrewind.options import RunOptions
from agentrewind.records import LlmNode, Node, Submission
from agentrewind.rewind.conduct import count_rewinds
from agentrewind.run_store import Run
from mettlebench.errors import MettleBenchError
from mettlebench.task import Task
from mettlebench.verdict import Verdict
from runner import check
from runner.cell import Strategy
from runner.grade import STORE, grader, own_nodes, states
from runner.order import Order
from runner.prices import price_of
from runner.recovery import endpoint_of
from runner.result import (
    Criterion,
    Exit,
    Progress,
    Result,
    Reviews,
    SubmissionResult,
    Suspicion,
    Tokens,
)
from runner.result import State as RunState
from runner.spending import cost_of, counted, tokens_of
from runner.suspicion import hidden_of, suspicions
from runner.trial import REVIEWS_FILE, InfrastructureError, Trial


def assemble(trial: Trial, folder: Path, clock: Clock) -> Result:
    """The result of a cell that ended. Raises InfrastructureError where its last state cannot be graded."""
    order, runs = trial.order, trial.runs
    nodes = [node for run in runs for node in own_nodes(run)]
    verdicts = check.read_verdicts(folder)
    reviews, monitor_tokens = _reviews(order, folder)
    tokens = tokens_of(nodes)
    try:
        with grader(trial.task, folder / STORE, mode=order.conditions.sandbox) as grades:
            found = states(runs)
            final = grades.verdict(found[-1].commit)
            progress = grades.curve(found) if order.conditions.grade_progress else ()
    except (MettleBenchError, DamagedError) as error:
        raise InfrastructureError(f"the last state cannot be graded: {error}") from error
    marks = _marks(trial, folder, final)
    return Result(
        cell=order.cell,
        task_digest=digest_of(trial.task),
        family=trial.task.family.value,
        seed=order.seed,
        state=RunState(trial.ended.state),
        exit=_exit(trial, final),
        detail=trial.ended.detail,
        accepted=trial.ended.state == "accepted",
        success=final.accepted,
        criteria=criteria_of(final),
        submissions=_submissions(runs, verdicts),
        nodes=len(nodes),
        llm_nodes=sum(isinstance(node, LlmNode) for node in nodes),
        tool_nodes=sum(not isinstance(node, LlmNode) for node in nodes),
        rewinds=sum(count_rewinds(run.timeline()) for run in runs),
        attempts=len(runs),
        tries=order.tries,
        tokens=tokens,
        cost=_cost(order, tokens if counted(nodes) else None, monitor_tokens),
        seconds=trial.seconds,
        snapshot_seconds=snapshot_seconds(nodes),
        storage_bytes=storage_of(folder / STORE),
        suspicions=marks,
        clean=order.clean,
        progress=progress,
        sandbox=order.conditions.sandbox.value,
        started_at=trial.started_at,
        ended_at=clock.now(),
        reviews=reviews,
        endpoint=endpoint_of(order),
    )


def abnormal(order: Order, exit_: Exit, detail: str, *, family: str, clock: Clock) -> Result:
    """The result of a cell that says nothing about its agent: cancelled, or the machine failed too often."""
    now = clock.now()
    return Result(
        cell=order.cell,
        task_digest="",
        family=family,
        seed=order.seed,
        state=RunState.ERROR,
        exit=exit_,
        detail=detail,
        accepted=False,
        success=False,
        criteria=(),
        submissions=(),
        nodes=0,
        llm_nodes=0,
        tool_nodes=0,
        rewinds=0,
        attempts=0,
        tries=order.tries,
        tokens=Tokens(),
        cost=None,
        seconds=0.0,
        storage_bytes=0,
        suspicions=(),
        clean=order.clean,
        progress=(),
        sandbox=order.conditions.sandbox.value,
        started_at=now,
        ended_at=now,
    )


def criteria_of(verdict: Verdict) -> tuple[Criterion, ...]:
    """The outcomes of a verdict as a result holds them."""
    return tuple(
        Criterion(id=each.id, category=each.category, passed=each.passed) for each in verdict.results
    )


def regraded(result: Result, verdict: Verdict, progress: tuple[Progress, ...], digest: str) -> Result:
    """The same run, judged by the task as it is now."""
    return replace(
        result,
        success=verdict.accepted,
        criteria=criteria_of(verdict),
        progress=progress,
        task_digest=digest,
    )


def digest_of(task: Task) -> str:
    """A digest of the task's folder, by names and contents."""
    digest = hashlib.sha256()
    for path in sorted(task.folder.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            digest.update(str(path.relative_to(task.folder)).encode() + b"\0")
            digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()[:16]


def storage_of(home: Path) -> int:
    """Bytes of all files below: logs, blobs, snapshots."""
    return sum(path.stat().st_size for path in home.rglob("*") if path.is_file() and not path.is_symlink())


def snapshot_seconds(nodes: Sequence[Node]) -> float | None:
    """Mean seconds of the snapshots before these nodes; None where none of them was measured."""
    took = [node.metadata.snapshot_us for node in nodes if node.metadata.snapshot_us is not None]
    return round(sum(took) / len(took) / 1_000_000, 6) if took else None


def _exit(trial: Trial, final: Verdict) -> Exit:
    match trial.ended.state:
        case "accepted" if final.accepted:
            return Exit.SUCCESS
        case "rejected":
            return Exit.COST_LIMIT if trial.over_cost else Exit.REPEATED_FAILURE
        case "stopped" if trial.over_cost:
            return Exit.COST_LIMIT
        case "stopped" if trial.ended.detail == "stopped by a person":
            return Exit.CANCELLED
        case _:
            return Exit.AGENT_STOPPED


def _submissions(runs: Sequence[Run], verdicts: Sequence[Verdict]) -> tuple[SubmissionResult, ...]:
    found: list[SubmissionResult] = []
    made = [(attempt, each) for attempt, run in enumerate(runs, 1) for each in run.timeline().submissions()]
    made = made[-len(verdicts) :] if verdicts else []  # those before a recovery's endpoint are not its own
    sizes = {attempt: sum(len(own_nodes(run)) for run in runs[: attempt - 1]) for attempt, _ in made}
    repeated = 0
    for (attempt, each), verdict in zip(made, verdicts, strict=True):
        same = bool(found) and found[-1].first_failure == verdict.first_failure
        repeated = 0 if verdict.accepted else repeated + 1 if same else 1
        found.append(
            _submission(
                each,
                verdict,
                attempt=attempt,
                nodes=sizes[attempt] + _place(runs[attempt - 1], each),
                repeated=repeated,
            )
        )
    return tuple(found)


def _submission(
    each: Submission, verdict: Verdict, *, attempt: int, nodes: int, repeated: int
) -> SubmissionResult:
    return SubmissionResult(
        attempt=attempt,
        record_uid=each.record_uid,
        nodes=nodes,
        accepted=verdict.accepted,
        first_failure=verdict.first_failure,
        prefix=verdict.prefix,
        passed=tuple(result.id for result in verdict.results if result.passed),
        regressions=verdict.regressions,
        repeated=repeated,
    )


def _place(run: Run, each: Submission) -> int:
    return sum(node.record_uid <= each.record_uid for node in own_nodes(run))


def _marks(trial: Trial, folder: Path, final: Verdict) -> tuple[Suspicion, ...]:
    told = "\n".join(RunOptions.from_json(run.timeline().header.options).task for run in trial.runs)
    marks = suspicions(trial.runs, hidden_of(trial.task, folder), told=told)
    if (trial.ended.state == "accepted") is final.accepted:
        return marks
    last = max(trial.runs[-1].timeline().nodes)
    text = "the workspace changed between the last verdict and the end of the run"
    return (*marks, Suspicion(kind="changed-after-verdict", record_uid=last, text=text))


def _reviews(order: Order, folder: Path) -> tuple[Reviews | None, Tokens]:
    """What the monitor did, and the tokens it took."""
    if order.cell.strategy is not Strategy.SAFETY:
        return None, Tokens()
    try:
        lines = (folder / REVIEWS_FILE).read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        lines = []
    found = [json.loads(line) for line in lines]
    reviews = Reviews(
        asked=len(found),
        blocked=sum(each["decision"] == "UNSAFE" for each in found),
        unparsable=sum(not each["readable"] for each in found),
    )
    names = ("input", "output", "cached")
    sums = {name: sum(each["tokens"].get(name, 0) for each in found) for name in names}
    return reviews, Tokens(**sums)


def _cost(order: Order, tokens: Tokens | None, monitor: Tokens) -> float | None:
    """US dollars; None where a price or the number of tokens is not known."""
    if order.cell.simulated:
        return 0.0
    price = order.conditions.price or price_of(order.cell.model)
    cost = None if price is None or tokens is None else cost_of(tokens, price)
    if cost is None or monitor == Tokens():
        return cost
    watched = price_of(order.conditions.monitor)
    return None if watched is None else cost + cost_of(monitor, watched)
