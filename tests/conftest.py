"""Options of the whole test suite."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

# the same cases every time, so that a change is judged by what it changed; `make soak` looks for new ones
settings.register_profile("same cases", derandomize=True, deadline=None)
if not os.environ.get("AGENTREWIND_SOAK"):
    settings.load_profile("same cases")

LONG = Path(__file__).with_name("long.txt")
"""Tests that take long and go over what shorter ones show as well: by `make soak`, or AGENTREWIND_LONG=1."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if os.environ.get("AGENTREWIND_SOAK") or os.environ.get("AGENTREWIND_LONG"):
        return
    lines = LONG.read_text("utf-8").splitlines()
    names = {line for line in lines if line and not line.startswith("#")}
    for item in items:
        whole = {item.nodeid, item.nodeid.partition("[")[0], item.nodeid.partition("::")[0]}
        if whole & names:
            item.add_marker(pytest.mark.skip(reason="takes long: AGENTREWIND_LONG=1 or make soak"))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden",
        action="store_true",
        help="rewrite golden files (help texts, pages) instead of comparing with them; review the difference",
    )


@pytest.fixture
def update_golden(request: pytest.FixtureRequest) -> bool:
    """Whether golden files are to be rewritten."""
    return bool(request.config.getoption("--update-golden"))
