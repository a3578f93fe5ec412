"""Builds the demo's workspace: the same bytes, modes, times and commit ids each time."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path

from agentrewind.errors import HarnessError, UsageError
from harness_adapters.demo.orders import CUSTOMERS, orders
from harness_adapters.demo.sources import HISTORY, SQL_1, Commit

DATABASE = Path("data/orders.db")
AUTHOR = ("Mara Quay", "mara@quayside.example")
BUILT_AT = 1_736_931_600
"""Modification time of every file, the moment of the last commit."""


def build_workspace(directory: Path) -> None:
    """Write the workspace into a directory that is empty or not there yet. Needs git 2.28 or newer.

    No user or system configuration of git plays a part, and the repository carries its own identity, so that
    an agent can commit on any machine.

    Raises:
        UsageError: the directory is in use, or git is missing.
        HarnessError: git failed; the message holds what it said.
    """
    git = shutil.which("git")
    if git is None:
        raise UsageError("the demo needs git, which is not on the PATH; install it (Debian: apt install git)")
    if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
        raise UsageError(f"the demo builds its workspace in a new or empty directory; {directory} is in use")
    directory.mkdir(parents=True, exist_ok=True)
    _build_repository(directory, git)
    _build_database(directory / DATABASE)
    _settle(directory)


def _build_repository(root: Path, git: str) -> None:
    name, email = AUTHOR
    settings = {
        "user.name": name,
        "user.email": email,
        "commit.gpgsign": "false",
        "tag.gpgsign": "false",
        "core.autocrlf": "false",
        "gc.auto": "0",
    }
    _git(root, git, "init", "--quiet", "--template=", "--initial-branch=main", at=HISTORY[0].at)
    for key, value in settings.items():
        _git(root, git, "config", "--local", key, value, at=HISTORY[0].at)
    for commit in HISTORY:
        _commit(root, git, commit)
    # An index written by read-tree holds no inode numbers, so its bytes are the same on every disk.
    (root / ".git/index").unlink()
    _git(root, git, "read-tree", "HEAD", at=HISTORY[-1].at)
    (root / ".git/COMMIT_EDITMSG").unlink(missing_ok=True)


def _commit(root: Path, git: str, commit: Commit) -> None:
    for name, text in commit.files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
    _git(root, git, "add", "--all", at=commit.at)
    _git(root, git, "commit", "--quiet", f"--message={commit.message}", at=commit.at)
    if commit.tag:
        _git(root, git, "tag", "--annotate", f"--message=Release {commit.tag}", commit.tag, at=commit.at)


def _git(root: Path, git: str, *arguments: str, at: str) -> None:
    name, email = AUTHOR
    environment = {
        "PATH": os.defpath,
        "LC_ALL": "C",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "safe.directory",  # the directory may belong to somebody else than the process
        "GIT_CONFIG_VALUE_0": "*",
        "GIT_AUTHOR_NAME": name,
        "GIT_AUTHOR_EMAIL": email,
        "GIT_AUTHOR_DATE": at,
        "GIT_COMMITTER_NAME": name,
        "GIT_COMMITTER_EMAIL": email,
        "GIT_COMMITTER_DATE": at,
    }
    command = [git, *arguments]
    done = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise HarnessError(
            f"building the demo's workspace in {root}: {' '.join(command)}: {done.stderr.strip()}"
        )


def _build_database(path: Path) -> None:
    path.parent.mkdir()
    with closing(sqlite3.connect(path)) as database, database:
        database.executescript(SQL_1)
        database.executemany("INSERT INTO customers(name, closed) VALUES (?, ?)", CUSTOMERS)
        database.executemany(
            "INSERT INTO orders(id, customer, placed_on, amount, status) VALUES (?, ?, ?, ?, ?)",
            [(o.order_id, o.customer, o.placed_on, o.entered, o.status) for o in orders()],
        )


def _settle(root: Path) -> None:
    """Give every path its fixed mode and time, deepest first: neither umask nor clock may show."""
    objects = root / ".git/objects"
    for path in sorted(root.rglob("*"), reverse=True):
        loose = objects in path.parents and path.is_file()
        path.chmod(0o755 if path.is_dir() else 0o444 if loose else 0o644)
        os.utime(path, (BUILT_AT, BUILT_AT))
    os.utime(root, (BUILT_AT, BUILT_AT))
