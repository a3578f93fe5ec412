"""The JSON of every kind of event, as one table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from agentrewind.codec_parts import read_error, read_spans, uid_or_none, write_error, write_spans
from agentrewind.errors import DamagedError
from agentrewind.fields import Fields
from agentrewind.records import (
    AttemptFailed,
    CommitId,
    Event,
    Finished,
    InputId,
    Json,
    JsonObject,
    NodeKind,
    Note,
    OutsideChange,
    ProcessesEnded,
    RecordUid,
    Restored,
    Resumed,
    RewindAsked,
    RewindDone,
    SafetySnapshot,
    SnapshotTaken,
    Started,
    Submission,
)

UNKNOWN = "unknown"
"""Topic of the notes that stand for lines which only a later version understands."""


@dataclass(frozen=True, slots=True)
class _Shape:
    name: str
    write: Callable[..., JsonObject]
    read: Callable[[Fields], Event]


def write_event(event: Event) -> JsonObject:
    """The event as a JSON object, before values are put into JSON form."""
    shape = EVENTS[type(event)]
    return {"kind": "event", "event": shape.name, **shape.write(event), "at": event.at}


def read_event(raw: JsonObject) -> Event:
    """The event. One that this version does not know becomes a Note with the topic `unknown`.

    Raises DamagedError where a known event lacks a field or holds a wrong one.
    """
    name = raw.get("event")
    read = _READERS.get(name) if isinstance(name, str) else None
    if read is None:
        return unknown(raw)
    return read(Fields(raw))


def unknown(raw: JsonObject) -> Note:
    """A well-formed line of a kind that this version does not know, kept whole as the note's data."""
    name, at = raw.get("event", raw.get("kind")), raw.get("at")
    return Note(
        topic=UNKNOWN,
        text=f"a line of the unknown kind {name!r}, written by a later version",
        at=at if isinstance(at, str) else "",
        data=raw,
    )


def _write_started(event: Started) -> JsonObject:
    return {
        "record_uid": event.record_uid,
        "node_kind": event.node_kind.value,
        "input_id": event.input_id,
        "tool_name": event.tool_name,
        "tool_call_id": event.tool_call_id,
        "parent": event.parent,
        "ordinal": event.ordinal,
        "attempt": event.attempt,
        "processes": [[pid, tick] for pid, tick in event.processes],
    }


def _read_started(fields: Fields) -> Started:
    return Started(
        record_uid=RecordUid(fields.text("record_uid")),
        node_kind=_node_kind(fields.text("node_kind")),
        input_id=InputId(fields.text("input_id")),
        tool_name=fields.text_or_none("tool_name"),
        tool_call_id=fields.text_or_none("tool_call_id"),
        parent=uid_or_none(fields.text_or_none("parent")),
        ordinal=fields.integer("ordinal", 0),
        attempt=fields.integer("attempt", 1),
        processes=tuple(_process(item) for item in fields.items("processes")),
        at=fields.text("at"),
    )


def _node_kind(found: str) -> NodeKind:
    try:
        return NodeKind(found)
    except ValueError:
        raise DamagedError(f"the field node_kind holds the unknown kind {found!r}") from None


def _process(item: Json) -> tuple[int, int]:
    match item:
        case [int(pid), int(tick)]:
            return pid, tick
        case _:
            raise DamagedError("the field processes is not a list of pairs [pid, start tick]")


def _write_attempt(event: AttemptFailed) -> JsonObject:
    return {"record_uid": event.record_uid, "attempt": event.attempt, "error": write_error(event.error)}


def _read_attempt(fields: Fields) -> AttemptFailed:
    return AttemptFailed(
        record_uid=RecordUid(fields.text("record_uid")),
        attempt=fields.integer("attempt"),
        error=read_error(fields.fields("error")),
        at=fields.text("at"),
    )


def _write_snapshot(event: SnapshotTaken) -> JsonObject:
    return {"record_uid": event.record_uid, "workspaces": write_spans(event.workspaces)}


def _read_snapshot(fields: Fields) -> SnapshotTaken:
    return SnapshotTaken(
        record_uid=RecordUid(fields.text("record_uid")), workspaces=read_spans(fields), at=fields.text("at")
    )


def _write_outside(event: OutsideChange) -> JsonObject:
    return {"after": event.after, "workspaces": write_spans(event.workspaces)}


def _read_outside(fields: Fields) -> OutsideChange:
    return OutsideChange(
        after=uid_or_none(fields.text_or_none("after")), workspaces=read_spans(fields), at=fields.text("at")
    )


def _write_submission(event: Submission) -> JsonObject:
    return {
        "record_uid": event.record_uid,
        "accepted": event.accepted,
        "exit_code": event.exit_code,
        "criterion": event.criterion,
        "feedback": event.feedback,
        "repeated": event.repeated,
    }


def _read_submission(fields: Fields) -> Submission:
    return Submission(
        record_uid=RecordUid(fields.text("record_uid")),
        accepted=fields.flag("accepted"),
        exit_code=fields.integer_or_none("exit_code"),
        criterion=fields.text("criterion"),
        feedback=fields.text("feedback"),
        repeated=fields.integer("repeated"),
        at=fields.text("at"),
    )


def _write_asked(event: RewindAsked) -> JsonObject:
    return {
        "segment": event.segment,
        "target": event.target,
        "memory": event.memory,
        "reason": event.reason,
        "asked_by": event.asked_by,
        "by": event.by,
    }


def _read_asked(fields: Fields) -> RewindAsked:
    return RewindAsked(
        segment=fields.integer("segment"),
        target=RecordUid(fields.text("target")),
        memory=fields.text("memory"),
        reason=fields.text("reason"),
        asked_by=uid_or_none(fields.text_or_none("asked_by")),
        by=fields.text("by"),
        at=fields.text("at"),
    )


def _write_safety(event: SafetySnapshot) -> JsonObject:
    return {"segment": event.segment, "workspaces": write_spans(event.workspaces)}


def _read_safety(fields: Fields) -> SafetySnapshot:
    return SafetySnapshot(
        segment=fields.integer_or_none("segment"), workspaces=read_spans(fields), at=fields.text("at")
    )


def _write_done(event: RewindDone) -> JsonObject:
    return {"segment": event.segment, "target": event.target, "report": event.report}


def _read_done(fields: Fields) -> RewindDone:
    return RewindDone(
        segment=fields.integer("segment"),
        target=RecordUid(fields.text("target")),
        report=fields.mapping("report"),
        at=fields.text("at"),
    )


def _write_restored(event: Restored) -> JsonObject:
    return {
        "record_uid": event.record_uid,
        "commit": event.commit,
        "report": event.report,
        "by": event.by,
    }


def _read_restored(fields: Fields) -> Restored:
    return Restored(
        record_uid=uid_or_none(fields.text_or_none("record_uid")),
        commit=CommitId(fields.text("commit")),
        report=fields.mapping("report"),
        by=fields.text("by"),
        at=fields.text("at"),
    )


def _write_ended(event: ProcessesEnded) -> JsonObject:
    return {"ended": list(event.ended), "kept": list(event.kept)}


def _read_ended(fields: Fields) -> ProcessesEnded:
    return ProcessesEnded(ended=fields.texts("ended"), kept=fields.texts("kept"), at=fields.text("at"))


def _write_resumed(event: Resumed) -> JsonObject:
    return {"detail": event.detail}


def _read_resumed(fields: Fields) -> Resumed:
    return Resumed(detail=fields.text("detail"), at=fields.text("at"))


def _write_finished(event: Finished) -> JsonObject:
    return {"state": event.state, "detail": event.detail}


def _read_finished(fields: Fields) -> Finished:
    return Finished(state=fields.text("state"), detail=fields.text("detail"), at=fields.text("at"))


def _write_note(event: Note) -> JsonObject:
    return {"topic": event.topic, "text": event.text, "data": event.data}


def _read_note(fields: Fields) -> Note:
    return Note(
        topic=fields.text("topic"),
        text=fields.text("text"),
        data=fields.mapping("data"),
        at=fields.text("at"),
    )


EVENTS: dict[type, _Shape] = {
    Started: _Shape("started", _write_started, _read_started),
    AttemptFailed: _Shape("attempt_failed", _write_attempt, _read_attempt),
    SnapshotTaken: _Shape("snapshot", _write_snapshot, _read_snapshot),
    OutsideChange: _Shape("outside_change", _write_outside, _read_outside),
    Submission: _Shape("submission", _write_submission, _read_submission),
    RewindAsked: _Shape("rewind_asked", _write_asked, _read_asked),
    SafetySnapshot: _Shape("safety_snapshot", _write_safety, _read_safety),
    RewindDone: _Shape("rewind_done", _write_done, _read_done),
    Restored: _Shape("restored", _write_restored, _read_restored),
    ProcessesEnded: _Shape("processes_ended", _write_ended, _read_ended),
    Resumed: _Shape("resumed", _write_resumed, _read_resumed),
    Finished: _Shape("finished", _write_finished, _read_finished),
    Note: _Shape("note", _write_note, _read_note),
}
"""Every kind of event; a test holds this table against `record.Event`."""

_READERS = {shape.name: shape.read for shape in EVENTS.values()}
