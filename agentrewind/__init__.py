"""A runtime layer around a coding agent that lets it go back.

Everything public is listed in `__all__` and imported when it is first asked for.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agentrewind.contexts import record, replay, resume
    from agentrewind.errors import (
        AgentRewindError,
        DamagedError,
        DivergenceError,
        HarnessError,
        InternalError,
        MissingSnapshotError,
        OutsideChangesError,
        ProtectedError,
        RestoreError,
        StorageError,
        UnknownHarnessError,
        UnknownNodeError,
        UnknownRunError,
        UnsupportedFormatError,
        UsageError,
        WorkspaceBusyError,
        WorkspaceRefusedError,
    )
    from agentrewind.own_tools import call_tool, rewind_guidance, rewind_tools, submit, tool
    from agentrewind.rewind.signal import RewindSignal

__version__ = "0.1.0"

__all__ = [
    "AgentRewindError",
    "DamagedError",
    "DivergenceError",
    "HarnessError",
    "InternalError",
    "MissingSnapshotError",
    "OutsideChangesError",
    "ProtectedError",
    "RestoreError",
    "RewindSignal",
    "StorageError",
    "UnknownHarnessError",
    "UnknownNodeError",
    "UnknownRunError",
    "UnsupportedFormatError",
    "UsageError",
    "WorkspaceBusyError",
    "WorkspaceRefusedError",
    "call_tool",
    "record",
    "replay",
    "resume",
    "rewind_guidance",
    "rewind_tools",
    "submit",
    "tool",
]

_HOMES = {
    "RewindSignal": "agentrewind.rewind.signal",
    "call_tool": "agentrewind.own_tools",
    "record": "agentrewind.contexts",
    "replay": "agentrewind.contexts",
    "resume": "agentrewind.contexts",
    "rewind_guidance": "agentrewind.own_tools",
    "rewind_tools": "agentrewind.own_tools",
    "submit": "agentrewind.own_tools",
    "tool": "agentrewind.own_tools",
}


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES.get(name, "agentrewind.errors")), name)
