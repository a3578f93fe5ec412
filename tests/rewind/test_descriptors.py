"""A process that records, rewinds and replays many times holds no files of those that have ended."""

from __future__ import annotations

import gc
import os
from pathlib import Path

import pytest

from agentrewind.workspace.snapshots import SnapshotStore
from tests.core.stage import Stage
from tests.rewind.test_perform import abandoned


def _held() -> list[str]:
    """What the open descriptors of this process are."""
    found = []
    for handle in os.listdir("/proc/self/fd"):
        try:
            found.append(os.readlink(f"/proc/self/fd/{handle}"))
        except FileNotFoundError:  # the listing's own
            continue
    return found


def _of(directory: Path) -> list[str]:
    return [each for each in _held() if each.startswith(str(directory))]


def test_nothing_is_held_of_what_has_ended(tmp_path: Path) -> None:
    gc.disable()  # what only the collector would close counts as held
    try:
        stage = abandoned(tmp_path)
        stage.rewind()
        with stage.live():
            assert _of(tmp_path)
        assert _of(tmp_path) == []
    finally:
        gc.enable()


def test_nothing_is_held_where_the_agent_raises(tmp_path: Path) -> None:
    stage = Stage.create(tmp_path)
    with pytest.raises(ZeroDivisionError), stage.live() as layer:
        layer.run_tool("bash", {}, lambda: 1 // 0)
    assert _of(tmp_path) == []


def test_nothing_is_held_where_a_run_cannot_begin(tmp_path: Path) -> None:
    stage = Stage.create(tmp_path)
    SnapshotStore.open(stage.store).close()
    (stage.store / "agentrewind-store").write_text("999")
    with pytest.raises(Exception, match="999"), stage.live():
        pass
    assert _of(tmp_path) == []
