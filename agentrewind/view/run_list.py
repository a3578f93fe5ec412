"""The rows of the list of runs; a run that has not changed is not read again."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

from agentrewind.commands.list import Row, row_of
from agentrewind.errors import AgentRewindError
from agentrewind.run_store import Run
from agentrewind.view.reading import Library, Signature, signature


@dataclass(slots=True)
class RunList:
    """All runs of a library, newest first; safe to share between threads."""

    library: Library
    _known: dict[str, tuple[Signature, Row]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def rows(self, start: int, count: int) -> list[Row]:
        """How some of them stand; what cannot be opened is called damaged."""
        return [self._row(run) for run in self.library.store.runs()[start : start + count]]

    def _row(self, run: Run) -> Row:
        try:
            present = signature(run)
            with self._lock:
                known = self._known.get(run.run_id)
            # whether a run still goes on does not show in its files
            if known is not None and known[0] == present and known[1].state != "running":
                return known[1]
            row = row_of(self.library.home, run)
        except (AgentRewindError, OSError) as error:
            return Row(run_id=run.run_id, bytes=0, created_at="", detail=str(error))
        with self._lock:
            self._known[run.run_id] = (present, row)
        return row
