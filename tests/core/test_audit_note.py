"""What an audit of the workspace found, against the watcher, is kept in the run's log."""

from __future__ import annotations

from pathlib import Path

from agentrewind.records import Note
from agentrewind.workspace.refresh import Refresher
from tests.core.stage import Stage


def test_an_audit_that_disagreed_leaves_a_note(tmp_path: Path) -> None:
    stage = Stage.create(tmp_path)
    with stage.live() as layer:
        layer.recorder.settle("now")
        refresher = layer.recorder._snapshots._refresher  # type: ignore[attr-defined]
        assert isinstance(refresher, Refresher)
        refresher.tally.audits, refresher.tally.disagreements = 4, 2
    notes = [event for event in stage.timeline.events() if isinstance(event, Note) and event.topic == "audit"]
    assert [note.data["disagreements"] for note in notes] == [2]
    with stage.live():
        pass
    assert len([e for e in stage.timeline.events() if isinstance(e, Note) and e.topic == "audit"]) == 1
