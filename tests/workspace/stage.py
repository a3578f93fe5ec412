"""A workspace with its store, for tests."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from agentrewind.clock import SystemClock
from agentrewind.workspace.policy import Policy
from agentrewind.workspace.snapshots import SnapshotStore
from agentrewind.workspace.tracker import Workspace


@dataclass(frozen=True)
class Stage:
    """The root of a workspace, its store and the tracker over it."""

    root: Path
    store: SnapshotStore
    workspace: Workspace

    def take(self, label: str = "test") -> str:
        """A snapshot that must be whole."""
        taken = self.workspace.snapshot(label=label)
        assert taken.partial == ()
        return taken.commit


@contextmanager
def staged(
    base: Path, *, policy: Policy | None = None, watch: bool = True, ref: str = "refs/runs/test"
) -> Iterator[Stage]:
    """A stage under a directory; opened again, it goes on where it was."""
    root = base / "ws"
    root.mkdir(parents=True, exist_ok=True)
    store = SnapshotStore.open(base / "store.git")
    workspace = Workspace(
        root=root, store=store, policy=policy or Policy.default(), ref=ref, clock=SystemClock(), watch=watch
    )
    try:
        yield Stage(root, store, workspace)
    finally:
        workspace.close()
        store.close()
