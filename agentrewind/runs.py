"""Starts and resumes runs: what has to hold first, the workspace's lock, the header, then the supervisor."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from agentrewind import __version__
from agentrewind.adapters import check_harness
from agentrewind.clock import new_run_id
from agentrewind.copied_runs import refuse_outside
from agentrewind.errors import DamagedError, ProtectedError, UsageError
from agentrewind.log_end import missing_end
from agentrewind.named_calls import named_calls
from agentrewind.opening import Place
from agentrewind.options import RunOptions
from agentrewind.outcome import RunResult
from agentrewind.records import (
    FORMAT,
    MAIN_WORKSPACE,
    Header,
    JsonObject,
    LlmNode,
    RunId,
    ToolNode,
    WorkspaceDeclaration,
)
from agentrewind.replayer import OnDivergence
from agentrewind.run_files import copy_of, declared_root
from agentrewind.run_store import Run, RunStore
from agentrewind.supervise import Supervisor, Surroundings, refuse_gaps
from agentrewind.timeline import Timeline
from agentrewind.workspace.lock import WorkspaceLock
from agentrewind.workspace.policy import Policy
from agentrewind.workspace.roots import check_root, recorded_root, workspace_directory
from agentrewind.workspace.snapshots import SnapshotStore


@dataclass(frozen=True, slots=True, kw_only=True)
class NewRun:
    """The run that is to be started."""

    root: Path
    harness: str | None
    model: str | None
    options: RunOptions
    policy: Policy


def start_run(new: NewRun, around: Surroundings) -> RunResult:
    """Begin a run and see it through. Raises UsageError, ProtectedError and what a rewind can raise."""
    if new.harness is not None:
        check_harness(new.harness)
    elif not new.options.command:
        raise UsageError("neither a harness nor a command says which agent is to run")
    root = check_root(new.root, home=around.home, user_home=around.user_home)
    if new.options.command:
        _check_command(new.options.command[0], root, around.environment)
    run_id = RunId(new_run_id(around.clock))
    with _owning(around, root, run_id):
        declaration = WorkspaceDeclaration(root=str(root), policy=new.policy.to_json())
        run = RunStore(around.home).create(
            Header(
                format=FORMAT,
                run_id=run_id,
                segment=0,
                forked_from=None,
                created_at=around.clock.now(),
                workspaces={MAIN_WORKSPACE: declaration},
                harness=new.harness,
                model=new.model,
                versions=_versions(),
                options=new.options.to_json(),
            )
        )
        around.on_created(run)
        with Supervisor(_place(around.home, run, root), around) as supervisor:
            return supervisor.see_through()


def resume_run(run_id: str, around: Surroundings, *, on_divergence: OnDivergence | None = None) -> RunResult:
    """Go on with a run after a crash, an interrupted rewind, or a failure of the provider.

    Raises ProtectedError where the run has a copy of its own that this process does not see.
    """
    run = RunStore(around.home).open(run_id)
    refuse_outside(run, around.environment)
    timeline = run.timeline()
    declared = declared_root(timeline)
    if timeline.state() in ("accepted", "rejected") and timeline.pending_rewind() is None:
        raise UsageError(f"run {run.run_id} is finished ({timeline.state()}); there is nothing to resume")
    if timeline.header.harness is not None:
        check_harness(timeline.header.harness)
    refuse_gaps(timeline)
    if timeline.header.harness is None:
        _refuse_unrouted(timeline)
    if not declared.exists() and timeline.pending_rewind() is None:
        raise UsageError(
            f"workspace {declared} is gone; put it back, or bring its files back first: "
            f"agentrewind restore {run.run_id} NODE --after --in-place --outside revert"
        )
    root = recorded_root(declared, home=around.home, user_home=around.user_home)
    with _owning(around, root, run.run_id, copy=copy_of(timeline)):
        place = _place(around.home, run, root)
        _refuse_cut(timeline, place)
        around.on_created(run)
        with Supervisor(place, around, on_divergence=on_divergence) as supervisor:
            supervisor.end_leftovers()
            return supervisor.see_through()


def _check_command(program: str, root: Path, environment: Mapping[str, str]) -> None:
    """Refuse what cannot be started before there is a run of it."""
    found = shutil.which(root / program if "/" in program else program, path=environment.get("PATH"))
    if found is None:
        where = f"in {root}" if "/" in program else "on PATH"
        raise UsageError(f"{program} cannot be started: there is no such program {where}")


def _refuse_unrouted(timeline: Timeline) -> None:
    """Refuse to start a script again whose tools pass the layer by: they would run a second time."""
    path = timeline.path()
    asked = any(isinstance(node, LlmNode) and named_calls(node) for node in path)
    begun = any(each.tool_name is not None for each in timeline.started_unfinished())
    if asked and not begun and not any(isinstance(node, ToolNode) for node in path):
        raise ProtectedError(
            "the agent's tools do not pass the layer, so they would all run again in the workspace; route "
            "them through agentrewind.call_tool. `replay` and `restore` work as they are"
        )


def _refuse_cut(timeline: Timeline, place: Place) -> None:
    """Refuse to go on from an end that is not the one the run had: what came after it has happened."""
    if not place.store.is_dir():
        return
    with closing(SnapshotStore.open(place.store)) as store:
        missing = missing_end(timeline, store)
    if missing is not None:
        raise DamagedError(
            f"the log of run {place.run.run_id} has lost its end ({missing}), so that it cannot go on; "
            "`agentrewind restore` and `agentrewind fork` still serve from the nodes that are listed"
        )


def _place(home: Path, run: Run, root: Path) -> Place:
    return Place(run=run, root=root, store=workspace_directory(home, root) / "snapshots.git")


@contextmanager
def _owning(around: Surroundings, root: Path, run_id: str, *, copy: Path | None = None) -> Iterator[None]:
    owner: JsonObject = {"run": run_id, "pid": os.getpid()}
    with WorkspaceLock.acquire(around.home, root, owner=owner, copy=copy) as lock:
        if lock.taken_over:
            around.tell(f"took over the workspace from {lock.taken_over}")
        yield


def _versions() -> Mapping[str, str]:
    return {"agentrewind": __version__, "python": sys.version.split()[0]}
