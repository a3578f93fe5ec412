"""The JSON of the backup log's lines, and of entries as commands and nodes show them."""

from __future__ import annotations

from typing import assert_never

from agentrewind.backup.entries import CallEnded, Entry, Lapsed, Line, RestoreBegun, RestoreEnded, State
from agentrewind.backup.kind import Captured
from agentrewind.backup.values import Target, Tier
from agentrewind.errors import DamagedError
from agentrewind.fields import Fields
from agentrewind.records import Json, JsonObject

FORMAT = 1
"""The format number of the log; a newer one is refused by number."""


def write_line(line: Line) -> JsonObject:
    """The line as a JSON object."""
    match line:
        case Entry():
            return _write_entry(line)
        case CallEnded():
            return {"kind": "call_ended", "id": line.id, "fingerprint": line.fingerprint}
        case RestoreBegun():
            return {
                "kind": "restore_begun",
                "id": line.id,
                "by": line.by,
                "safety": line.safety,
                "at": line.at,
            }
        case RestoreEnded():
            return {
                "kind": "restore_ended",
                "id": line.id,
                "by": line.by,
                "state": line.state.value,
                "detail": list(line.detail),
                "at": line.at,
            }
        case Lapsed():
            return {"kind": "lapsed", "id": line.id, "state": line.state.value, "at": line.at}
        case _:
            assert_never(line)


def read_line(raw: JsonObject) -> Line | None:
    """The line; None for a kind that only a later version knows. Raises DamagedError."""
    fields = Fields(raw)
    match fields.text("kind"):
        case "entry":
            return _read_entry(fields)
        case "call_ended":
            return CallEnded(id=fields.text("id"), fingerprint=fields.text("fingerprint"))
        case "restore_begun":
            return RestoreBegun(
                id=fields.text("id"),
                by=fields.text("by"),
                safety=fields.text_or_none("safety"),
                at=fields.text("at"),
            )
        case "restore_ended":
            return RestoreEnded(
                id=fields.text("id"),
                by=fields.text("by"),
                state=_state(fields),
                detail=fields.texts("detail"),
                at=fields.text("at"),
            )
        case "lapsed":
            return Lapsed(id=fields.text("id"), state=_state(fields), at=fields.text("at"))
        case _:
            return None


def _write_entry(entry: Entry) -> JsonObject:
    target: Json = None
    if entry.target is not None:
        target = {"kind": entry.target.kind, "name": entry.target.name, "detail": entry.target.detail}
    captured: Json = None
    if entry.captured is not None:
        captured = {
            "manifest": entry.captured.manifest,
            "blobs": list(entry.captured.blobs),
            "bytes": entry.captured.bytes,
            "notes": list(entry.captured.notes),
        }
    return {
        "kind": "entry",
        "id": entry.id,
        "at": entry.at,
        "run_id": entry.run_id,
        "node": entry.node,
        "tool": entry.tool,
        "call": entry.call,
        "tier": entry.tier.value,
        "rule": entry.rule,
        "target": target,
        "captured": captured,
        "restore": entry.restore,
        "cwd": entry.cwd,
        "home": entry.home,
        "before": entry.before,
        "undoes": entry.undoes,
        "state": entry.state.value,
        "detail": list(entry.detail),
        "masked": entry.masked,
    }


def _read_entry(fields: Fields) -> Entry:
    return Entry(
        id=fields.text("id"),
        at=fields.text("at"),
        run_id=fields.text_or_none("run_id"),
        node=fields.text_or_none("node"),
        tool=fields.text("tool"),
        call=fields.text("call"),
        tier=_tier(fields),
        rule=fields.text("rule"),
        target=None if fields.get("target") is None else _read_target(fields.fields("target")),
        captured=None if fields.get("captured") is None else _read_captured(fields.fields("captured")),
        restore=fields.text("restore"),
        cwd=fields.text("cwd"),
        home=fields.text("home"),
        before=fields.text("before"),
        undoes=fields.text_or_none("undoes"),
        state=_state(fields),
        detail=fields.texts("detail"),
        masked=fields.integer("masked", 0),
    )


def _read_target(fields: Fields) -> Target:
    return Target(kind=fields.text("kind"), name=fields.text("name"), detail=fields.mapping("detail"))


def _read_captured(fields: Fields) -> Captured:
    return Captured(
        manifest=fields.mapping("manifest"),
        blobs=fields.texts("blobs"),
        bytes=fields.integer("bytes"),
        notes=fields.texts("notes"),
    )


def _state(fields: Fields) -> State:
    found = fields.text("state")
    try:
        return State(found)
    except ValueError:
        raise DamagedError(f"the field state holds the unknown state {found!r}") from None


def _tier(fields: Fields) -> Tier:
    found = fields.text("tier")
    try:
        return Tier(found)
    except ValueError:
        raise DamagedError(f"the field tier holds the unknown tier {found!r}") from None


def as_document(entry: Entry) -> JsonObject:
    """The entry as `backup log --json` and `backup show --json` print it."""
    return {
        **{name: value for name, value in _write_entry(entry).items() if name != "kind"},
        "what": entry.name,
        "after": entry.after,
        "restorable": entry.restorable,
        "restores": {
            label: state.value if state else State.UNKNOWN.value for label, state in entry.by.items()
        },
    }


def as_external(entry: Entry) -> JsonObject:
    """The entry as a node's `metadata.external`, candidates and reports name it."""
    return {
        "id": entry.id,
        "what": entry.name,
        "kind": entry.target.kind if entry.target else "",
        "restorable": entry.restorable,
        "state": entry.state.value,
        **({"masked": entry.masked} if entry.masked else {}),
    }
