"""A model that preserves what a call may change where no rule can: a bounded loop with a shell of its own.

It knows the call, the directory and what our reading of the call could not tell, and nothing else of the
agent. It answers with commands. What is kept is what these save when we run them, verified and read back;
what it says of its own work counts for nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from agentrewind.backup.assistant.model import Message, Model, opening
from agentrewind.backup.assistant.working import finish_tool, finishes
from agentrewind.backup.enclosure import SCRATCH, Enclosure
from agentrewind.backup.kind import CaptureError
from agentrewind.backup.kinds.saved import files_in
from agentrewind.backup.values import Context, Decision, Target, ToolCall
from agentrewind.clock import Clock
from agentrewind.records import JsonObject

PROMPT = """\
Another agent is about to make the tool call below. Nobody knows exactly what it changes. Before it \
runs, you save whatever state it may change or destroy, so that this state can be put back later.

How to work:
- Find out what the call does: read the script, the configuration, the schema. Never run the call itself, \
and change nothing: your shell sees the machine read-only, and on services you only read and export.
- Work out how to save it into $BACKUP_DIR, the only place you can write to. Save contents, not \
descriptions: rows with their schema, files with modes and times, messages with bodies and flags, objects \
whole. Save what depends on it too (rows that cascade, volumes of claims, history of pages).
- The workspace%s is snapshotted already; leave it out. Save no more than the call may change.
- Try your commands, then call `finish` once with all of them. They will be run again, in an empty \
$BACKUP_DIR: `save` writes the state there; `verify` fails unless what was saved is whole and readable; \
`observe` prints the live state, the same text for the same state and another for another (digests will do), \
and fails where it is gone; `restore` puts the state back from $BACKUP_DIR. What only a person can do goes \
into `instructions`.
- Credentials are shown to you as [redacted]. Never write one into a command: name the variable or the \
file from which the program takes it.
- If you find that nothing outside the workspace can change, call `finish` with that outcome and the reason. \
If you cannot save it, say so the same way: the call will then be held back.

You have %d steps and %d seconds; the backup may take %d MiB.%s"""

_FINISH = finish_tool(
    "Say how the state is saved, or why it is not. Ends your work.",
    {
        "outcome": {"type": "string", "enum": ["can be saved", "nothing changes", "cannot be saved"]},
        "state": {"type": "string", "description": "what is saved, as a person would call it"},
        "save": {"type": "string"},
        "verify": {"type": "string"},
        "observe": {"type": "string"},
        "restore": {"type": "string"},
        "instructions": {"type": "string"},
        "reason": {"type": "string"},
    },
    ["outcome"],
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """What one backup may take: answers of the model, seconds in all, bytes saved."""

    steps: int = 15
    seconds: float = 300.0
    bytes: int = 1 << 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Subagent:
    """Preserves by asking a model. `experiences` is text on tools like the one that is called."""

    model: Model
    clock: Clock
    budget: Budget = Budget()
    experiences: str = ""

    def find(self, call: ToolCall, decision: Decision, directory: Path, context: Context) -> Target | None:
        """What is to be preserved and by which commands; None where the subagent found that nothing changes.

        `directory` is where it may try them. Raises CaptureError where it cannot save, ran out of its budget,
        or left a command out.
        """
        (directory / SCRATCH).mkdir(parents=True, exist_ok=True)
        enclosure = Enclosure(directory, context)
        deadline = self.clock.monotonic() + self.budget.seconds
        messages = self._opening(call, decision, context)

        def left() -> float:
            self._check_size(directory)
            return deadline - self.clock.monotonic()

        for told in finishes(
            self.model, messages, enclosure, finish=_FINISH, steps=self.budget.steps, seconds=left
        ):
            return _target(told)
        raise CaptureError(
            f"the backup subagent did not finish within {self.budget.steps} steps and "
            f"{self.budget.seconds:.0f} s"
        )

    def _opening(self, call: ToolCall, decision: Decision, context: Context) -> list[Message]:
        workspace = f" {context.workspace}" if context.workspace else ""
        known = f"\n\nWhat is known of such tools:\n{self.experiences}" if self.experiences else ""
        budget = self.budget
        prompt = PROMPT % (workspace, budget.steps, budget.seconds, budget.bytes >> 20, known)
        facts: JsonObject = {
            "tool": call.name,
            "arguments": call.arguments,
            "directory": str(context.cwd),
            "not understood": list(decision.uncovered),
            "preserved already": [target.name for target in decision.targets],
        }
        return opening(prompt, facts)

    def _check_size(self, directory: Path) -> None:
        size = sum(path.stat().st_size for path in files_in(directory))
        if size > self.budget.bytes:
            raise CaptureError(
                f"the backup has {size >> 20} MiB, more than the {self.budget.bytes >> 20} MiB it may take"
            )


def _target(told: dict[str, object]) -> Target | None:
    reason = str(told.get("reason") or told.get("instructions") or "it gave no reason")
    if told.get("outcome") == "nothing changes":
        return None
    if told.get("outcome") != "can be saved":
        raise CaptureError(f"the backup subagent cannot save the state: {reason}")
    detail: JsonObject = {
        name: str(told.get(name) or "") for name in ("save", "verify", "observe", "restore", "instructions")
    }
    for name in ("save", "verify", "observe"):
        if not detail[name]:
            raise CaptureError(f"the backup subagent gave no command to {name} the state")
    if not detail["restore"] and not detail["instructions"]:
        raise CaptureError("the backup subagent did not say how the state is put back")
    return Target(kind="saved", name=str(told.get("state") or "state found by a subagent"), detail=detail)
