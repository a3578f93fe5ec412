"""Entries of the backup log: what was preserved for which call, and what became of it. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TypeAlias, assert_never

from agentrewind.backup.kind import Captured, Outcome
from agentrewind.backup.values import Target, Tier


class State(StrEnum):
    """What can be said of an entry."""

    PRESERVED = "preserved"
    """The state before the call is kept and can be restored."""
    UNCHANGED = "unchanged"
    """The call changed nothing of it; there is nothing to restore."""
    RESTORED = "restored"
    PARTLY = "partly"
    """Restored, apart from what the entry names as missing."""
    NOT_RESTORABLE = "not restorable"
    """Nothing of it came back, or it was changed since and is left as it is."""
    FAILED = "failed"
    """The backup failed, and the call ran without it."""
    BLOCKED = "blocked"
    """The call did not run, since nothing could be preserved for it."""
    UNKNOWN = "unknown"
    """A restore was begun and its process died: look at the state yourself."""
    NOT_COVERED = "not covered"
    """The call ran although nothing could be preserved for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One piece of state that a call was about to change.

    Attributes:
        id: sorts by time.
        run_id: the run and `node` the tool node that the call belongs to; None for a hook of another harness.
        tool: name of the tool; `call`: what it was asked, shortened for people.
        rule: id of the rule that matched, empty where the subagent did it.
        target: what was preserved; None where nothing was (`NOT_COVERED`, `FAILED`).
        restore: how it comes back, a phrase.
        cwd: working directory of the call and `home` the user's, for whoever restores.
        before: fingerprint when it was captured; `after`: once the call was done, None where that is unknown.
        undoes: the entry whose restore this one takes back, for what was preserved before a restore.
        made_by: label of the restore that it was preserved before; known once that has begun.
        by: the restores that were begun, by their labels, each with what came of it (None: unknown).
        detail: what came back and what did not, or why there is no backup.
        masked: how many credentials were masked in what a model was shown for it.
    """

    id: str
    at: str
    run_id: str | None
    node: str | None
    tool: str
    call: str
    tier: Tier
    rule: str
    target: Target | None
    captured: Captured | None
    restore: str = ""
    cwd: str
    home: str
    before: str = ""
    after: str | None = None
    undoes: str | None = None
    made_by: str = ""
    state: State = State.PRESERVED
    by: dict[str, State | None] = field(default_factory=dict)
    detail: tuple[str, ...] = ()
    masked: int = 0

    @property
    def restorable(self) -> bool:
        """There is something to bring back, and nothing speaks against trying."""
        return self.captured is not None and self.state not in (State.UNCHANGED, State.RESTORED)

    @property
    def occasion(self) -> tuple[str | None, ...]:
        """Equal for the entries of one call, which come back together."""
        return self.run_id, self.node, self.at, self.call

    @property
    def name(self) -> str:
        """What a person would call it."""
        return self.target.name if self.target else self.call


@dataclass(frozen=True, slots=True, kw_only=True)
class CallEnded:
    """The call that an entry was made for is done; the fingerprint of the state since."""

    id: str
    fingerprint: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoreBegun:
    """A restore is about to touch the state; durable before it does. `safety` preserved what is there now."""

    id: str
    by: str
    safety: str | None
    at: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoreEnded:
    """What a restore did."""

    id: str
    by: str
    state: State
    detail: tuple[str, ...]
    at: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Lapsed:
    """The entry's state changed although nobody restored it: what had restored it was taken back."""

    id: str
    state: State
    at: str


Line: TypeAlias = Entry | CallEnded | RestoreBegun | RestoreEnded | Lapsed


def fold_in(entries: dict[str, Entry], line: Line) -> None:
    """Bring the entries, in the order in which they were made, up to this line."""
    entry = line if isinstance(line, Entry) else entries.get(line.id)
    if entry is not None:  # else its own line is damaged, which the reader has named
        entries[line.id] = _with(entry, line)
    if isinstance(line, RestoreBegun) and line.safety in entries:
        entries[line.safety] = replace(entries[line.safety], made_by=line.by)


def last_call(entries: Iterable[Entry]) -> tuple[Entry, ...]:
    """All that was preserved for the last call, oldest first; calls that are back already do not count.

    Where the call changed nothing, its entries say so; no older call takes its place.
    """
    calls: dict[tuple[str | None, ...], list[Entry]] = {}
    for entry in entries:
        if entry.captured is not None and entry.undoes is None:
            calls.setdefault(entry.occasion, []).append(entry)
    for call in reversed(calls.values()):
        if any(each.restorable for each in call) or all(each.state is State.UNCHANGED for each in call):
            return tuple(call)
    return ()


def last_restore(entries: Iterable[Entry]) -> tuple[Entry, ...]:
    """What all parts of the last restore preserved before they began, oldest first."""
    made = [each for each in entries if each.undoes is not None and each.restorable]
    label = made[-1].made_by if made else ""
    return tuple(each for each in made if each.made_by == label) if label else tuple(made[-1:])


def _with(entry: Entry, line: Line) -> Entry:
    match line:
        case Entry():
            return line
        case CallEnded(fingerprint=fingerprint):
            same = entry.state is State.PRESERVED and fingerprint == entry.before
            return replace(entry, after=fingerprint, state=State.UNCHANGED if same else entry.state)
        case RestoreBegun(by=by):
            return replace(entry, state=State.UNKNOWN, by={**entry.by, by: None})
        case RestoreEnded(by=by, state=state, detail=detail):
            return replace(entry, state=state, by={**entry.by, by: state}, detail=detail)
        case Lapsed(state=state):
            return replace(entry, state=state, detail=())
        case _:
            assert_never(line)


def restored_state(outcome: Outcome) -> State:
    """What an outcome makes of the entry."""
    if not outcome.missing:
        return State.RESTORED
    return State.PARTLY if outcome.restored else State.NOT_RESTORABLE
