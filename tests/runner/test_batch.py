"""A campaign that is killed, cancelled or spoilt: what is finished stays, and the rest is run again."""

from __future__ import annotations

import dataclasses
import json
import os
import random
import signal
import threading
import time
from pathlib import Path

import pytest

from harness_adapters.demo.command import local_provider
from harness_adapters.scripted import ScriptedAnswer, ScriptedModel, ScriptedRequest
from runner.result import Exit
from runner.result_form import load_results
from tests.runner.campaigns import results, runner, start, timeless, write_plan
from tests.runner.stage import commands
from tests.runner.test_cheating import running

STRATEGIES = ["continue", "rewind"]


def wait_for(condition: object, seconds: float = 60.0) -> None:
    assert callable(condition)
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not come to that"
        time.sleep(0.02)


def nothing_left(mark: str) -> bool:
    return mark not in running()


@pytest.mark.parametrize("seed", [1])
def test_killed_at_random_and_resumed_it_has_the_same_results(tasks: Path, tmp_path: Path, seed: int) -> None:
    plan = write_plan(tmp_path, tasks, strategies=STRATEGIES)
    assert runner("batch", plan, "--out", tmp_path / "whole").returncode == 0
    chance = random.Random(seed)
    out = tmp_path / "killed"
    for _ in range(3):
        driver = start("batch", plan, "--out", out)
        time.sleep(chance.uniform(1.0, 6.0))
        driver.kill()
        driver.communicate()
        wait_for(lambda: nothing_left(str(out)), 20)
    assert runner("batch", plan, "--out", out).returncode == 0
    whole, killed = results(tmp_path / "whole"), results(out)
    assert len(whole) == 2
    assert {name: timeless(each) for name, each in killed.items()} == {
        name: timeless(each) for name, each in whole.items()
    }


def test_a_killed_cell_costs_a_retry_and_leaves_no_orphan(tasks: Path, tmp_path: Path) -> None:
    plan = write_plan(tmp_path, tasks, strategies=["rewind"])
    out = tmp_path / "out"
    driver = start("batch", plan, "--out", out)
    wait_for(lambda: list(out.glob("cells/*/*/*/*/*/store/runs/*/segment-0000.jsonl")))
    time.sleep(1.0)
    (pid,) = [
        int(path.parent.name)
        for path in Path("/proc").glob("[0-9]*/cmdline")
        if b"\0cell\0" + os.fsencode(out) in _read(path)
    ]
    os.kill(pid, signal.SIGKILL)
    said, _ = driver.communicate(timeout=120)
    assert driver.returncode == 0, said
    assert "to be repeated" in said
    (result,) = load_results(out)
    assert result.success
    assert result.tries == 2
    assert nothing_left(str(out))


def test_cancelled_cells_are_marked_and_run_by_the_next_call(tasks: Path, tmp_path: Path) -> None:
    slow = threading.Event()
    plan = write_plan(tmp_path, tasks, strategies=STRATEGIES, more='[[models]]\nname = "openai/scripted"\n')
    out = tmp_path / "out"
    assert runner("cancel", tmp_path).returncode == 2

    def policy(request: ScriptedRequest) -> ScriptedAnswer:
        answer = commands("true")(request)
        return answer if slow.is_set() else dataclasses.replace(answer, delay=60.0)

    with ScriptedModel(policy) as server:
        driver = start("batch", plan, "--out", out, env=local_provider(server.base_url))
        wait_for(lambda: server.requests)
        status = json.loads(runner("status", out, "--json").stdout)
        assert status["driver"]["pid"] == driver.pid
        # a second driver would run the same cells
        assert runner("batch", plan, "--out", out).returncode == 5
        assert runner("cancel", out, "no/such/cell/continue/1").returncode == 2
        (cell,) = status["running"]
        assert runner("cancel", out, cell).returncode == 0
        wait_for(lambda: len(load_results(out)) == 1)
        slow.set()
        said, _ = driver.communicate(timeout=120)
        assert driver.returncode == 1, said
        exits = {each.cell.id: each.exit for each in load_results(out)}
        assert exits.pop(cell) is Exit.CANCELLED
        assert Exit.CANCELLED not in exits.values()
        again = start("batch", plan, "--out", out, env=local_provider(server.base_url))
        again.communicate(timeout=120)
    assert again.returncode == 0
    assert not any(each.abnormal for each in load_results(out))


def test_ctrl_c_ends_everything_and_keeps_what_is_finished(tasks: Path, tmp_path: Path) -> None:
    plan = write_plan(tmp_path, tasks, strategies=STRATEGIES)
    out = tmp_path / "out"
    driver = start("batch", plan, "--out", out)
    wait_for(lambda: list(out.glob("cells/*/*/*/*/*/store/runs/*/segment-0000.jsonl")))
    driver.send_signal(signal.SIGINT)
    said, _ = driver.communicate(timeout=60)
    assert driver.returncode == 1
    assert "goes on with what is left" in said
    assert nothing_left(str(out))
    assert all(not each.abnormal for each in load_results(out))


def test_what_keeps_failing_is_given_up_and_said(tasks: Path, tmp_path: Path) -> None:
    more = '[limits]\nretries = 1\n[[models]]\nname = "openai/nobody"\n'
    plan = write_plan(tmp_path, tasks, strategies=["continue"], more=more)
    ended = runner("batch", plan, "--out", tmp_path / "out")
    assert ended.returncode == 1
    (result,) = load_results(tmp_path / "out")
    assert result.exit is Exit.INFRASTRUCTURE
    assert result.abnormal
    assert result.tries == 2


def test_caps_hold(tasks: Path, tmp_path: Path) -> None:
    """One cell of a model at a time, and none beyond the campaign's cost."""
    more = """[limits]
jobs = 4
cost = 0
[[models]]
name = "simulated:perfect"
jobs = 1
"""
    plan = write_plan(tmp_path, tasks, strategies=["continue"], runs=2, more=more)
    ended = runner("batch", plan, "--out", tmp_path / "out")
    assert ended.returncode == 1
    assert "has cost 0.00 USD of 0.00" in ended.stdout
    plan.write_text(plan.read_text().replace("cost = 0\n", ""))
    ended = runner("batch", plan, "--out", tmp_path / "out")
    assert ended.returncode == 0
    events = [line for line in ended.stdout.splitlines() if "begun" in line or line.startswith("[")]
    assert ["begun" in line for line in events] == [True, False, True, False]


def test_a_malformed_plan_is_told_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "plan.toml").write_text("tasks = 3\n")
    ended = runner("batch", tmp_path / "plan.toml", "--out", tmp_path / "out")
    assert ended.returncode == 2
    assert ended.stderr == f"error: {tmp_path}/plan.toml:1: tasks must be a list of texts, not 3\n"
    assert not (tmp_path / "out").exists()


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""
