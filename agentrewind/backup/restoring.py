"""Brings entries of the backup log back: the present state preserved first, each at most once an occasion."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path

from agentrewind.backup.entries import (
    CallEnded,
    Entry,
    Lapsed,
    Line,
    RestoreBegun,
    RestoreEnded,
    State,
    restored_state,
)
from agentrewind.backup.kind import Captured, CaptureError, ConflictError, Kind, Outcome
from agentrewind.backup.kinds.table import kind_of
from agentrewind.backup.log import BackupLog, newest_first
from agentrewind.backup.store import BackupStore
from agentrewind.backup.values import Context, Tier
from agentrewind.clock import Clock
from agentrewind.errors import AgentRewindError, UsageError
from agentrewind.records import JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What became of one entry.

    Attributes:
        state: RESTORED, PARTLY, NOT_RESTORABLE, UNKNOWN (begun and interrupted), UNCHANGED (nothing to do),
            or PRESERVED: left as it is, and still kept.
        detail: what came back and what did not, or why nothing was done.
        safety: the entry that preserved what was there before, None where no restore was begun.
        moved: the state is no longer what `safety` holds, or nobody can tell.
    """

    entry: Entry
    state: State
    detail: tuple[str, ...] = ()
    safety: str | None = None
    moved: bool = False

    def to_json(self) -> JsonObject:
        """As reports and `--json` hold it."""
        return {
            "id": self.entry.id,
            "what": self.entry.name,
            "kind": self.entry.target.kind if self.entry.target else "",
            "state": self.state.value,
            "detail": list(self.detail),
            "safety": self.safety,
        }

    @property
    def back(self) -> bool:
        """All of it is as it was before the call."""
        return self.state in (State.RESTORED, State.UNCHANGED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Restoring:
    """The log and the store with what a restore needs to know of the machine.

    Attributes:
        environment: of whoever restores, for programs and their credentials.
        workspace: root whose files the snapshots put back; None where there is none.
    """

    store: BackupStore
    log: BackupLog
    clock: Clock
    environment: Mapping[str, str]
    workspace: Path | None

    def restore(self, ids: Sequence[str], *, by: str, force: bool = False) -> list[Result]:
        """Bring these entries back, newest first.

        `by` names the occasion: what was begun under this name is never begun again, and an entry whose
        restore was interrupted is reported as unknown. With `force` also where the state changed since the
        call; what is there is preserved first either way. Raises UsageError where one is not in the log.
        """
        with self.store.in_use():
            return self._restore_all(ids, by=by, force=force)

    def _restore_all(self, ids: Sequence[str], *, by: str, force: bool) -> list[Result]:
        chosen = self._chosen(ids)
        results: list[Result] = []
        for _, group in groupby(chosen, key=lambda entry: entry.occasion):
            # of one call all are compared before any is touched: one may lie within another
            now = [self._now(entry.id) for entry in group]
            reasons = [None if force else self._conflict(entry) for entry in now]
            results += [
                self._restore(entry, by=by, reason=reason) for entry, reason in zip(now, reasons, strict=True)
            ]
        return results

    def plan(self, ids: Sequence[str]) -> list[tuple[Entry, tuple[str, ...]]]:
        """What `restore` would do, newest first, without doing it."""
        return [(entry, self._plan(entry)) for entry in self._chosen(ids)]

    def conflict(self, entry: Entry) -> str | None:
        """Why bringing the entry back would lose something newer; None where it would not."""
        if entry.target is None or entry.captured is None or entry.after is None:
            return None
        now = kind_of(entry.target.kind).fingerprint(entry.target, self.context(entry))
        if now in (entry.before, entry.after):
            return None
        entries = list(self.log.read().entries.values())
        later = [
            other.id
            for other in entries[[each.id for each in entries].index(entry.id) + 1 :]
            if other.name == entry.name and other.restorable and other.undoes is None
        ]
        which = f"; newer backups of it: {', '.join(later)}, restore them along with it" if later else ""
        return f"{entry.name} was changed after the call that it was preserved for{which}"

    def context(self, entry: Entry) -> Context:
        """Where the entry's call ran, with the environment of whoever restores."""
        cwd = Path(entry.cwd)
        return Context(
            cwd=cwd if cwd.is_dir() else Path("/"),
            env=self.environment,
            home=Path(entry.home),
            workspace=self.workspace,
        )

    def _chosen(self, ids: Sequence[str]) -> list[Entry]:
        entries = self.log.read().entries
        for each in ids:
            if each not in entries:
                raise UsageError(f"no backup is called {each!r} any more; a collection may have dropped it")
        return newest_first([entries[each] for each in dict.fromkeys(ids)], list(entries))

    def _conflict(self, entry: Entry) -> str | None:
        try:
            return self.conflict(entry)
        except (AgentRewindError, OSError) as error:
            return str(error)

    def _now(self, entry_id: str) -> Entry:
        return self.log.read().entries[entry_id]

    def _plan(self, entry: Entry) -> tuple[str, ...]:
        if entry.target is None or entry.captured is None:
            return (f"nothing: {_reason(entry)}",)
        if entry.state is State.UNCHANGED:
            return ("nothing: the call changed nothing of it",)
        conflict = self.conflict(entry)
        lines = kind_of(entry.target.kind).plan(entry.target, entry.captured, self.context(entry))
        return (*lines, f"stop first: {conflict} (--force goes on)") if conflict else lines

    def _restore(self, entry: Entry, *, by: str, reason: str | None) -> Result:
        if by in entry.by:
            return self._known(entry, entry.by[by])
        if entry.target is None or entry.captured is None:
            return Result(entry=entry, state=State.NOT_RESTORABLE, detail=(_reason(entry),))
        if entry.state in (State.UNCHANGED, State.RESTORED):
            return Result(entry=entry, state=State.UNCHANGED, detail=entry.detail)
        kind, context = kind_of(entry.target.kind), self.context(entry)
        try:
            now = kind.fingerprint(entry.target, context)
            if now == entry.before:
                back = Outcome(restored=(), notes=("it was back already",))
                return self._end(entry, by, back, fingerprint=now)
            if reason is not None:
                raise ConflictError(reason)
            safety = self._safety(entry, kind, context, now)
        except (AgentRewindError, OSError) as error:
            return self._left(entry, by, f"left as it is: {error}")
        return self._carry_out(entry, by, kind, safety)

    def _carry_out(self, entry: Entry, by: str, kind: Kind, safety: Entry) -> Result:
        assert entry.target is not None
        assert entry.captured is not None
        context = self.context(entry)
        # durable before anything is touched: what is killed from here on is never begun again by itself
        self.log.append(safety, RestoreBegun(id=entry.id, by=by, safety=safety.id, at=self.clock.now()))
        try:
            outcome = kind.restore(entry.target, entry.captured, self.store, context)
        except (AgentRewindError, OSError) as error:
            outcome = Outcome(restored=(), missing=(str(error),))
        try:
            fingerprint = kind.fingerprint(entry.target, context)
            unequal = "" if fingerprint == entry.before else "it does not compare equal to what was preserved"
        except (AgentRewindError, OSError) as error:
            fingerprint, unequal = "", f"what came of it cannot be told: {error}"
        if unequal and not outcome.missing:
            outcome = replace(outcome, missing=(unequal,))
        return self._end(entry, by, outcome, safety=safety, fingerprint=fingerprint)

    def _safety(self, entry: Entry, kind: Kind, context: Context, now: str) -> Entry:
        """Preserve what is there before it is replaced. Raises CaptureError: then nothing is replaced."""
        assert entry.target is not None
        captured: Captured = kind.capture(entry.target, self.store, context)
        if kind.fingerprint(entry.target, context) != now:
            raise CaptureError("it changed while it was being preserved")
        self.store.settle()
        return Entry(
            id=self.log.new_id(),
            at=self.clock.now(),
            run_id=entry.run_id,
            node=entry.node,
            tool="restore",
            call=f"before {entry.id} was restored",
            tier=Tier.NONE,
            rule="",
            target=entry.target,
            captured=captured,
            restore=entry.restore,
            cwd=entry.cwd,
            home=entry.home,
            before=now,
            undoes=entry.id,
        )

    def _end(
        self,
        entry: Entry,
        by: str,
        outcome: Outcome,
        *,
        fingerprint: str,
        safety: Entry | None = None,
    ) -> Result:
        state = restored_state(outcome)
        detail = (*outcome.missing, *outcome.notes)
        lines: list[Line] = [
            RestoreEnded(id=entry.id, by=by, state=state, detail=detail, at=self.clock.now())
        ]
        if safety is not None:
            lines.append(CallEnded(id=safety.id, fingerprint=fingerprint))
        if state is State.PARTLY:
            # what is there now is this restore's doing, and no reason to stop a second try
            lines.append(CallEnded(id=entry.id, fingerprint=fingerprint))
        if state is not State.NOT_RESTORABLE:
            lines += self._flipped(entry)
        self.log.append(*lines)
        return Result(
            entry=entry,
            state=state,
            detail=detail,
            safety=safety.id if safety else None,
            moved=safety is not None and fingerprint != safety.before,
        )

    def _flipped(self, entry: Entry) -> list[Line]:
        """Taking a restore back makes the entry that it had restored a kept one again, and so on in turn."""
        entries = self.log.read().entries
        lines: list[Line] = []
        state, undone = State.PRESERVED, entry.undoes
        while undone is not None and undone in entries:
            lines.append(Lapsed(id=undone, state=state, at=self.clock.now()))
            state = State.RESTORED if state is State.PRESERVED else State.PRESERVED
            undone = entries[undone].undoes
        return lines

    def _left(self, entry: Entry, by: str, reason: str) -> Result:
        self.log.append(
            RestoreEnded(id=entry.id, by=by, state=State.PRESERVED, detail=(reason,), at=self.clock.now())
        )
        return Result(entry=entry, state=State.PRESERVED, detail=(reason,))

    def _known(self, entry: Entry, state: State | None) -> Result:
        safety = [other.id for other in self.log.read().entries.values() if other.undoes == entry.id]
        if state is None:
            text = "its restore was begun and interrupted; look at the state yourself"
            return Result(
                entry=entry,
                state=State.UNKNOWN,
                detail=(text,),
                safety=safety[-1] if safety else None,
                moved=bool(safety),
            )
        return Result(entry=entry, state=state, detail=entry.detail, safety=safety[-1] if safety else None)


def _reason(entry: Entry) -> str:
    match entry.state:
        case State.NOT_COVERED:
            return "nothing was preserved for this call: no rule covers it"
        case State.FAILED:
            return f"its backup failed: {'; '.join(entry.detail)}"
        case _:
            return "nothing was preserved"
