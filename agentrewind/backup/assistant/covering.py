"""Joins checker and subagent to the hook: what Algorithm 1 of the paper leaves to a model."""

from __future__ import annotations

from dataclasses import dataclass

from agentrewind.backup.assistant.checker import Checker
from agentrewind.backup.assistant.experiences import experiences_for
from agentrewind.backup.assistant.model import LitellmModel
from agentrewind.backup.assistant.subagent import Subagent
from agentrewind.backup.hook import Covered
from agentrewind.backup.kind import CaptureError, Store
from agentrewind.backup.kinds.table import kind_of
from agentrewind.backup.policy import BackupPolicy, Mode
from agentrewind.backup.values import Context, Decision, ToolCall
from agentrewind.clock import Clock

RULE = "subagent"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCovers:
    """The hook's `Covers`, by a model."""

    policy: BackupPolicy
    model: LitellmModel
    clock: Clock
    request: str = ""

    def wanted(self, call: ToolCall, decision: Decision, context: Context) -> bool:
        """Whether the mode asks for a backup of this call; a call that the agent tagged always does."""
        wish = self.policy.words or self.policy.mode.value
        if call.tagged or wish == Mode.FULL.value:
            return True
        return Checker(self.model, self.request).wanted(wish, call, decision, context)

    def cover(
        self, call: ToolCall, decision: Decision, store: Store, context: Context
    ) -> tuple[Covered, ...]:
        """Ask whether the call only reads; if not, let the subagent preserve. Raises CaptureError."""
        if not call.tagged and Checker(self.model).reads_only(call, context):
            return ()
        subagent = Subagent(model=self.model, clock=self.clock, experiences=experiences_for(call))
        target = subagent.find(call, decision, store.scratch(), context)
        if target is None:
            return ()
        kind = kind_of(target.kind)
        captured = kind.capture(target, store, context)
        if not kind.fingerprint(target, context):
            raise CaptureError("the backup subagent's command that observes the state fails")
        return (Covered(target=target, captured=captured, restore=kind.describe(target)[1], rule=RULE),)
