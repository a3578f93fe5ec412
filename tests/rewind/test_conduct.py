"""The two tools carried out on a real run: answers, refusals, decisions."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import pytest

from agentrewind.layer import Layer
from agentrewind.options import Ablation, RunOptions
from agentrewind.records import Json, JsonObject, Restored, RewindAsked, SafetySnapshot
from agentrewind.rewind.signal import RewindSignal
from tests.capture.plain import START, Provider, ask, grown, says
from tests.core.stage import Stage


def never() -> object:
    raise AssertionError("the layer carries out its own tools")


def tell(layer: Layer, name: str, arguments: object) -> JsonObject:
    """The answer of a rewind tool, which is JSON in a text."""
    value = layer.run_tool(name, arguments, never).value
    assert isinstance(value, str)
    answer = json.loads(value)
    assert isinstance(answer, dict)
    return answer


def entries(answer: JsonObject) -> list[JsonObject]:
    found = answer["candidates"]
    assert isinstance(found, list)
    return [each for each in found if isinstance(each, dict)]


def uids(answer: JsonObject) -> list[Json]:
    return [each["record_uid"] for each in entries(answer)]


def memories(answer: JsonObject) -> dict[str, Json]:
    return {str(each["record_uid"]): each["memories"] for each in entries(answer)}


def commit(target: object, note: object = "lesson", **more: object) -> dict[str, object]:
    return {"record_uid": target, "memory_summary": note, **more}


def work(layer: Layer, stage: Stage, count: int = 3) -> list[JsonObject]:
    """Answers 1, 3, 5 … each followed by a tool call that writes a file."""
    messages = START
    for number in range(count):
        answer = ask(layer, Provider([says(f"step {number}")]), messages)
        layer.run_tool("bash", {"n": number}, partial((stage.root / f"file-{number}").write_text, "x"))
        messages = grown(messages, answer)
    ask(layer, Provider([says("I think.")]), messages)
    return messages


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage.create(tmp_path)


def test_candidates_are_the_earlier_answers_with_what_followed(stage: Stage) -> None:
    with stage.live() as layer:
        work(layer, stage)
        answer = tell(layer, "backtrack_candidates", {"reason": "lost"})
    assert uids(answer) == ["rec_000005", "rec_000003", "rec_000001"]
    assert entries(answer)[0]["files"] == [{"status": "A", "path": "file-2"}]
    assert "rewinds_left" not in answer
    assert "files matching .env*" in str(answer["left_as_is_by_a_rewind"])


def test_in_the_first_answer_there_is_nowhere_to_go(stage: Stage) -> None:
    with stage.live() as layer:
        ask(layer, Provider(), START)
        answer = tell(layer, "backtrack_candidates", {"reason": "lost"})
        assert answer["candidates"] == []
        assert "first answer" in str(answer["note"])
        assert "giving now" in str(tell(layer, "backtrack_commit", commit("rec_000001"))["error"])
        assert layer.latch.reason is None


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (commit("rec_000002"), "tool call"),
        (commit("rec_000099"), "no record"),
        (commit("rec_000007"), "giving now"),
        (commit(""), "`record_uid` is missing or empty"),
        (commit("rec_000003", "  "), "`memory_summary` is missing or empty"),
        (commit("rec_000003", ["lesson"]), "`memory_summary` is missing or empty"),
        (commit(3), "`record_uid` is missing or empty"),
        ({"record_uid": "rec_000003"}, "`memory_summary` is missing"),
        ({}, "`record_uid` is missing"),
        ('{"record_uid": ', "no JSON object"),
        (None, "no JSON object"),
        ([], "no JSON object"),
    ],
)
def test_a_bad_commit_is_answered_and_the_agent_goes_on(stage: Stage, arguments: object, told: str) -> None:
    with stage.live() as layer:
        work(layer, stage)
        error = str(tell(layer, "backtrack_commit", arguments)["error"])
        assert told in error
        assert layer.run_tool("bash", {}, lambda: "on").value == "on"
    if "`" not in error and "JSON" not in error:
        assert "rec_000005, rec_000003, rec_000001" in error
    assert not [each for each in stage.records if isinstance(each, RewindAsked)]


def test_a_commit_is_on_disk_before_the_signal(stage: Stage) -> None:
    with stage.live() as layer:
        work(layer, stage)
        with pytest.raises(RewindSignal):
            layer.run_tool("backtrack_commit", commit(" rec_000003 ", " lesson ", reason="why"), never)
        asked = stage.timeline.pending_rewind()
    assert asked is not None
    assert (asked.segment, asked.target, asked.memory, asked.reason) == (1, "rec_000003", " lesson ", "why")
    assert (asked.by, asked.asked_by) == ("agent", "rec_000008")
    # the call has its result, so the branch can be gone back to by `undo`
    node = stage.timeline.node("rec_000008")
    assert node.output == {"went_back": "rec_000003", "segment": 1}


def test_calls_after_the_commit_in_the_same_answer_do_not_run(stage: Stage) -> None:
    with stage.live() as layer:
        work(layer, stage)
        assert layer.run_tool("bash", {}, lambda: "before").value == "before"
        with pytest.raises(RewindSignal):
            layer.run_tool("backtrack_commit", commit("rec_000003"), never)
        for _ in range(2):
            with pytest.raises(RewindSignal):
                layer.run_tool("backtrack_commit", commit("rec_000001"), never)
            with pytest.raises(RewindSignal):
                layer.run_tool("bash", {}, never)
    assert len([each for each in stage.records if isinstance(each, RewindAsked)]) == 1


def go_back(stage: Stage, target: str, note: str) -> None:
    with stage.live() as layer:
        replayed(layer, stage)
        with pytest.raises(RewindSignal):
            layer.run_tool("backtrack_commit", commit(target, note), never)
    stage.rewind()


def replayed(layer: Layer, stage: Stage) -> None:
    """Serve what is recorded, go on live to three steps, and think."""
    work(layer, stage)


def test_over_several_rewinds_notes_add_up_where_they_belong(stage: Stage) -> None:
    go_back(stage, "rec_000003", "first lesson")
    assert not (stage.root / "file-1").exists()
    with stage.live() as layer:
        replayed(layer, stage)
        answer = tell(layer, "backtrack_candidates", {"reason": "again"})
        listed = uids(answer)
        # rec_000003 was abandoned; the new answer in its place carries its note
        assert "rec_000003" not in listed
        place = listed[-2]
        assert memories(answer) == {uid: ["first lesson"] if uid == place else [] for uid in listed}
        refused = str(tell(layer, "backtrack_commit", commit("rec_000003"))["error"])
        assert "abandoned" in refused
        assert str(place) in refused
        with pytest.raises(RewindSignal):
            layer.run_tool("backtrack_commit", commit(place, "second lesson"), never)
    stage.rewind()
    with stage.live() as layer:
        replayed(layer, stage)
        answer = tell(layer, "backtrack_candidates", {"reason": "again"})
    assert ["first lesson", "second lesson"] in memories(answer).values()


@pytest.mark.parametrize("limit", [0, 1, 2])
def test_a_budget_of_rewinds_is_kept_over_all_branches(tmp_path: Path, limit: int) -> None:
    stage = Stage.create(tmp_path, options=RunOptions(task="mend", max_rewinds=limit))
    for number in range(limit):
        with stage.live() as layer:
            work(layer, stage)
            answer = tell(layer, "backtrack_candidates", {"reason": "x"})
            assert answer["rewinds_left"] == limit - number
            with pytest.raises(RewindSignal):
                layer.run_tool("backtrack_commit", commit(uids(answer)[0]), never)
        stage.rewind()
    with stage.live() as layer:
        work(layer, stage)
        answer = tell(layer, "backtrack_candidates", {"reason": "x"})
        assert answer["rewinds_left"] == 0
        error = str(tell(layer, "backtrack_commit", commit(uids(answer)[0]))["error"])
        assert f"No rewind is left (of {limit})" in error


def test_texts_that_are_no_unicode_do_not_stop_the_agent(stage: Stage) -> None:
    with stage.live() as layer:
        ask(layer, Provider([says("half a \ud83d pair")]), START)
        layer.run_tool("bash", {"command": b"caf\xff"}, lambda: (stage.root / "x").write_text("x"))
        ask(layer, Provider(), [*START, *START])
        answer = tell(layer, "backtrack_candidates", {"reason": "x"})
        assert "half a" in str(answer["candidates"])
        with pytest.raises(RewindSignal):
            layer.run_tool("backtrack_commit", commit("rec_000001", "half a \ud83d lesson"), never)
    asked = stage.timeline.pending_rewind()
    assert asked is not None
    assert asked.memory == "half a \ud83d lesson"


def test_where_the_context_is_not_rewound_files_go_back_and_the_process_lives_on(tmp_path: Path) -> None:
    options = RunOptions(task="mend", ablations=frozenset({Ablation.CONTEXT}), max_rewinds=1)
    stage = Stage.create(tmp_path, options=options)
    with stage.live() as layer:
        work(layer, stage)
        answer = tell(layer, "backtrack_commit", commit("rec_000003"))
        assert answer == {"files_are_back_at": "rec_000003", "context": "kept as it is"}
        assert sorted(path.name for path in stage.root.iterdir()) == ["file-0"]
        assert layer.latch.reason is None
        assert "No rewind is left" in str(tell(layer, "backtrack_commit", commit("rec_000003"))["error"])
        assert layer.run_tool("bash", {}, lambda: "on").value == "on"
    kinds = [type(each) for each in stage.records]
    assert kinds.count(Restored) == 1
    assert kinds.count(SafetySnapshot) == 1
    assert RewindAsked not in kinds
    assert stage.timeline.head == 0
