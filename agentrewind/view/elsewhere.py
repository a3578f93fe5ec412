"""What calls changed outside the workspace, as it was recorded and as the backup log has it now."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from agentrewind.backup.log import BackupLog
from agentrewind.backup.places import directory_of, has_backups
from agentrewind.clock import SystemClock
from agentrewind.errors import AgentRewindError
from agentrewind.records import JsonObject
from agentrewind.view.visible import title, value_text, visible

_LONGEST = 2500
_HEADED = ("what", "state")


@dataclass(frozen=True, slots=True, kw_only=True)
class Elsewhere:
    """One piece of state outside the workspace.

    Attributes:
        what, state: empty where the record does not tell.
        now: its state in the backup log where that differs by now, or why it cannot be told.
        fields: whatever else the record says, as names and values.
    """

    what: str
    state: str
    now: str
    fields: tuple[tuple[str, str], ...]


def elsewhere(home: Path, recorded: Iterable[JsonObject]) -> tuple[Elsewhere, ...]:
    """The pieces that a node or a report names; of what kind they are makes no difference."""
    pieces = tuple(recorded)
    present = _present(home) if pieces and has_backups(home) else {}
    return tuple(_piece(each, present) for each in pieces)


def _piece(recorded: JsonObject, present: Mapping[str, str] | str) -> Elsewhere:
    identity, state = recorded.get("id"), recorded.get("state")
    if isinstance(present, str):
        now = present
    else:
        now = present.get(identity, "") if isinstance(identity, str) else ""
    return Elsewhere(
        what=title(value_text(recorded.get("what") or "")),
        state=title(value_text(state or ""), 60),
        now="" if now == state else title(now),
        fields=tuple(
            (title(name, 60), visible(value_text(value)[:_LONGEST]).text)
            for name, value in recorded.items()
            if name not in _HEADED and value not in (None, "", [])
        ),
    )


def _present(home: Path) -> Mapping[str, str] | str:
    """The state of every entry now; words where the log cannot be read."""
    try:
        entries = BackupLog(directory_of(home), SystemClock()).read().entries
    except AgentRewindError as error:
        return f"not known: {error}"
    return {each.id: each.state.value for each in entries.values()}
