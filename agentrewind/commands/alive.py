"""Tells whether a live process is at work on a run: it then holds the lock of the run's workspace."""

from __future__ import annotations

from pathlib import Path

from agentrewind.records import MAIN_WORKSPACE
from agentrewind.timeline import Timeline
from agentrewind.workspace.lock import owner_of


def is_running(home: Path, timeline: Timeline) -> bool:
    """Whether the workspace is held by this very run, now."""
    declaration = timeline.header.workspaces.get(MAIN_WORKSPACE)
    if declaration is None:
        return False
    owner = owner_of(home, Path(declaration.root)) or {}
    return timeline.header.run_id in (owner.get("run"), owner.get("run_id"))
