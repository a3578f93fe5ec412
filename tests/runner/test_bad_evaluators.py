"""What fails beside the agent is an infrastructure error: never a pass, never a rejection."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness_adapters.scripted import ScriptedAnswer, ScriptedRequest
from mettlebench.sandbox import SandboxMode
from mettlebench.scaffold import new_task
from runner.cell import Strategy
from runner.check import read_verdicts
from runner.result import Exit
from runner.result_form import load_result
from runner.trial import InfrastructureError
from tests.runner.stage import Stage, cell_of, commands, environment

CELL = cell_of(Strategy.CONTINUE, model="openai/scripted")
BROKEN = {
    "raises": "import build\nraise ValueError('broken')\n",
    "hangs": "import time\nwhile True:\n    time.sleep(0.1)\n",
    "garbage": "import os\nfor fd in range(3, 60):\n try: os.write(fd, b'yes\\n')\n except OSError: pass\n",
    "ends": "import os\nos._exit(0)\n",
    "passes": "CHECKS = {}\n",
}


@pytest.mark.parametrize("how", sorted(BROKEN))
def test_no_verdict_comes_of_it(tmp_path: Path, how: str) -> None:
    task = new_task(tmp_path / "tasks" / "sample")
    (task.folder / "evaluate.py").write_text(BROKEN[how])
    settings = task.folder / "task.toml"
    settings.write_text(f"evaluation_seconds = 2\n{settings.read_text()}")
    stage = Stage(tmp_path, tmp_path / "tasks")
    with pytest.raises(InfrastructureError):
        stage.scripted(commands("echo hello"))
    assert read_verdicts(stage.folder(CELL)) == ()
    assert stage.timeline(CELL).submissions() == ()
    assert load_result(stage.folder(CELL)) is None


def test_a_provider_that_is_down_is_repeated_and_then_told(stage: Stage) -> None:
    cell = cell_of(Strategy.CONTINUE, model="openai/nobody")
    nowhere = {"OPENAI_BASE_URL": "http://127.0.0.1:9/v1"}
    with pytest.raises(InfrastructureError):
        stage.run(stage.order(cell), env={**environment(), **nowhere}, retries=1)
    assert any("try 1 failed and is repeated" in each for each in stage.told)
    assert (stage.folder(cell) / "failed-1").is_dir()
    assert not (stage.folder(cell) / "failed-2").exists()
    assert load_result(stage.folder(cell)) is None


def test_a_command_that_waits_for_ever_is_ended_and_the_cell_run_again_and_marked(stage: Stage) -> None:
    def policy(request: ScriptedRequest) -> ScriptedAnswer:
        return commands("mkfifo pipe; cat pipe" if request.number == 1 else "true")(request)

    result = stage.scripted(policy, stuck_seconds=1.5, retries=1)
    assert any("waited for input" in each for each in stage.told)
    assert not result.clean
    assert result.tries == 2
    assert result.exit is Exit.REPEATED_FAILURE


def test_without_a_sandbox_a_run_says_so(stage: Stage) -> None:
    result = stage.scripted(commands("pwd > where"), sandbox=SandboxMode.NONE)
    assert result.sandbox == "none"
    assert len(result.submissions) == 5


def test_a_command_that_works_or_asks_for_input_is_not_waited_for(stage: Stage) -> None:
    busy = "python3 -c 'import time; end = time.monotonic() + 3\nwhile time.monotonic() < end: pass'"
    result = stage.scripted(commands(busy, "read line; echo got nothing; python3"), stuck_seconds=1.5)
    assert result.clean
    assert result.nodes == 14
