"""Finds repositories that the workspace belongs to but whose own data lies outside of it."""

from __future__ import annotations

import os
from pathlib import Path

_POINTER = b"gitdir:"


def repositories_outside(root: Path) -> tuple[str, ...]:
    """Where the data of the root's repository lies, if that is outside: a linked worktree, a parent's `.git`.

    Snapshots do not hold it, so a rewind leaves its branches, index and commits as they are.
    """
    own = root / ".git"
    if own.is_dir():
        return ()
    if own.is_file():
        try:
            text = own.read_bytes()
        except OSError:
            return ()
        if not text.startswith(_POINTER):
            return ()
        target = (root / os.fsdecode(text.removeprefix(_POINTER).strip())).resolve()
        return () if root in target.parents else (str(target),)
    for parent in root.parents:
        if (parent / ".git").exists():
            return (str(parent / ".git"),)
    return ()
