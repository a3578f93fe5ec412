"""The example of an agent of one's own runs under `agentrewind run`, goes back, and is kept as a test."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from agentrewind.kept_runs import keep_run
from agentrewind.pytest import KeptRun
from agentrewind.run_store import RunStore
from harness_adapters.scripted import ScriptedModel
from tests.adapters.code_steps import back, code, final, look, story
from tests.cli.test_replay import needs_namespaces

REPOSITORY = Path(__file__).parents[2]
EXAMPLE = REPOSITORY / "examples" / "smolagents_agent.py"

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the example was run: it went back once, with a variable from before; its run is kept beside."""
    base = tmp_path_factory.mktemp("example")
    workspace = base / "ws"
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
                *("--", sys.executable, str(EXAMPLE), "go"),
            ],
            env={
                **os.environ,
                "AGENTREWIND_HOME": str(base / "home"),
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
    assert json.loads(done.stdout.splitlines()[-1])["rewinds"] == 1
    [run] = RunStore(base / "home").runs()
    keep_run(run, base / "kept", home=base / "home")
    return base


def test_the_example_goes_back(ran: Path) -> None:
    assert (ran / "ws" / "kept").read_text() == "1\n"
    assert (ran / "effects").read_text().split() == ["made", "removed"]


@needs_namespaces
def test_a_kept_run_is_a_test_of_the_example(ran: Path, kept_run: KeptRun) -> None:
    found = kept_run(ran / "kept", command=[sys.executable, str(EXAMPLE), "go"])
    # the retained prefix, the answer after the rewind, and their tool calls
    nodes = RunStore(ran / "home").runs()[0].timeline().path()
    assert found.nodes == tuple(node.record_uid for node in nodes)
    assert len(nodes) == 5
    assert (ran / "effects").read_text().split() == ["made", "removed"]


@needs_namespaces
def test_it_fails_with_what_the_example_says_otherwise(ran: Path, tmp_path: Path, kept_run: KeptRun) -> None:
    changed = tmp_path / "agent.py"
    changed.write_text(EXAMPLE.read_text().replace("Run a command", "Start a command"))
    with pytest.raises(pytest.fail.Exception, match=r"no longer does what it did .* messages\[0\]"):
        kept_run(ran / "kept", command=[sys.executable, str(changed), "go"])
