"""Tells whether a live process is at work on a run: it then holds the lock of the run's files."""

from __future__ import annotations

from pathlib import Path

from agentrewind.records import MAIN_WORKSPACE
from agentrewind.run_files import copy_of
from agentrewind.timeline import Timeline
from agentrewind.workspace.lock import lock_directory, owner_of


def is_running(home: Path, timeline: Timeline) -> bool:
    """Whether the workspace, or its own copy of it, is held by this very run, now."""
    declaration = timeline.header.workspaces.get(MAIN_WORKSPACE)
    if declaration is None:
        return False
    owner = owner_of(lock_directory(home, Path(declaration.root), copy_of(timeline))) or {}
    return timeline.header.run_id in (owner.get("run"), owner.get("run_id"))
