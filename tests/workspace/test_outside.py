"""A repository whose data lies outside the workspace is found, so that nobody takes it for restored."""

from __future__ import annotations

import subprocess
from pathlib import Path

from agentrewind.workspace.outside import repositories_outside


def git(directory: Path, *words: str) -> None:
    identity = ["-c", "user.name=A", "-c", "user.email=a@example.org"]
    subprocess.run(["git", *identity, *words], cwd=directory, check=True, capture_output=True)


def test_where_a_repository_keeps_its_data(tmp_path: Path) -> None:
    base = tmp_path.resolve()
    main = base / "main"
    (main / "sub").mkdir(parents=True)
    assert repositories_outside(main) == ()
    git(main, "init", "-q")
    git(main, "commit", "-q", "--allow-empty", "-m", "one")
    assert repositories_outside(main) == ()
    assert repositories_outside(main / "sub") == (str(main / ".git"),)
    git(main, "worktree", "add", "-q", str(base / "linked"))
    (found,) = repositories_outside(base / "linked")
    assert found.startswith(str(main / ".git"))
    own = base / "own"
    own.mkdir()
    git(own, "init", "-q", "--separate-git-dir", str(own / "data"))
    assert repositories_outside(own) == ()
    (own / ".git").write_bytes(b"\xff junk")
    assert repositories_outside(own) == ()
