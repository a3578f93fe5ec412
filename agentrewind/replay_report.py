"""Keeps account of a replay inside the agent process, and writes what came of it."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path

from agentrewind.adapters import AgentOutcome
from agentrewind.errors import AgentRewindError, DamagedError, DivergenceError
from agentrewind.harness_debugger import break_into
from agentrewind.layer import Layer
from agentrewind.records import LlmNode, Node, RecordUid


@dataclass(slots=True, kw_only=True)
class Account:
    """What is served as it is served; opens the debugger at one node where that was asked for.

    Attributes:
        result: the file that the process which asked for the replay reads.
        debug_at: the node at which the debugger opens; `opened` once it did.
        failure: what a script ended with.
    """

    layer: Layer
    result: Path
    debug_at: str | None = None
    warnings: list[str] = field(default_factory=list)
    nodes: dict[RecordUid, None] = field(default_factory=dict)
    opened: bool = False
    failure: Exception | None = None

    def served(self, node: Node) -> None:
        """A recorded node is about to be given to the harness."""
        self.nodes[node.record_uid] = None
        if node.record_uid == self.debug_at and not self.opened:
            self.opened = True
            what = "the answer" if isinstance(node, LlmNode) else f"the result of {node.tool_name}"
            title = (
                f"{node.record_uid}: the harness waits for {what}; `continue` goes on, `quit` ends the replay"
            )
            break_into(title, lambda: self._write(error=None, outcome=None, left=node.record_uid))

    def close(self, outcome: AgentOutcome | Exception | None) -> int:
        """Write the result; returns the exit code of the process."""
        error = self.layer.latch.error
        if error is None and isinstance(outcome, AgentRewindError):
            error = outcome
        if isinstance(error, DivergenceError):
            told = None
        elif error is not None:
            told = str(error)
        else:
            told = f"{type(outcome).__name__}: {outcome}" if isinstance(outcome, Exception) else None
        self._write(error=told, outcome=outcome, left=None, damaged=isinstance(error, DamagedError))
        return error.exit_code if error is not None else 0

    def _write(
        self, *, error: str | None, outcome: object, left: RecordUid | None, damaged: bool = False
    ) -> None:
        found = self.layer.latch.error
        self.result.write_text(
            json.dumps(
                {
                    "served": self.layer.served,
                    "nodes": list(self.nodes),
                    "live": 0,
                    "remaining": self.layer.remaining,
                    "divergence": {"record_uid": found.record_uid, "difference": found.difference}
                    if isinstance(found, DivergenceError)
                    else None,
                    "warnings": self.warnings,
                    "error": error,
                    "damaged": damaged,
                    "state": outcome.state if isinstance(outcome, AgentOutcome) else None,
                    "opened": self.opened,
                    "left": left,
                }
            )
        )


def write_damage(result: Path, error: DamagedError) -> int:
    """Write the result of a replay that could not even begin; returns the exit code of the process."""
    result.write_text(json.dumps({"error": str(error), "damaged": True}))
    return error.exit_code
