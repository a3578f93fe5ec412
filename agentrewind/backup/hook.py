"""Runs around every live tool call: decide, preserve and verify, write down, let it run, compare after."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from agentrewind.backup.entries import CallEnded, Entry, State
from agentrewind.backup.entry_lines import as_external
from agentrewind.backup.kind import Captured, Store
from agentrewind.backup.kinds.table import kind_of
from agentrewind.backup.log import BackupLog
from agentrewind.backup.masking import Masking
from agentrewind.backup.policy import BackupPolicy, OnFailure, OnUnknown, Trigger
from agentrewind.backup.store import BackupStore
from agentrewind.backup.values import Context, Decision, Target, Tier, ToolCall
from agentrewind.clock import Clock
from agentrewind.errors import AgentRewindError
from agentrewind.identity import canonical_bytes
from agentrewind.records import Json, JsonObject
from agentrewind.redact import scrub

_SHOWN = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class Covered:
    """State that was preserved, and how it comes back, a phrase."""

    target: Target
    captured: Captured
    restore: str
    rule: str = ""


class Covers(Protocol):
    """What needs a model: the judgement of a mode, and the preserving of what no rule covers."""

    def wanted(self, call: ToolCall, decision: Decision, context: Context, masking: Masking) -> bool:
        """Whether the mode in force asks for a backup of this call; credentials are masked by `masking`."""
        ...

    def cover(
        self, call: ToolCall, decision: Decision, store: Store, context: Context, masking: Masking
    ) -> tuple[Covered, ...]:
        """Preserve what the call may change beyond the decision's targets; empty where it changes nothing.

        Raises CaptureError where it may change what could not be preserved.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Guarded:
    """A call that may run, or why it may not.

    Attributes:
        entries: what was preserved for it, and what was not.
        blocked: what the agent is told instead of a result; empty where the call runs.
    """

    entries: tuple[Entry, ...] = ()
    blocked: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """A call, what was decided about it, and what of it was not shown to a model."""

    call: ToolCall
    decision: Decision
    node: str | None
    masking: Masking = field(default_factory=Masking)


Decide = Callable[[ToolCall, Context], Decision]


@dataclass(frozen=True, slots=True, kw_only=True)
class Backups:
    """The backups of one agent process, or of one call of another harness. Safe for threads.

    Attributes:
        context: where calls run, unless they say otherwise.
        run_id: the run that the entries belong to, None outside of one.
        covers: the part that needs a model; None where none is configured.
    """

    policy: BackupPolicy
    decide: Decide
    store: BackupStore
    log: BackupLog
    clock: Clock
    context: Context
    run_id: str | None
    covers: Covers | None = None

    def before(self, call: ToolCall, node: str | None) -> Guarded:
        """Preserve what the call may change; durable and verified on return."""
        asked = _Asked(call=call, decision=self.decide(call, self.context), node=node)
        if self._passes(asked):
            return Guarded()
        with self.store.in_use():
            return self._guard(asked)

    def _guard(self, asked: _Asked) -> Guarded:
        at = self.clock.now()
        try:
            covered = self._preserve(asked)
            entries = [self._entry(asked, each, at) for each in covered]
            self.store.settle()
        except (AgentRewindError, OSError) as error:
            return self._failed(asked, str(error))
        unknown = self._unknown(asked.decision)
        if unknown:
            if self.policy.on_unknown is OnUnknown.BLOCK:
                return self._refused(asked, unknown)
            entries.append(self._bare(asked, State.NOT_COVERED, unknown))
        if entries:
            self.log.append(*entries)
        return Guarded(entries=tuple(entries))

    def after(self, guarded: Guarded) -> tuple[JsonObject, ...]:
        """Note what the state is now; returns what the node says of its external effects."""
        if guarded.blocked:
            return ()
        ended: list[CallEnded] = []
        changed: list[Entry] = []
        for entry in guarded.entries:
            after = self._fingerprint(entry)
            if after is not None:
                ended.append(CallEnded(id=entry.id, fingerprint=after))
            if after is None or after != entry.before:
                changed.append(entry)
        if ended:
            self.log.append(*ended)
        return tuple(as_external(entry) for entry in changed)

    def of_node(self, node: str) -> tuple[JsonObject, ...]:
        """What the log holds of a node whose process died before it could say so itself."""
        if self.run_id is None:
            return ()
        entries = self.log.of_run(self.run_id, [node])
        quiet = (State.UNCHANGED, State.BLOCKED)
        return tuple(as_external(entry) for entry in entries if entry.state not in quiet)

    def _passes(self, asked: _Asked) -> bool:
        call, decision = asked.call, asked.decision
        if decision.tier is Tier.NONE or (decision.read_only and not call.tagged):
            return True
        if self.policy.trigger is Trigger.OUTSIDE and not decision.targets and not call.tagged:
            return True
        return self.covers is not None and not self.covers.wanted(call, decision, self.context, asked.masking)

    def _preserve(self, asked: _Asked) -> list[Covered]:
        """Raises CaptureError."""
        decision = asked.decision
        found: list[Covered] = []
        for place, target in enumerate(decision.targets):
            phrase = decision.restore[place] if place < len(decision.restore) else ""
            captured = kind_of(target.kind).capture(target, self.store, self.context)
            found.append(
                Covered(target=target, captured=captured, restore=phrase, rule=", ".join(decision.rules))
            )
        if self._is_open(decision) and self.covers is not None:
            found += self.covers.cover(asked.call, decision, self.store, self.context, asked.masking)
        return found

    @staticmethod
    def _is_open(decision: Decision) -> bool:
        return bool(decision.uncovered) or (decision.tier is Tier.SUBAGENT and not decision.targets)

    def _unknown(self, decision: Decision) -> str:
        """What may change and is preserved by nobody."""
        if self.covers is not None or not self._is_open(decision):
            return ""
        return "; ".join(decision.uncovered) or decision.reason

    def _fingerprint(self, entry: Entry) -> str | None:
        if entry.target is None:
            return None
        try:
            return kind_of(entry.target.kind).fingerprint(entry.target, self.context)
        except (AgentRewindError, OSError):
            return None  # a restore then cannot tell newer changes from the call's own, and says so

    def _failed(self, asked: _Asked, reason: str) -> Guarded:
        warn = self.policy.on_failure is OnFailure.WARN
        entry = self._bare(asked, State.FAILED if warn else State.BLOCKED, reason)
        self.log.append(entry)
        text = (
            f"blocked: nothing was run, because what it would change could not be preserved first: {reason}"
        )
        return Guarded(entries=(entry,), blocked="" if warn else text)

    def _refused(self, asked: _Asked, unknown: str) -> Guarded:
        entry = self._bare(asked, State.BLOCKED, unknown)
        self.log.append(entry)
        text = (
            f"blocked: nothing was run. This call may change what cannot be preserved first ({unknown}), and "
            "this run is set to refuse that. Use commands whose effect can be told from their text."
        )
        return Guarded(entries=(entry,), blocked=text)

    def _entry(self, asked: _Asked, covered: Covered, at: str) -> Entry:
        return Entry(
            id=self.log.new_id(),
            at=at,
            run_id=self.run_id,
            node=asked.node,
            tool=asked.call.name,
            call=shown(asked.call.arguments),
            tier=asked.decision.tier,
            masked=asked.masking.count,
            rule=covered.rule,
            target=covered.target,
            captured=covered.captured,
            restore=covered.restore,
            cwd=str(self.context.cwd),
            home=str(self.context.home),
            before=kind_of(covered.target.kind).fingerprint(covered.target, self.context),
            detail=tuple(map(scrub, covered.captured.notes)),
        )

    def _bare(self, asked: _Asked, state: State, reason: str) -> Entry:
        return Entry(
            id=self.log.new_id(),
            at=self.clock.now(),
            run_id=self.run_id,
            node=asked.node,
            tool=asked.call.name,
            call=shown(asked.call.arguments),
            tier=asked.decision.tier,
            masked=asked.masking.count,
            rule=", ".join(asked.decision.rules),
            target=None,
            captured=None,
            cwd=str(self.context.cwd),
            home=str(self.context.home),
            state=state,
            detail=(scrub(reason),),
        )


def shown(arguments: Json) -> str:
    """A call's arguments for people: the command of a shell as it is, else JSON, cut where it is long."""
    text = ""
    if isinstance(arguments, dict):
        command = arguments.get("command", arguments.get("cmd"))
        text = command if isinstance(command, str) and len(arguments) <= 2 else ""
    # the entry needs no credential; of JSON each text is looked at alone, or one swallows what follows it
    text = scrub(text) if text else canonical_bytes(Masking().value(arguments)).decode()
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"
