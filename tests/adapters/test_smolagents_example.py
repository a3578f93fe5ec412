"""The example of an agent of one's own runs as it is, under `agentrewind run`, and goes back."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from harness_adapters.scripted import ScriptedModel
from tests.adapters.code_steps import back, code, final, look, story

REPOSITORY = Path(__file__).parents[2]

pytestmark = pytest.mark.slow


def test_the_example_goes_back(tmp_path: Path) -> None:
    workspace = tmp_path / "ws"
    workspace.mkdir()
    policy = story(
        code("one", "seen = bash('echo 1 > kept; echo made >> ../effects; cat kept')"),
        code("two", "bash('rm kept; echo removed >> ../effects')"),
        look(),
        back("two", "NOTE_A"),
        NOTE_A=[final("bash('cat kept') + seen")],
    )
    with ScriptedModel(policy) as server:
        done = subprocess.run(
            [
                *(sys.executable, "-m", "agentrewind.cli", "run", "--json", "--workspace", str(workspace)),
                *("--", sys.executable, str(REPOSITORY / "examples" / "smolagents_agent.py"), "go"),
            ],
            env={
                **os.environ,
                "AGENTREWIND_HOME": str(tmp_path / "home"),
                "OPENAI_BASE_URL": server.base_url,
                "OPENAI_API_BASE": server.base_url,
                "OPENAI_API_KEY": "sk-scripted-0000",
                "PYTHONPATH": str(REPOSITORY),
            },
            capture_output=True,
            text=True,
            cwd=REPOSITORY,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert len(server.requests) == 5
    result = json.loads(done.stdout.splitlines()[-1])
    assert result["rewinds"] == 1
    assert (workspace / "kept").read_text() == "1\n"
    assert (tmp_path / "effects").read_text().split() == ["made", "removed"]
