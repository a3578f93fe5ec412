"""Runs a program of `examples/` as it is, under `agentrewind run`, with a scripted model."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from harness_adapters.scripted import Policy, ScriptedModel

REPOSITORY = Path(__file__).parents[2]


@dataclass(frozen=True, kw_only=True)
class Ran:
    """What came of it. `marks`: what its commands wrote to the file that `SIDE` names."""

    rewinds: int
    marks: list[str]
    workspace: Path


def run_example(name: str, base: Path, policy: Policy) -> Ran:
    """Run it with one argument, a task; it has to end well."""
    workspace, side = base / "ws", base / "side"
    workspace.mkdir()
    with ScriptedModel(policy) as server:
        done = subprocess.run(
            [
                *(sys.executable, "-m", "agentrewind.cli", "run", "--json", "--workspace", str(workspace)),
                *("--", sys.executable, str(REPOSITORY / "examples" / name), "do it"),
            ],
            env={
                **os.environ,
                "AGENTREWIND_HOME": str(base / "home"),
                "OPENAI_BASE_URL": server.base_url,
                "OPENAI_API_BASE": server.base_url,
                "OPENAI_API_KEY": "sk-scripted-0000",
                "PYTHONPATH": str(REPOSITORY),
                "SIDE": str(side),
            },
            capture_output=True,
            text=True,
            cwd=REPOSITORY,
            check=False,
        )
    assert done.returncode == 0, done.stdout + done.stderr
    result = json.loads(done.stdout.splitlines()[-1])
    return Ran(rewinds=result["rewinds"], marks=side.read_text().split(), workspace=workspace)
