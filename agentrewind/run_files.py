"""Finds the snapshots of a run and opens them for reading."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from agentrewind.errors import DamagedError
from agentrewind.path_states import States, path_to, states_of
from agentrewind.provenance import refuse_trajectory
from agentrewind.records import MAIN_WORKSPACE, CommitId, Node
from agentrewind.timeline import Timeline
from agentrewind.workspace.roots import workspace_directory
from agentrewind.workspace.snapshots import SnapshotStore

COPY = "copy"
"""The folder in a run that holds its files, where it is a fork."""


def declared_root(timeline: Timeline) -> Path:
    """Where the run saw its workspace. Raises DamagedError where its header does not tell."""
    refuse_trajectory(timeline)
    declaration = timeline.header.workspaces.get(MAIN_WORKSPACE)
    if declaration is None:
        raise DamagedError(f"the header of run {timeline.header.run_id} names no workspace")
    return Path(declaration.root)


def copy_of(timeline: Timeline) -> Path | None:
    """Where the files of a run lie that has a copy of its own; None for all others."""
    declaration = timeline.header.workspaces.get(MAIN_WORKSPACE)
    return None if declaration is None or declaration.copy is None else Path(declaration.copy)


def snapshot_store(home: Path, root: Path) -> Path:
    """Where the snapshots of a workspace stand. Raises DamagedError where there are none."""
    store = workspace_directory(home, root) / "snapshots.git"
    if not store.is_dir():
        raise DamagedError(f"the snapshots of workspace {root} are gone: there is no {store}")
    return store


@contextmanager
def open_snapshots(timeline: Timeline, home: Path) -> Iterator[SnapshotStore]:
    """The store of the run's workspace, closed at the end. Raises DamagedError where there is none."""
    with closing(SnapshotStore.open(snapshot_store(home, declared_root(timeline)))) as store:
        yield store


def changed_paths(node: Node, store: SnapshotStore | None) -> tuple[bytes, ...]:
    """All paths that a node changed; those that the log leaves out for their number come from the store.

    Raises:
        DamagedError: the log names only some of them, and there is no snapshot that tells the others.
    """
    span = node.metadata.workspaces.get(MAIN_WORKSPACE)
    if span is None:
        return ()
    named = tuple(change.path for change in span.diff_summary)
    if span.diff_total <= len(named):
        return named
    if store is None or span.before_commit is None or span.after_commit is None:
        raise DamagedError(
            f"{node.record_uid} changed {span.diff_total} paths, of which the log names {len(named)}, and "
            "there is no snapshot that tells the others"
        )
    return tuple(change.path for change in store.diff(span.before_commit, span.after_commit))


def states_along(timeline: Timeline, store: SnapshotStore, until: str | None) -> States:
    """The states of the current path, or of the one that ends with node `until`; at least one.

    Raises:
        UnknownNodeError: there is no such node.
        DamagedError: no snapshot of the path is known.
    """

    def same(one: CommitId, other: CommitId) -> bool:
        return one == other or not store.diff(one, other)

    states = states_of(timeline, path_to(timeline, until), same=same)
    if not states.found:
        why = "; ".join(states.skipped[:3]) or "the path has no node"
        raise DamagedError(f"run {timeline.header.run_id} has no snapshot on this path: {why}")
    return states
