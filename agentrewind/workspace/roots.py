"""Which directory may be a workspace, and where what belongs to it is kept."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from agentrewind.errors import UsageError, WorkspaceRefusedError

_OF_THE_KERNEL = ("proc", "sys")


def check_root(root: Path, *, home: Path, user_home: Path | None) -> Path:
    """The workspace's root with links resolved.

    Args:
        root: the directory that was asked for.
        home: where runs and stores are kept.
        user_home: the user's home directory, if there is one.

    Raises:
        UsageError: it does not exist, is no directory or cannot be entered.
        WorkspaceRefusedError: it is `/` or the kernel's, the home or above it, or it would hold the store.
    """
    resolved = _resolved(root)
    if resolved == Path(resolved.anchor):
        raise WorkspaceRefusedError(f"{resolved} is never taken as a workspace; name a project directory")
    if resolved.parts[1] in _OF_THE_KERNEL:
        raise WorkspaceRefusedError(
            f"{resolved} belongs to the kernel and holds no project; name another directory"
        )
    if user_home is not None and _within(user_home.resolve(), resolved):
        raise WorkspaceRefusedError(
            f"workspace {resolved} is the home directory or holds it; name a project directory inside it"
        )
    if _within(home.resolve(), resolved):
        raise WorkspaceRefusedError(
            f"workspace {resolved} holds the directory {home} where snapshots are kept; "
            "set AGENTREWIND_HOME to a directory outside the workspace"
        )
    if _within(resolved, home.resolve()):
        raise WorkspaceRefusedError(
            f"workspace {resolved} lies inside {home}, where snapshots are kept; name another directory"
        )
    return resolved


def recorded_root(root: Path, *, home: Path, user_home: Path | None) -> Path:
    """The root that a run recorded, as it stands now; made anew, and empty, where it is gone.

    Raises:
        WorkspaceRefusedError: another directory stands there, or a link leads to one.
        UsageError: it can be neither used nor made.
    """
    present_root(root)
    return check_root(root, home=home, user_home=user_home)


def present_root(root: Path) -> None:
    """See to it that a recorded root is a directory at its own place, made anew where it is gone.

    Raises as `recorded_root` does.
    """
    try:
        root.mkdir()
    except FileExistsError:
        pass
    except OSError as error:
        raise UsageError(f"workspace {root} is gone and cannot be made anew: {error}") from error
    resolved = root.resolve()
    if resolved != root:
        raise WorkspaceRefusedError(
            f"the run's workspace {root} now leads to {resolved}, which is another directory and is left "
            "alone; put the workspace itself back in its place"
        )


def _resolved(root: Path) -> Path:
    try:
        resolved = root.resolve(strict=True)
    except FileNotFoundError as error:
        raise UsageError(f"workspace {root} does not exist; create it or name another directory") from error
    except (OSError, RuntimeError) as error:
        raise UsageError(f"workspace {root} cannot be resolved: {error}") from error
    if not resolved.is_dir():
        raise UsageError(f"workspace {root} is not a directory")
    if not os.access(resolved, os.R_OK | os.X_OK):
        raise UsageError(f"workspace {root} cannot be read; check its permissions")
    return resolved


def _within(path: Path, directory: Path) -> bool:
    return path == directory or directory in path.parents


def workspace_identity(root: Path) -> str:
    """A short name that is the same for the same resolved root and for no other."""
    digest = hashlib.sha256(os.fsencode(root)).hexdigest()[:16]
    label = "".join(letter if letter.isascii() and letter.isalnum() else "-" for letter in root.name)[:32]
    return f"{label}-{digest}" if label else digest


def workspace_directory(home: Path, root: Path) -> Path:
    """Where the store and the lock of a workspace stand."""
    return home / "workspaces" / workspace_identity(root)
