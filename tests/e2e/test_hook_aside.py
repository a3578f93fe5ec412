"""An installed backup hook stands aside in a run that preserves by itself, and in no other."""

from __future__ import annotations

from typing import Any

import pytest

from agentrewind.backup.hosts.request import ACTIVE
from tests.e2e.stage import Stage
from tests.e2e.steps import story, submit, work


@pytest.mark.slow
@pytest.mark.parametrize(("options", "said"), [({"backup": {}}, "1"), ({}, "")])
def test_the_hook_is_told_to_stand_aside(stage: Stage, options: dict[str, Any], said: str) -> None:
    stage.policy = story(work("a", f'echo "<${ACTIVE}>" > a'), submit())
    ended = stage.start(**options)
    assert ended.code == 0
    assert (stage.root / "a").read_text() == f"<{said}>\n"
