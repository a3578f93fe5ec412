from __future__ import annotations

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


@pytest.fixture
def rewound(desk: Desk) -> Desk:
    """The same on a desk of one's own."""
    tell_story(desk)
    return desk
