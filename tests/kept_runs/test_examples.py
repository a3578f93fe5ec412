"""The example agents still do what they did in the runs that are kept here."""

from __future__ import annotations

import sys
from pathlib import Path

from agentrewind.pytest import KeptRun
from tests.cli.test_replay import needs_namespaces

EXAMPLES = Path(__file__).parents[2] / "examples"


@needs_namespaces
def test_the_loop_repairs_the_sums(kept_run: KeptRun) -> None:
    agent = [sys.executable, str(EXAMPLES / "openai_loop.py"), "Make check.py pass."]
    found = kept_run("sums", command=agent)
    assert found.nodes == ("rec_000001", "rec_000002", "rec_000003")
