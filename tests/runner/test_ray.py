"""The same campaign on Ray: the same results, without a shared file system, though a worker is killed."""

from __future__ import annotations

import importlib.util
import os
import signal
import tempfile
import time
from pathlib import Path

import pytest

from runner.cell import Strategy
from runner.executors.ray_work import pack_order, run_packed, unpack_folder
from runner.order import Order, save_order
from runner.result_form import load_result, load_results
from tests.runner.campaigns import results, runner, start, timeless, write_plan
from tests.runner.stage import Stage, cell_of
from tests.runner.test_batch import nothing_left, wait_for

needs_ray = pytest.mark.skipif(
    importlib.util.find_spec("ray") is None, reason="ray is not installed: pip install 'agentrewind[ray]'"
)


def test_a_try_needs_nothing_of_the_machine_that_ordered_it(
    stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without Ray: what a worker does with an order, on tasks that it can reach by no path."""
    order = Order(cell=cell_of(Strategy.REWIND), tasks=stage.tasks)
    here = tmp_path / "here"
    here.mkdir()
    save_order(order, here)
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    packed = pack_order(order, here)
    place = f"runner-test-{os.getpid()}/a/b"
    unpack_folder(run_packed(packed, place), here)
    result = load_result(here)
    assert result is not None
    assert result.success, result.detail
    assert (here / "store").is_dir()
    assert not Path(tempfile.gettempdir(), f"runner-test-{os.getpid()}").exists()
    assert not list(here.glob("grading-*"))


@needs_ray
def test_ray_gives_the_same_results_though_a_worker_is_killed(tasks: Path, tmp_path: Path) -> None:
    plan = write_plan(tmp_path, tasks, strategies=["rewind"])
    local, out = tmp_path / "local", tmp_path / "ray"
    assert runner("batch", plan, "--out", local).returncode == 0
    driver = start("batch", plan, "--out", out, "--executor", "ray")
    killed = kill_a_cells_worker(driver.pid)
    said, _ = driver.communicate(timeout=240)
    assert driver.returncode == 0, said
    assert "the worker was lost" in said
    assert [each.tries for each in load_results(out)] == [2]
    on_ray, here = results(out), results(local)
    assert {name: timeless(each) for name, each in on_ray.items()} == {
        name: timeless(each) for name, each in here.items()
    }
    assert nothing_left(killed)


def kill_a_cells_worker(driver: int) -> str:
    """Kill the worker process above the first cell's process; returns the folder of that cell."""
    found: list[tuple[int, str]] = []

    def look() -> bool:
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                words = path.read_bytes().decode(errors="replace").split("\0")
            except OSError:
                continue
            if "cell" in words and "--parent" in words and "/runner-" in words[words.index("cell") + 1]:
                found.append((int(words[words.index("--parent") + 1]), words[words.index("cell") + 1]))
                return True
        return False

    wait_for(look, 120)
    time.sleep(1.0)
    worker, folder = found[0]
    os.kill(worker, signal.SIGKILL)
    return folder
