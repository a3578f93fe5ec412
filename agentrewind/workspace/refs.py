"""The refs of a store: which commits must be kept.

They are written by rename, so that no reader sees half of one and a killed writer leaves no lock behind.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path

from agentrewind.durable import make_directory, sync_directory
from agentrewind.errors import UsageError
from agentrewind.records import CommitId
from agentrewind.workspace.pack_writer import UNFINISHED, replace_file, storage_errors

SYNCED = "synced"
"""Here stands for each ref the last snapshot that was made durable."""

SHALLOW = "shallow"
"""Lists the commits whose predecessors were lost, as the git program understands it."""

_COMMIT_ID = re.compile(r"[0-9a-f]{40}")
_NAME = re.compile(r"refs(/(?!\.)[A-Za-z0-9._@+=-]+)+")


def checked_name(name: str) -> str:
    """The name, if it can be a ref.

    Raises:
        UsageError: it cannot.
    """
    if not _NAME.fullmatch(name) or ".." in name or "@{" in name or name.endswith((".lock", ".", "/")):
        raise UsageError(f"{name!r} is no usable ref name; one looks like 'refs/runs/NAME'")
    return name


def read_refs(git_dir: Path) -> dict[str, CommitId]:
    """All refs and what they name; a loose ref hides a packed one."""
    return _packed(git_dir) | _all_loose(git_dir)


def _all_loose(base: Path) -> dict[str, CommitId]:
    found = {}
    for path in sorted((base / "refs").rglob("*")):
        if path.is_file() and not path.name.startswith(UNFINISHED):
            value = _loose(path)
            if value is not None:
                found[path.relative_to(base).as_posix()] = value
    return found


def read_ref(git_dir: Path, name: str) -> CommitId | None:
    """What a ref names, None where there is no such ref."""
    return _loose(git_dir / checked_name(name)) or _packed(git_dir).get(name)


def write_ref(git_dir: Path, name: str, commit: CommitId, *, durable: bool = False) -> None:
    """Make a ref name a commit.

    Raises:
        StorageError: it cannot be written; it names what it named before.
    """
    path = git_dir / checked_name(name)
    with storage_errors(git_dir):
        if not path.parent.is_dir():
            make_directory(path.parent)
        replace_file(path, commit.encode() + b"\n", durable=durable)


def write_synced(git_dir: Path, name: str, commit: CommitId) -> None:
    """Note, durably, that a ref and all it led to when it named this commit outlast a power failure."""
    path = git_dir / SYNCED / checked_name(name)
    with storage_errors(git_dir):
        if (git_dir / name).parent.is_dir():  # or the git program put the refs into one file
            sync_directory((git_dir / name).parent)
        make_directory(path.parent)
        replace_file(path, commit.encode() + b"\n", durable=True)


def read_synced(git_dir: Path) -> dict[str, CommitId]:
    """For each ref what was durable under it when somebody last saw to that."""
    return _all_loose(git_dir / SYNCED)


def read_shallow(git_dir: Path) -> frozenset[bytes]:
    """The commits that count as having no predecessors."""
    try:
        lines = (git_dir / SHALLOW).read_bytes().decode("ascii", "replace").split()
    except FileNotFoundError:
        return frozenset()
    return frozenset(bytes.fromhex(line) for line in lines if _COMMIT_ID.fullmatch(line))


def write_shallow(git_dir: Path, commits: Iterable[bytes]) -> None:
    """Let these commits, besides those that do so already, count as having no predecessors; durably."""
    every = sorted(read_shallow(git_dir).union(commits))
    with storage_errors(git_dir):
        replace_file(git_dir / SHALLOW, b"".join(b"%s\n" % one.hex().encode() for one in every), durable=True)


def delete_ref(git_dir: Path, name: str) -> None:
    """Forget a ref; an absent one is no error."""
    with storage_errors(git_dir):
        lines = _packed_lines(git_dir)
        kept = [line for line in lines if line.split(" ")[-1] != name]
        if len(kept) != len(lines):
            replace_file(git_dir / "packed-refs", "".join(f"{line}\n" for line in kept).encode())
        (git_dir / checked_name(name)).unlink(missing_ok=True)
        (git_dir / SYNCED / name).unlink(missing_ok=True)


def _loose(path: Path) -> CommitId | None:
    try:
        text = path.read_bytes().decode("ascii", "replace").strip()
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
        return None
    return CommitId(text) if _COMMIT_ID.fullmatch(text) else None


def _packed_lines(git_dir: Path) -> list[str]:
    try:
        return os.fsdecode((git_dir / "packed-refs").read_bytes()).splitlines()
    except FileNotFoundError:
        return []


def _packed(git_dir: Path) -> dict[str, CommitId]:
    found = {}
    for line in _packed_lines(git_dir):
        sha, _, name = line.partition(" ")
        if name and _COMMIT_ID.fullmatch(sha):
            found[name] = CommitId(sha)
    return found
