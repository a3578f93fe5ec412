"""Grades the snapshots of a cell's runs: the last one, and for the curve of progress every one before it."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from agentrewind.errors import DamagedError
from agentrewind.options import RunOptions
from agentrewind.records import MAIN_WORKSPACE, CommitId, Node
from agentrewind.run_store import Run
from agentrewind.workspace.restore import restore_into
from agentrewind.workspace.snapshots import SnapshotStore
from mettlebench.errors import EvaluatorError
from mettlebench.evaluate import evaluate
from mettlebench.sandbox import SandboxMode
from mettlebench.task import Task
from mettlebench.tree import remove_tree
from mettlebench.verdict import Verdict
from runner.result import Progress

STORE = "store"
"""The folder of a cell that holds its runs and their snapshots."""

GRADING = "grading-"
"""How a folder is called in which a snapshot is graded, beside the store; left over only by a kill."""


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """The workspace from `nodes` nodes of trace length on."""

    nodes: int
    commit: CommitId


def states(runs: Sequence[Run]) -> tuple[State, ...]:
    """The recorded states of a cell in order of trace length, over all its runs.

    Raises DamagedError where the last node of the last run has no snapshot after it.
    """
    found: list[State] = []
    offset = 0
    last: CommitId | None = None
    for run in runs:
        nodes = own_nodes(run)
        for place, node in enumerate(nodes):
            before, last = _commits(node)
            if before is not None:
                found.append(State(nodes=offset + place, commit=before))
        offset += len(nodes)
        if last is not None:
            found.append(State(nodes=offset, commit=last))
    if last is None:
        raise DamagedError("the last node of the run has no snapshot after it; there is nothing to grade")
    return tuple(found)


def own_nodes(run: Run) -> list[Node]:
    """A run's nodes in the order of their ids, without those that it took over from a failed one."""
    timeline = run.timeline()
    last = RunOptions.from_json(timeline.header.options).rewind_after
    return sorted(
        (node for uid, node in timeline.nodes.items() if uid > last), key=lambda node: node.record_uid
    )


def _commits(node: Node) -> tuple[CommitId | None, CommitId | None]:
    span = node.metadata.workspaces.get(MAIN_WORKSPACE)
    return (None, None) if span is None else (span.before_commit, span.after_commit)


class Grader:
    """Grades snapshots out of one cell's store; equal trees are graded once."""

    def __init__(self, task: Task, store: SnapshotStore, *, mode: SandboxMode, scratch: Path) -> None:
        self._task = task
        self._scratch = scratch
        self._store = store
        self._mode = mode
        self._verdicts: dict[object, Verdict] = {}

    def verdict(self, commit: CommitId) -> Verdict:
        """The verdict on a snapshot. Raises EvaluatorError, MissingSnapshotError."""
        key = self._store.commit(commit).root
        if key not in self._verdicts:
            place = Path(tempfile.mkdtemp(prefix=GRADING, dir=self._scratch))
            try:
                restore_into(self._store, commit, place / "workspace")
                self._verdicts[key] = evaluate(self._task, place / "workspace", mode=self._mode)
            finally:
                remove_tree(place)
        return self._verdicts[key]

    def curve(self, found: Sequence[State]) -> tuple[Progress, ...]:
        """The satisfied prefix over trace length, one point per change.

        A state that was never submitted and that the evaluator cannot cope with is left out.
        """
        points: list[Progress] = []
        for state in found:
            try:
                prefix = self.verdict(state.commit).prefix
            except EvaluatorError:
                continue
            if points and points[-1].nodes == state.nodes:
                points.pop()
            if not points or points[-1].prefix != prefix:
                points.append(Progress(nodes=state.nodes, prefix=prefix))
        return tuple(points)


@contextmanager
def grader(task: Task, home: Path, *, mode: SandboxMode) -> Iterator[Grader]:
    """A grader of the one workspace whose snapshots are below `home`, wherever that lay when it was run."""
    store = SnapshotStore.open(snapshots_below(home))
    try:
        yield Grader(task, store, mode=mode, scratch=home.parent)
    finally:
        store.close()


def snapshots_below(home: Path) -> Path:
    """Where the snapshots of a cell's one workspace are kept. Raises DamagedError where it is not one."""
    stores = sorted(home.glob("workspaces/*/snapshots.git"))
    if len(stores) != 1:
        raise DamagedError(f"{home} holds {len(stores)} stores of snapshots, where a cell has one")
    return stores[0]
