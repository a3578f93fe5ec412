"""How a run stands after its supervisor has finished."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from agentrewind.handover import EXIT_STORAGE
from agentrewind.rewind.conduct import count_rewinds
from agentrewind.timeline import Timeline


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResult:
    """How a run stands after its supervisor has finished. `state`: accepted, rejected, stopped or error."""

    run_id: str
    state: str
    detail: str
    rewinds: int
    nodes: int
    submissions: int
    segments: int
    exit_code: int

    @property
    def accepted(self) -> bool:
        """The last submission was accepted."""
        return self.state == "accepted"


def summarise(timeline: Timeline, *, state: str, detail: str, exit_code: int) -> RunResult:
    """The figures of a run, as `run --json` prints them."""
    return RunResult(
        run_id=timeline.header.run_id,
        state=state,
        detail=detail,
        rewinds=count_rewinds(timeline),
        nodes=len(timeline.nodes),
        submissions=len(timeline.submissions()),
        segments=len(timeline.segments),
        exit_code=exit_code,
    )


def exit_code_of(state: str, code: int) -> int:
    """The exit code of the command, out of the run's state and the agent process's own code."""
    if state == "accepted":
        return 0
    return code if code > 0 and code != EXIT_STORAGE else 1


def no_room(directory: Path) -> str:
    """What to tell where not even the reason could be written down."""
    free = shutil.disk_usage(directory).free
    return (
        f"the store cannot be written, {free} bytes of space are free in {directory}; "
        "make room or mend its permissions, then resume the run"
    )
