"""Stories of a prompt that is never the same twice."""

from __future__ import annotations

import re

import pytest

from agentrewind.records import Note
from tests.e2e.laws import live_nodes
from tests.e2e.stage import Stage
from tests.e2e.steps import back, look, story, submit, work
from tests.workspace.disk import differences

pytestmark = pytest.mark.slow

CHANGING = {
    "config": ["agent.instance_template={{task}}\nUse /tmp/scratch-{{ range(1000000, 9999999) | random }}"]
}


def test_a_changing_prompt_stops_the_rewind_which_then_goes_on_by_position(stage: Stage) -> None:
    stage.policy = story(
        work("a", "echo a > a"),
        work("b", "rm a; echo b > b"),
        look("l1"),
        back("b", "NOTE_A"),
        NOTE_A=[work("c", "echo c > c"), work("e", "rm a"), look("l2"), back("a", "NOTE_B")],
        NOTE_B=[work("d", "echo d > d"), submit()],
    )
    first = stage.start(settings=CHANGING)
    assert (first.code, first.result["state"]) == (3, "error"), first.result
    assert "rec_000001" in first.result["detail"]
    assert re.search(
        r"messages\[1\]\.content at character \d+: recorded '.*', asked '.*'", first.result["detail"]
    )
    assert len(stage.arrivals) == 4
    assert sorted(path.name for path in stage.root.iterdir()) == ["a"]

    second = stage.resume()
    assert second.code == 3, second.result
    assert len(stage.arrivals) == 4

    last = stage.resume(on_divergence="position")
    assert (last.code, last.result["rewinds"]) == (0, 2), last.result
    assert stage.marks == ["a", "b", "c", "e", "d"]
    assert sorted(path.name for path in stage.root.iterdir()) == ["d"]
    assert len(stage.arrivals) == 10
    assert differences(stage.arrivals[4].files, stage.arrivals[1].files) == []
    assert differences(stage.arrivals[8].files, stage.arrivals[0].files) == []
    for number, notes in (
        (4, ["NOTE_A"]),
        (5, ["NOTE_A"]),
        (8, ["NOTE_A", "NOTE_B"]),
        (9, ["NOTE_A", "NOTE_B"]),
    ):
        messages = stage.arrivals[number].request.messages
        places = [index for index, each in enumerate(messages) if "notes to yourself" in str(each["content"])]
        assert places == ([4] if number < 8 else [2]), number
        assert all(messages[places[0]]["content"].count(note) == 1 for note in notes)
    warnings = [
        each.text for each in stage.timeline.events(1) if isinstance(each, Note) and each.topic == "position"
    ]
    assert any("rec_000001 was matched by position" in each for each in warnings)
    assert len(live_nodes(stage.timeline, 1)) == 4
