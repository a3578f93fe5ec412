from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.stage import Stage
from tests.e2e.steps import story


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    """A stage whose story the test tells."""
    with Stage(base=tmp_path, policy=story()) as made:
        yield made
