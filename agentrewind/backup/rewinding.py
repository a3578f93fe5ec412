"""Takes back what calls changed outside the workspace: for a rewind, a person's restore, and their undo."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from agentrewind.backup.entries import Entry, State
from agentrewind.backup.log import BackupLog
from agentrewind.backup.places import directory_of
from agentrewind.backup.restoring import Restoring, Result
from agentrewind.backup.store import BackupStore
from agentrewind.clock import Clock
from agentrewind.records import Json, JsonObject

_SHOWN = 20
_NO_EFFECT = (State.UNCHANGED, State.BLOCKED)


@dataclass(frozen=True, slots=True, kw_only=True)
class External:
    """The state outside the workspace of one run.

    Attributes:
        home: where runs and backups are kept.
        environment: of whoever restores, for programs and their credentials.
    """

    home: Path
    run_id: str
    workspace: Path
    environment: Mapping[str, str]
    clock: Clock

    def entries_of(self, nodes: Collection[str]) -> list[Entry]:
        """What these nodes changed, or may have changed, outside the workspace, oldest first."""
        found = self._log.of_run(self.run_id, nodes)
        return [entry for entry in found if entry.state not in _NO_EFFECT]

    def take_back(self, nodes: Collection[str], *, by: str) -> list[JsonObject]:
        """Bring back what these nodes changed, newest first; one document for each entry.

        `by` names the occasion; told again under the same name, what was begun is not begun again.
        """
        entries = self.entries_of(nodes)
        results = self._restore([entry.id for entry in entries], by) if entries else []
        return results + self._unread()

    def bring_again(self, safeties: Sequence[str], *, by: str) -> list[JsonObject]:
        """Undo restores: what was there before them, by the entries that preserved it."""
        known = self._log.read().entries
        return self._restore([each for each in safeties if each in known], by) if safeties else []

    def plan(self, nodes: Collection[str]) -> list[JsonObject]:
        """What `take_back` would do, newest first, without doing it."""
        ids = [entry.id for entry in self.entries_of(nodes)]
        with BackupStore(directory_of(self.home)) as store:
            planned = self._restoring(store).plan(ids) if ids else []
        return [Result(entry=entry, state=entry.state, detail=lines).to_json() for entry, lines in planned]

    def _unread(self) -> list[JsonObject]:
        """A document that stands for lines which cannot be read: what they held is not brought back."""
        damages = self._log.read().damages
        if not damages:
            return []
        what = f"whatever {len(damages)} damaged line(s) of the backup log held"
        state = State.NOT_RESTORABLE.value
        return [
            {"id": "", "what": what, "kind": "log", "state": state, "detail": list(damages), "safety": None}
        ]

    @property
    def _log(self) -> BackupLog:
        return BackupLog(directory_of(self.home), self.clock)

    def _restore(self, ids: Sequence[str], by: str) -> list[JsonObject]:
        with BackupStore(directory_of(self.home)) as store:
            return [each.to_json() for each in self._restoring(store).restore(ids, by=by)]

    def _restoring(self, store: BackupStore) -> Restoring:
        return Restoring(
            store=store,
            log=self._log,
            clock=self.clock,
            environment=self.environment,
            workspace=self.workspace,
        )


def safeties(report: Mapping[str, Json]) -> tuple[str, ...]:
    """The entries by which what a move did outside the workspace can be undone, from the move's report."""
    external = report.get("external")
    found = (
        [each.get("safety") for each in external if isinstance(each, dict)]
        if isinstance(external, list)
        else []
    )
    return tuple(each for each in found if isinstance(each, str))


def told(external: Sequence[Mapping[str, Json]]) -> Iterator[str]:
    """What the agent should know of the state outside the workspace after a rewind."""
    back = [each for each in external if each.get("state") in ("restored", "unchanged")]
    if back:
        yield f"Outside the workspace, back as they were at this point: {_names(back)}."
    for each in external:
        reason = _reason(each.get("detail"))
        match each.get("state"):
            case "partly":
                yield f"Outside the workspace, only partly put back: {_text(each)}{reason}."
            case "unknown":
                yield f"Outside the workspace, in an unknown state: {_text(each)}{reason}."
            case "preserved" | "not restorable" if each.get("kind"):
                yield f"Outside the workspace, NOT put back: {_text(each)}{reason}."
            case _:
                continue
    unknown = sum(not each.get("kind") for each in external)
    if unknown:
        yield (
            f"{unknown} call(s) of the abandoned path may have changed something outside the workspace that "
            "could NOT be preserved and is as they left it."
        )


def _text(each: Mapping[str, Json]) -> str:
    found = each.get("what")
    return found if isinstance(found, str) else ""


def _names(external: Sequence[Mapping[str, Json]]) -> str:
    names = list(dict.fromkeys(_text(each) for each in external))
    return ", ".join(names[:_SHOWN]) + (f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else "")


def _reason(detail: Json) -> str:
    lines = [str(each) for each in detail] if isinstance(detail, list) else []
    shown = "; ".join(lines[:3]) + (" …" if len(lines) > 3 else "")
    return f" ({shown})" if shown else ""
