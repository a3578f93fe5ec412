"""What fails beside the agent is an infrastructure error: never a pass, never a rejection."""

from __future__ import annotations

from pathlib import Path

import pytest

from mettlebench.scaffold import new_task
from runner.cell import Strategy
from runner.check import read_verdicts
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


def test_a_command_that_waits_for_ever_is_ended_and_the_cell_marked(stage: Stage) -> None:
    with pytest.raises(InfrastructureError, match="waited for input") as caught:
        stage.scripted(commands("mkfifo pipe; cat pipe"), stuck_seconds=1.5)
    assert not caught.value.clean


def test_a_command_that_works_or_asks_for_input_is_not_waited_for(stage: Stage) -> None:
    busy = "python3 -c 'import time; end = time.monotonic() + 3\nwhile time.monotonic() < end: pass'"
    result = stage.scripted(commands(busy, "read line; echo got nothing; python3"), stuck_seconds=1.5)
    assert result.clean
    assert result.nodes == 14
