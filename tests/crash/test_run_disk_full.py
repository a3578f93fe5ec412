"""A run whose store is full: it stops before the next effect, says so, and goes on when there is room."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness_adapters.scripted import ScriptedAnswer, ScriptedRequest
from tests.crash.run_story import MINI, SHELL, SMALL, SUBMIT, Story, play, undisturbed_files
from tests.e2e.laws import check_laws
from tests.e2e.stage import Ended, Stage
from tests.e2e.steps import marked
from tests.workspace.disk import differences, manifest


@pytest.fixture
def small_store(tmp_path: Path) -> Iterator[Path]:
    """A file system of its own with four megabytes."""
    place = tmp_path / "store"
    place.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(place)],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        pytest.skip(f"a small file system cannot be mounted here: {done.stderr.strip()}")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


def fill(place: Path) -> Path:
    """Leave no room in a file system."""
    filler = place / "filler"
    with filler.open("wb", buffering=0) as file:
        for size in (1 << 16, 1 << 12, 1):
            try:
                while True:
                    os.write(file.fileno(), b"x" * size)
            except OSError:
                continue
    return filler


@pytest.mark.parametrize(("harness", "full_at"), [(SMALL, 1), (SMALL, 3), (SMALL, 6), (SMALL, 7), (MINI, 3)])
@pytest.mark.slow
def test_a_full_store_stops_the_run_before_the_next_effect(
    tmp_path: Path, small_store: Path, harness: str, full_at: int
) -> None:
    story = Story(harness)
    filler: list[Path] = []

    def policy(request: ScriptedRequest) -> ScriptedAnswer:
        if not filler and request.number == full_at:
            filler.append(fill(small_store))
        return story(request)

    with play(tmp_path, policy=policy) as stage:
        ended = stage.start(harness=harness)
        _says_so(ended)
        assert len(stage.arrivals) == full_at
        # the log's last block may have had room for one more beginning
        assert len(stage.marks) - {1: 0, 3: 2, 6: 5, 7: 5}[full_at] in (0, 1)
        filler[0].unlink()
        again = stage.resume()
        assert (again.code, again.result["state"], again.result["rewinds"]) == (0, "accepted", 1), again
        assert [mark for mark in stage.marks if "+" not in mark] == ["a", "job", "b", "c", "bad", "e"]
        check_laws(stage, live_calls=len(stage.server.requests))
        expected = undisturbed_files(harness)
        assert differences(manifest(stage.root, times=False), expected) == []


def test_a_store_that_fills_while_a_tool_runs_loses_nothing_that_was_told(
    tmp_path: Path, small_store: Path
) -> None:
    steps = [
        marked("a", "echo a > a"),
        marked(
            "b", f"head -c 5000000 /dev/zero > {small_store}/filler; head -c 400000 /dev/urandom | base64"
        ),
        marked("c", "echo c > c"),
    ]

    def policy(request: ScriptedRequest) -> ScriptedAnswer:
        command = steps[request.turn] if request.turn < len(steps) else SUBMIT[SMALL]
        return ScriptedAnswer(f"say-{request.turn}", [(SHELL[SMALL], {"command": command})])

    with Stage(base=tmp_path, policy=policy) as stage:
        ended = stage.start(harness=SMALL)
        _says_so(ended)
        assert stage.marks == ["a", "b"]
        (small_store / "filler").unlink()
        again = stage.resume()
        assert again.code == 0, again
        assert stage.marks == ["a", "b", "c"]
        check_laws(stage, live_calls=len(stage.server.requests))


def _says_so(ended: Ended) -> None:
    assert ended.code != 0
    said = ended.said[-1]
    text = said["message"] if "error" in said else said["result"]["detail"]
    assert "space" in text.lower(), said
    assert said.get("result", {}).get("state", "error") == "error"
