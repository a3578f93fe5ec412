"""Two index files of git stage the same if and only if git itself says so."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentrewind.manual_index import is_index, stages_the_same

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="needs git")


def _git(directory: Path, *arguments: str) -> None:
    clean = {"PATH": os.environ["PATH"], "HOME": str(directory), "GIT_CONFIG_NOSYSTEM": "1"}
    subprocess.run(["git", *arguments], cwd=directory, env=clean, check=True, capture_output=True)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    _git(tmp_path, "init", "-q")
    for name in ("a", "b with blank", "d" * 200, "ä"):
        (tmp_path / name).write_text(name)
    _git(tmp_path, "add", ".")
    return tmp_path


def _index(repository: Path) -> bytes:
    return (repository / ".git" / "index").read_bytes()


def test_a_refreshed_index_stages_the_same(repository: Path) -> None:
    before = _index(repository)
    for path in repository.iterdir():
        os.utime(path, (1, 1))
    _git(repository, "status")
    assert _index(repository) != before
    assert stages_the_same(before, _index(repository))


@pytest.mark.parametrize(
    "command",
    [
        ["rm", "--cached", "a"],
        ["update-index", "--chmod=+x", "a"],
        ["update-index", "--assume-unchanged", "a"],
        ["add", "-N", "new"],
        ["mv", "a", "c"],
    ],
)
def test_whatever_stages_something_else_differs(repository: Path, command: list[str]) -> None:
    before = _index(repository)
    (repository / "new").write_text("new")
    _git(repository, *command)
    assert not stages_the_same(before, _index(repository))


def test_other_contents_differ(repository: Path) -> None:
    before = _index(repository)
    (repository / "a").write_text("other")
    _git(repository, "add", "a")
    assert not stages_the_same(before, _index(repository))


def test_a_version_that_is_not_known_is_never_the_same(repository: Path) -> None:
    _git(repository, "update-index", "--index-version", "4")
    assert not stages_the_same(_index(repository), _index(repository))


@given(st.binary(max_size=200))
def test_anything_else_is_no_index(data: bytes) -> None:
    assert not stages_the_same(data, data) or data[:4] == b"DIRC"
    stages_the_same(b"DIRC\0\0\0\2\0\0\0\1" + data, data)


def test_where_an_index_is() -> None:
    assert is_index(b".git/index")
    assert is_index(b"sub/.git/modules/x/index")
    assert not is_index(b"index")
    assert not is_index(b"src/index")
