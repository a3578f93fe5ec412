from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.cli.desk import Desk, tell_story


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    """A desk with nothing on it."""
    return Desk(base=tmp_path)


@pytest.fixture(scope="session")
def told(tmp_path_factory: pytest.TempPathFactory) -> Desk:
    """A desk with one accepted run in which the agent went back once; only to be looked at."""
    desk = Desk(base=tmp_path_factory.mktemp("told"))
    report = tell_story(desk)
    assert report["state"] == "accepted", report
    return desk


@pytest.fixture(scope="session")
def kept(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Where such a run was made, and a copy of all that it left there."""
    base = tmp_path_factory.mktemp("rewound")
    tell_story(Desk(base=base))
    copy = base.with_name(f"{base.name}-kept")
    shutil.copytree(base, copy, symlinks=True)
    return base, copy


@pytest.fixture
def rewound(kept: tuple[Path, Path]) -> Desk:
    """The same on a desk of one's own: put back as it was, at the path that the log names."""
    base, copy = kept
    shutil.rmtree(base)
    shutil.copytree(copy, base, symlinks=True)
    return Desk(base=base)
