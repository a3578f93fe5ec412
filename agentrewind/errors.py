"""The tree of errors that AgentRewind raises.

```text
AgentRewindError
├── UsageError                  exit 2   the call cannot be understood or carried out as given
│   ├── UnknownRunError
│   ├── UnknownNodeError
│   └── UnknownHarnessError
├── DivergenceError             exit 3   the harness asks, on replay, for something the log does not hold
├── DamagedError                exit 4   something recorded cannot be read or is missing
│   ├── UnsupportedFormatError
│   └── MissingSnapshotError
├── ProtectedError              exit 5   refused, because going on could lose data
│   ├── WorkspaceBusyError
│   ├── WorkspaceRefusedError
│   └── OutsideChangesError
├── RestoreError                exit 1   a restore did not end in the state it promised
├── StorageError                exit 1   the store cannot be written (disk full, permissions)
├── HarnessError                exit 1   the agent or its provider failed
└── InternalError               exit 1   a defect of this package
```
"""

from __future__ import annotations

from collections.abc import Sequence


class AgentRewindError(Exception):
    """Root of every error of this package; `exit_code` is what the command line ends with."""

    exit_code = 1


class UsageError(AgentRewindError):
    """The call cannot be carried out as it was given."""

    exit_code = 2


class UnknownRunError(UsageError):
    """No run has this id; `nearest` holds the ids that look alike."""

    def __init__(self, run_id: str, nearest: Sequence[str] = ()) -> None:
        self.run_id = run_id
        self.nearest = tuple(nearest)
        hint = f"; did you mean {', '.join(nearest)}?" if nearest else ""
        super().__init__(f"no run is called {run_id!r}{hint} (see `agentrewind list`)")


class UnknownNodeError(UsageError):
    """The run has no such node; `nearest` holds the ids that look alike."""

    def __init__(self, record_uid: str, nearest: Sequence[str] = ()) -> None:
        self.record_uid = record_uid
        self.nearest = tuple(nearest)
        hint = f"; did you mean {', '.join(nearest)}?" if nearest else ""
        super().__init__(f"the run has no node {record_uid!r}{hint} (see `agentrewind log`)")


class UnknownHarnessError(UsageError):
    """Neither a known short name nor an importable path of an adapter."""

    def __init__(self, name: str, known: Sequence[str], reason: str = "") -> None:
        self.name = name
        self.known = tuple(known)
        detail = f" ({reason})" if reason else ""
        super().__init__(
            f"unknown harness {name!r}{detail}; known: {', '.join(known)}, or a path like "
            "package.module:Adapter"
        )


class DivergenceError(AgentRewindError):
    """On replay the harness asked for something else than the log holds.

    Attributes:
        record_uid: the recorded node that was expected, or None where the log has ended.
        difference: the first difference, one line per side, ready to print.
    """

    exit_code = 3

    def __init__(self, *, record_uid: str | None, difference: str) -> None:
        self.record_uid = record_uid
        self.difference = difference
        where = f"at {record_uid}" if record_uid else "after the last recorded node"
        super().__init__(f"replay diverged {where}: {difference}")


class DamagedError(AgentRewindError):
    """Something recorded cannot be read, or is missing."""

    exit_code = 4


class UnsupportedFormatError(DamagedError):
    """The run was written by a newer version."""

    def __init__(self, found: int, known: int) -> None:
        self.found = found
        self.known = known
        super().__init__(f"the run has format {found}, this version reads up to {known}; upgrade agentrewind")


class MissingSnapshotError(DamagedError):
    """A commit or object that the log names is not in the snapshot store."""

    def __init__(self, commit: str, reason: str) -> None:
        self.commit = commit
        self.reason = reason
        super().__init__(f"snapshot {commit} cannot be read: {reason}")


class ProtectedError(AgentRewindError):
    """Refused, because going on could lose data."""

    exit_code = 5


class WorkspaceBusyError(ProtectedError):
    """Another live run owns this workspace, or one that contains it or lies in it."""

    def __init__(self, root: str, owner: str) -> None:
        self.root = root
        self.owner = owner
        super().__init__(f"workspace {root} is in use by {owner}; wait for it or stop it first")


class WorkspaceRefusedError(ProtectedError):
    """This directory is never taken as a workspace (`/`, the home directory, one holding the store)."""


class OutsideChangesError(ProtectedError):
    """A person's restore would revert changes that no tool call made; `paths` names them."""

    def __init__(self, paths: Sequence[str]) -> None:
        self.paths = tuple(paths)
        shown = ", ".join(self.paths[:10]) + (" …" if len(self.paths) > 10 else "")
        super().__init__(
            f"{len(self.paths)} path(s) changed outside any tool call: {shown}; "
            "choose --outside keep or --outside revert"
        )


class RestoreError(AgentRewindError):
    """After a restore the directory is not what the snapshot says; `paths` names the differences."""

    def __init__(self, message: str, paths: Sequence[str] = ()) -> None:
        self.paths = tuple(paths)
        super().__init__(message)


class StorageError(AgentRewindError):
    """The store cannot be written; nothing was half-recorded, and the run stops before the next effect."""


class InternalError(AgentRewindError):
    """A defect of this package: the run is kept and stops before the next effect."""

    def __init__(self, cause: Exception) -> None:
        super().__init__(
            f"the runtime layer failed: {type(cause).__name__}: {cause} "
            "(a defect; please report it with the run's agent.log)"
        )


class HarnessError(AgentRewindError):
    """The agent or its provider failed; the run is kept and can be resumed."""
