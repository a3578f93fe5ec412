from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.browser import runs
from tests.cli.desk import Desk
from tests.view.served import Served, viewer


@pytest.fixture(scope="session")
def shown(tmp_path_factory: pytest.TempPathFactory) -> tuple[Desk, str]:
    """A desk with the story, a hostile run and a long one, and the story's id; only to be looked at."""
    desk = Desk(base=tmp_path_factory.mktemp("shown"))
    story = runs.tell_story(desk)
    runs.hostile_run(desk.home)
    runs.long_run(desk.home, nodes=600)
    return desk, story


@pytest.fixture(scope="session")
def served(shown: tuple[Desk, str]) -> Iterator[Served]:
    """A viewer of these runs."""
    with viewer(shown[0]) as found:
        yield found


@pytest.fixture
def told(tmp_path: Path) -> tuple[Desk, str]:
    """A desk of one's own with the story on it."""
    desk = Desk(base=tmp_path)
    return desk, runs.tell_story(desk)
