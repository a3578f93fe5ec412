"""Stories of what an agent leaves running: kept with the prefix, ended with the suffix."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from agentrewind.processes import identity_of
from harness_adapters.scripted import ScriptedAnswer, ScriptedRequest
from tests.e2e.laws import check_laws
from tests.e2e.stage import Stage
from tests.e2e.steps import back, look, shell, story, submit, work

pytestmark = pytest.mark.slow


def server(pid_file: Path) -> str:
    return f"(setsid sleep 300 >/dev/null 2>&1 & echo $! > {pid_file})"


def writer(pid_file: Path) -> str:
    """A job that forgets its environment and its parents, ignores SIGTERM, and keeps on writing."""
    loop = f"trap '' TERM; echo \\$\\$ > {pid_file}; while true; do echo late >> late.txt; sleep 0.02; done"
    return f'(env -i setsid sh -c "{loop}" >/dev/null 2>&1 &); sleep 0.2'


def pid_in(path: Path) -> int:
    return int(path.read_text())


def test_a_job_of_the_prefix_lives_on_and_one_of_the_suffix_is_gone(stage: Stage) -> None:
    kept, gone = stage.base / "kept.pid", stage.base / "gone.pid"
    alive: list[bool] = []

    def look_around(_request: ScriptedRequest) -> ScriptedAnswer:
        alive.extend([_runs(pid_in(kept)), _runs(pid_in(gone))])
        time.sleep(0.3)
        return work("c", "sleep 0.1; ls")

    stage.policy = story(
        work("a", server(kept)),
        work("b", writer(gone)),
        work("b2", "true"),
        look(),
        back("b", "NOTE_A"),
        NOTE_A=[look_around, submit()],
    )
    try:
        ended = stage.start()
        assert (ended.code, ended.result["rewinds"]) == (0, 1), ended.result
        assert alive == [True, False]
        assert _runs(pid_in(kept))
        assert list(stage.root.iterdir()) == []
        memory = stage.arrivals[5].request.messages[-1]["content"]
        assert f"Still running, started before this point: {pid_in(kept)} (sleep 300)" in memory
        assert "process(es) started after this point were ended" in memory
        check_laws(stage)
    finally:
        _end(kept)


def test_a_job_that_outlived_a_resume_still_belongs_to_the_prefix(stage: Stage) -> None:
    kept, gone = stage.base / "kept.pid", stage.base / "gone.pid"
    trouble = [503]

    def then(_request: ScriptedRequest) -> ScriptedAnswer:
        if trouble:
            return ScriptedAnswer(status=trouble.pop())
        return work("b", server(gone))

    stage.policy = story(
        work("a", server(kept)),
        then,
        look(),
        back("b", "NOTE_A"),
        NOTE_A=[ScriptedAnswer("say-c", [shell("true")]), submit()],
    )
    try:
        ended = stage.start(settings={"config": ["model.model_kwargs.max_retries=0"]})
        assert ended.code == 1
        assert _runs(pid_in(kept))
        again = stage.resume()
        assert (again.code, again.result["rewinds"]) == (0, 1), again.result
        assert _runs(pid_in(kept))
        assert not _runs(pid_in(gone))
        check_laws(stage, live_calls=7)
    finally:
        _end(kept)


def _runs(pid: int) -> bool:
    return identity_of(pid) is not None


def _end(pid_file: Path) -> None:
    if pid_file.exists() and _runs(pid_in(pid_file)):
        os.kill(pid_in(pid_file), signal.SIGKILL)
