"""The paired recovery: two runs that go on from the same failed end of a Continue run.

Each arm gets a copy of the run's log and of its last snapshot, replays the log, and hears, in place of the
feedback that ended the run, the same account of the failure. The count of failures begins anew.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from agentrewind.clock import Clock, new_run_id
from agentrewind.errors import DamagedError, UsageError
from agentrewind.options import RunOptions
from agentrewind.outcome import RunResult
from agentrewind.records import (
    MAIN_WORKSPACE,
    Finished,
    ForkPoint,
    Record,
    RunId,
    Submission,
    WorkspaceDeclaration,
)
from agentrewind.replayer import OnDivergence
from agentrewind.run_store import Run, RunStore
from agentrewind.runs import resume_run
from agentrewind.supervise import Surroundings
from agentrewind.timeline import Timeline
from agentrewind.workspace.restore import restore_into
from agentrewind.workspace.roots import workspace_directory
from agentrewind.workspace.snapshots import SnapshotStore
from runner.cell import Strategy
from runner.grade import STORE, snapshots_below, states
from runner.order import Order
from runner.recovery_text import recovery_text
from runner.result import Endpoint, Exit, Result
from runner.result_form import load_result

RECOVERY = "recovery"
"""The criterion of the copied run's last submission: no failure that follows counts as its repetition."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Source:
    """The failed run: where it is kept, its log, its last submission."""

    home: Path
    run: Run
    timeline: Timeline
    last: Submission


def endpoint_of(order: Order) -> Endpoint | None:
    """The endpoint from which the cell starts, None where it starts from the untouched workspace."""
    if order.endpoint is None:
        return None
    result = _finished(order.endpoint)
    return Endpoint(cell=result.cell.id, prefix=result.prefix)


def begin_recovery(order: Order, options: RunOptions, workspace: Path, around: Surroundings) -> RunResult:
    """Copy the endpoint's log and files, and go on from there.

    Raises UsageError where the endpoint is no Continue run that ended in repeated failure.
    """
    source = _source(order)
    commit = states([source.run])[-1].commit
    target = workspace_directory(around.home, workspace.resolve())
    shutil.copytree(snapshots_below(source.home), target / "snapshots.git")
    store = SnapshotStore.open(target / "snapshots.git")
    try:
        restore_into(store, commit, workspace)
    finally:
        store.close()
    told = replace(
        options,
        task=RunOptions.from_json(source.timeline.header.options).task,
        # the rewind arm's prompt and tools are not those of the run that it goes on from
        on_divergence=OnDivergence.POSITION,
        rewind_after=source.last.record_uid,
    )
    run = _copy(source, told, workspace.resolve(), around.home, around.clock)
    return resume_run(run.run_id, around)


def _source(order: Order) -> _Source:
    assert order.endpoint is not None
    result = _finished(order.endpoint)
    if result.cell.strategy is not Strategy.CONTINUE or result.exit is not Exit.REPEATED_FAILURE:
        raise UsageError(
            f"{result.cell.id} ended with {result.exit.value}; a recovery starts from a run of continue that "
            "ended in repeated failure"
        )
    if result.cell.harness != order.cell.harness:
        raise UsageError(f"{result.cell.id} was run with {result.cell.harness}, not {order.cell.harness}")
    home = order.endpoint / STORE
    runs = RunStore(home).runs()
    if len(runs) != 1:
        raise DamagedError(f"{home} holds {len(runs)} runs, where a cell of continue has one")
    timeline = runs[0].timeline()
    return _Source(home=home, run=runs[0], timeline=timeline, last=timeline.submissions()[-1])


def _finished(folder: Path) -> Result:
    result = load_result(folder)
    if result is None:
        raise UsageError(f"{folder} holds no finished cell to recover from")
    return result


def _copy(source: _Source, options: RunOptions, workspace: Path, home: Path, clock: Clock) -> Run:
    """The failed run again under another id, open at its end."""
    header = source.timeline.header
    declared = header.workspaces[MAIN_WORKSPACE]
    run = RunStore(home).create(
        replace(
            header,
            run_id=RunId(new_run_id(clock)),
            forked_from=ForkPoint(run_id=header.run_id, segment=0, record_uid=None, inclusive=True),
            created_at=clock.now(),
            workspaces={MAIN_WORKSPACE: WorkspaceDeclaration(root=str(workspace), policy=declared.policy)},
            options=options.to_json(),
        )
    )
    with run.writer(0) as writer:
        for record in _records(source, options):
            writer.append(record, durable=False)
        writer.sync()
    return run


def _records(source: _Source, options: RunOptions) -> Iterator[Record]:
    """The log as it was, without its end; its last verdict says what either arm is to hear."""
    for record in source.timeline.records(0):
        if isinstance(record, Finished):
            continue
        if record == source.last:
            yield replace(
                source.last,
                criterion=RECOVERY,
                repeated=1,
                feedback=recovery_text(
                    times=source.last.repeated, feedback=source.last.feedback, can_rewind=options.can_rewind
                ),
            )
            continue
        yield record
