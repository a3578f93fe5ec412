"""Joins checker and subagent to the hook: what Algorithm 1 of the paper leaves to a model."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from agentrewind.backup.assistant.checker import Checker
from agentrewind.backup.assistant.experiences import experiences_for
from agentrewind.backup.assistant.exploring import OWN
from agentrewind.backup.assistant.model import LitellmModel, MaskedModel, Model
from agentrewind.backup.assistant.reflection import accept, propose, reflect
from agentrewind.backup.assistant.subagent import Subagent
from agentrewind.backup.hook import Covered
from agentrewind.backup.kind import CaptureError, Store
from agentrewind.backup.kinds.table import kind_of
from agentrewind.backup.masking import Masking
from agentrewind.backup.policy import BackupPolicy, Mode, Reflect
from agentrewind.backup.rules.loading import load_rules
from agentrewind.backup.values import Context, Decision, Target, ToolCall
from agentrewind.clock import Clock
from agentrewind.errors import AgentRewindError

RULE = "subagent"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCovers:
    """The hook's `Covers`, by a model. `home` is where the user's experiences and proposals are kept."""

    policy: BackupPolicy
    model: LitellmModel
    clock: Clock
    request: str = ""
    home: Path | None = None

    def wanted(self, call: ToolCall, decision: Decision, context: Context, masking: Masking) -> bool:
        """Whether the mode asks for a backup of this call; a call that the agent tagged always does."""
        wish = self.policy.words or self.policy.mode.value
        if call.tagged or wish == Mode.FULL.value:
            return True
        model = MaskedModel(self.model, masking)
        return Checker(model, self.request).wanted(wish, call, decision, context)

    def cover(
        self, call: ToolCall, decision: Decision, store: Store, context: Context, masking: Masking
    ) -> tuple[Covered, ...]:
        """Ask whether the call only reads; if not, let the subagent preserve. Raises CaptureError."""
        model = MaskedModel(self.model, masking)
        if not call.tagged and Checker(model).reads_only(call, context):
            return ()
        own = self.home.joinpath(*OWN) if self.home else None
        subagent = Subagent(model=model, clock=self.clock, experiences=experiences_for(call, own))
        target = subagent.find(call, decision, store.scratch(), context)
        if target is None:
            return ()
        kind = kind_of(target.kind)
        captured = kind.capture(target, store, context)
        if not kind.fingerprint(target, context):
            raise CaptureError("the backup subagent's command that observes the state fails")
        noted = replace(captured, notes=(*captured.notes, *self._reflected(call, target, model)))
        return (Covered(target=target, captured=noted, restore=kind.describe(target)[1], rule=RULE),)

    def _reflected(self, call: ToolCall, target: Target, model: Model) -> tuple[str, ...]:
        """Let it become a rule where the policy asks for that; what goes wrong here stops no call."""
        if self.policy.reflect is Reflect.OFF or self.home is None:
            return ()
        try:
            known = [rule.id for rule in load_rules(self.home).all]
            text = reflect(call, target, model, known=known)
            if not text:
                return ()
            name = self.clock.now().lower().replace(":", "").replace(".", "-")
            proposal = propose(self.home, text, name)
            if self.policy.reflect is Reflect.AUTO:
                accept(self.home, proposal.id)
                return (f"a rule was made of it and is in force ({proposal.id})",)
        except AgentRewindError as error:
            return (f"no rule could be made of it: {error}",)
        return (f"a rule is proposed: agentrewind backup accept {proposal.id}",)
