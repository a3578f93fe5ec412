"""Which commits of repositories inside the workspace a restore leaves without a name."""

from __future__ import annotations

from agentrewind.records import CommitId
from agentrewind.workspace.snapshots import SnapshotStore


def lost_commits(store: SnapshotStore, before: CommitId, after: CommitId, *, root: int) -> tuple[str, ...]:
    return ()
