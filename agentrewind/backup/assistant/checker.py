"""Two questions to a model: does a call only read, and does the mode in force want it backed up.

What it does not answer readably counts as a call that changes something and is wanted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from agentrewind.backup.assistant.model import Model, first_object, opening
from agentrewind.backup.values import Context, Decision, ToolCall
from agentrewind.records import JsonObject

_READS = """\
You judge one tool call of an agent before it runs. Decide whether it can change any state at all: files, \
databases, services, accounts, packages, settings, remote systems. It reads only if every part of it reads, \
whatever its arguments turn out to be. A script that you cannot see changes state. When in doubt it changes.

Answer with one JSON object and nothing else: {"read_only": true or false, "reason": "a short sentence"}"""

_WANTED = """\
An agent is about to make a tool call. A user wants backups before some calls, and not before others. Decide \
whether this call is one that the user wants a backup for. When in doubt, it is.

The user's wish: %s

Answer with one JSON object and nothing else: {"backup": true or false, "reason": "a short sentence"}"""

WISHES: Mapping[str, str] = {
    "high-impact": "only what would be hard, slow or costly to make again: deletions and overwrites of data, "
    "schemas, configuration in use, shared or remote state; not what can be built again in minutes",
    "beyond-request": "only calls that change something which the user's request did not ask for, by what "
    "they touch or by how far they go",
    "human-work": "only what people made or edited by hand: documents, code, notes, settings, mail, entered "
    "data; not what tools or the agent itself produced",
}


@dataclass(frozen=True, slots=True)
class Checker:
    """Asks the model. `request` is what the user asked of the agent."""

    model: Model
    request: str = ""

    def reads_only(self, call: ToolCall, context: Context) -> bool:
        """Whether the call surely changes nothing. Raises CaptureError where the model cannot be asked."""
        answer = self._ask(_READS, call, context)
        return answer is not None and answer.get("read_only") is True

    def wanted(self, wish: str, call: ToolCall, decision: Decision, context: Context) -> bool:
        """Whether the user's wish covers the call; `wish` is a mode's name or the user's own words."""
        touched = [target.name for target in decision.targets] + list(decision.uncovered)
        answer = self._ask(_WANTED % WISHES.get(wish, wish), call, context, touched)
        return answer is None or answer.get("backup") is not False

    def _ask(
        self, prompt: str, call: ToolCall, context: Context, touched: list[str] | None = None
    ) -> dict[str, object] | None:
        facts: JsonObject = {
            "tool": call.name,
            "arguments": call.arguments,
            "directory": str(context.cwd),
            **({"may change": [*touched], "the user's request": self.request} if touched is not None else {}),
        }
        return first_object(self.model.ask(opening(prompt, facts)).text)
