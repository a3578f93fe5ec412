"""Makes forks from the page: the run is made and left to be started by whoever has the provider's key."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from agentrewind.clock import Clock
from agentrewind.fork_answer import read_answer
from agentrewind.forking import Edits, make_fork
from agentrewind.run_store import Run


@dataclass(frozen=True, slots=True, kw_only=True)
class Forks:
    """Makes forks in a store."""

    home: Path
    clock: Clock

    def prepare(self, run: Run, node: str, *, memory: str, answer: str) -> str:
        """Make the fork, start nothing, and give the id of the new run. Raises as `make_fork` does."""
        edits = Edits(memory=memory, answer=read_answer(answer) if answer else None)
        return make_fork(run, node, edits, home=self.home, clock=self.clock).run_id
