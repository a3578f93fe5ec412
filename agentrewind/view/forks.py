"""Makes forks from the page: the run is made and left to be started by whoever has the provider's key."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from agentrewind.clock import Clock
from agentrewind.errors import UsageError
from agentrewind.forking import Edits, make_fork
from agentrewind.records import Json
from agentrewind.run_store import Run


@dataclass(frozen=True, slots=True, kw_only=True)
class Forks:
    """Makes forks in a store."""

    home: Path
    clock: Clock

    def prepare(self, run: Run, node: str, *, memory: str, answer: str) -> str:
        """Make the fork, start nothing, and give the id of the new run. Raises as `make_fork` does."""
        edits = Edits(memory=memory, answer=_answer(answer))
        return make_fork(run, node, edits, home=self.home, clock=self.clock).run_id


def _answer(text: str) -> Json:
    """None for no answer, an object where the text is one, else the text."""
    if not text.startswith("{"):
        return text or None
    try:
        found: Json = json.loads(text)
    except ValueError as error:
        raise UsageError(f"the answer looks like JSON and is none: {error}") from error
    return found
