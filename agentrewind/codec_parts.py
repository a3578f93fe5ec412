"""The JSON of the parts that several records share: snapshots around a node, errors, fork points."""

from __future__ import annotations

from collections.abc import Mapping

from agentrewind.errors import DamagedError
from agentrewind.fields import Fields
from agentrewind.records import (
    Change,
    CommitId,
    ErrorRecord,
    ForkPoint,
    Json,
    JsonObject,
    RecordUid,
    RunId,
    WorkspaceDeclaration,
    WorkspaceSpan,
)


def write_spans(spans: Mapping[str, WorkspaceSpan]) -> JsonObject:
    return {name: write_span(span) for name, span in spans.items()}


def read_spans(fields: Fields, name: str = "workspaces") -> dict[str, WorkspaceSpan]:
    return fields.each(name, read_span)


def write_span(span: WorkspaceSpan) -> JsonObject:
    written: JsonObject = {
        "before_commit": span.before_commit,
        "after_commit": span.after_commit,
        "changed": span.changed,
        "diff_summary": [
            {"status": change.status, "path": _write_path(change.path)} for change in span.diff_summary
        ],
    }
    if span.diff_total:
        written["diff_total"] = span.diff_total
    if span.partial:
        written["partial"] = list(span.partial)
    if span.left_out:
        written["left_out"] = list(span.left_out)
    return written


def read_span(fields: Fields) -> WorkspaceSpan:
    return WorkspaceSpan(
        before_commit=_commit(fields.text_or_none("before_commit")),
        after_commit=_commit(fields.text_or_none("after_commit")),
        changed=fields.flag_or_none("changed"),
        diff_summary=tuple(
            _read_change(Fields(item, fields.place("diff_summary"))) for item in fields.items("diff_summary")
        ),
        diff_total=fields.integer("diff_total", 0),
        partial=fields.texts("partial"),
        left_out=fields.texts("left_out"),
    )


def write_error(error: ErrorRecord | None) -> Json:
    if error is None:
        return None
    return {
        "type": error.type,
        "message": error.message,
        "args": list(error.args),
        "attributes": error.attributes,
    }


def read_error(fields: Fields) -> ErrorRecord:
    return ErrorRecord(
        type=fields.text("type"),
        message=fields.text("message"),
        args=tuple(fields.items("args")),
        attributes=fields.mapping("attributes"),
    )


def write_fork_point(point: ForkPoint | None) -> Json:
    if point is None:
        return None
    written: JsonObject = {
        "run_id": point.run_id,
        "segment": point.segment,
        "record_uid": point.record_uid,
    }
    if point.inclusive:
        written["inclusive"] = True
    return written


def read_fork_point(fields: Fields) -> ForkPoint:
    return ForkPoint(
        run_id=RunId(fields.text("run_id")),
        segment=fields.integer("segment"),
        record_uid=uid_or_none(fields.text_or_none("record_uid")),
        inclusive=fields.flag("inclusive", False),  # noqa: FBT003 (the field's default)
    )


def write_declaration(declaration: WorkspaceDeclaration) -> Json:
    plain: JsonObject = {"root": declaration.root, "policy": declaration.policy}
    return plain if declaration.copy is None else {**plain, "copy": declaration.copy}


def read_declaration(fields: Fields) -> WorkspaceDeclaration:
    found = fields.get("copy")
    copy = None if found is None else fields.text("copy")
    return WorkspaceDeclaration(root=fields.text("root"), policy=fields.mapping("policy"), copy=copy)


def uid_or_none(found: str | None) -> RecordUid | None:
    return None if found is None else RecordUid(found)


def _commit(found: str | None) -> CommitId | None:
    return None if found is None else CommitId(found)


def _write_path(path: bytes) -> Json:
    try:
        return path.decode()
    except UnicodeDecodeError:
        return path


def _read_change(fields: Fields) -> Change:
    path = fields.value("path")
    if isinstance(path, str):
        path = path.encode("utf-8", "surrogatepass")
    if not isinstance(path, bytes):
        raise DamagedError(f"the field {fields.place('path')} is no path")
    return Change(status=fields.text("status"), path=path)
