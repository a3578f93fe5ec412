"""What holds of every run with rewinds, checked from what arrived at the server and what is on disk."""

from __future__ import annotations

import base64
import json
import re
from typing import Any

from agentrewind.records import LlmNode, RecordUid, RewindDone, ToolNode
from agentrewind.timeline import Timeline
from tests.e2e.stage import KEY, Arrived, Stage
from tests.workspace.disk import differences

Messages = list[dict[str, Any]]


def check_laws(stage: Stage, *, live_calls: int | None = None, files: bool = True) -> None:
    """Hermetic prefix, one live call at a checkpoint, one memory, nothing abandoned, exact files.

    Args:
        live_calls: requests that the server must have had; None where one was made for each LLM node.
        files: whether the workspace at a checkpoint's call must be as it was at the checkpoint.
    """
    timeline = stage.timeline
    assert not [damage for damage in timeline.damages if damage.lost]
    assert not [each.request.refusal for each in stage.arrivals if each.request.refusal]
    answered = _arrivals(stage, timeline)
    expected = len(answered) if live_calls is None else live_calls
    assert len(stage.server.requests) == expected, "the prefix called the provider, or an answer was lost"
    assert len(stage.marks) == len(set(stage.marks)), f"a tool ran twice: {stage.marks}"
    for segment in timeline.segments:
        for event in timeline.events(segment):
            if isinstance(event, RewindDone):
                _check_rewind(timeline, answered, event, files=files)
    _check_private(stage)


def live_nodes(timeline: Timeline, segment: int) -> list[LlmNode]:
    """The LLM nodes that a segment itself holds."""
    return [node for node in timeline.own_nodes(segment) if isinstance(node, LlmNode)]


def _arrivals(stage: Stage, timeline: Timeline) -> dict[RecordUid, Arrived]:
    """The request that each LLM node made, found by the id of its answer."""
    by_number = {each.request.number: each for each in stage.arrivals}
    found: dict[RecordUid, Arrived] = {}
    for node in timeline.nodes.values():
        if isinstance(node, LlmNode) and node.output is not None:
            response = node.output["response"]
            assert isinstance(response, dict)
            found[node.record_uid] = by_number[_number(str(response["id"]))]
    assert len({each.request.number for each in found.values()}) == len(found)
    return found


def _number(answer_id: str) -> int:
    """The request's number out of its answer's id, which litellm wraps for the Responses API."""
    if answer_id.startswith("resp_") and not answer_id[5:].isdigit():
        answer_id = base64.b64decode(answer_id[5:]).decode()
    return int(re.split("[-_]", answer_id)[-1])


def _check_rewind(
    timeline: Timeline, answered: dict[RecordUid, Arrived], done: RewindDone, *, files: bool
) -> None:
    nodes = live_nodes(timeline, done.segment)
    if not nodes:
        return
    target, first = answered[done.target], answered[nodes[0].record_uid]
    notes = [asked.memory for asked in timeline.memories(done.segment)]
    with_memory = done.report["memory_message"] is not None
    anchored = len(_without_memory(target))
    if with_memory:
        assert _without_memory(first) == _without_memory(target)
    else:
        assert list(first.request.messages) == list(target.request.messages)
    if files:
        assert differences(first.files, target.files) == []
    dead = _abandoned(timeline, done.segment)
    for node in nodes:
        arrived = answered[node.record_uid]
        places = _memory_places(arrived, notes[-1])
        assert places == ([anchored] if with_memory else []), (node.record_uid, places)
        if with_memory:
            _check_memory(arrived.request.messages[anchored], notes, role=done.report["memory_role"])
        text = json.dumps([dict(each) for each in arrived.request.messages])
        assert not [word for word in dead if f'"{word}"' in text or f"{word} " in text]


def _check_memory(message: Any, notes: list[str], *, role: object) -> None:
    assert message["role"] == role
    places = [message["content"].find(note) for note in notes]
    assert -1 not in places
    assert places == sorted(places)
    assert [message["content"].count(note) for note in notes] == [1] * len(notes)


def _memory_places(arrived: Arrived, note: str) -> list[int]:
    return [
        index
        for index, message in enumerate(arrived.request.messages)
        if _is_memory(message) and note in str(message.get("content"))
    ]


def _without_memory(arrived: Arrived) -> Messages:
    return [dict(each) for each in arrived.request.messages if not _is_memory(each)]


def _is_memory(message: Any) -> bool:
    return message["role"] in ("system", "user") and "notes to yourself" in str(message.get("content"))


def _abandoned(timeline: Timeline, segment: int) -> set[str]:
    """Words that only nodes off the path said: the ids of their calls, their texts, their marks."""
    on_path = {node.record_uid for node in timeline.path(segment)}
    words: set[str] = set()
    for node in timeline.nodes.values():
        if node.record_uid in on_path or timeline.segment_of(node.record_uid) >= segment:
            continue
        if isinstance(node, ToolNode) and node.tool_call_id:
            words.add(node.tool_call_id)
        elif isinstance(node, LlmNode) and node.output:
            words.add(str(node.output["content"]))
    return words - {"None", ""}


def _check_private(stage: Stage) -> None:
    for path in stage.run.directory.rglob("*"):
        assert path.stat().st_mode & 0o077 == 0, path
        assert path.is_dir() or KEY.encode() not in path.read_bytes(), path
