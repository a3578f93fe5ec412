"""Tells a run that was recorded from one that was made of another program's trajectory. Pure."""

from __future__ import annotations

from agentrewind.errors import DamagedError
from agentrewind.records import Header
from agentrewind.timeline import Timeline

TRAJECTORY = "trajectory"
"""The option in a run's header that says of which trajectory it was made, and the topic of the note on it."""


def is_recorded(header: Header) -> bool:
    """Whether the layer saw the run; one made of a trajectory has no files and no exact requests."""
    return TRAJECTORY not in header.options


def refuse_trajectory(timeline: Timeline) -> None:
    """Raise DamagedError, as for anything that is missing, where a run was made of a trajectory."""
    if not is_recorded(timeline.header):
        raise DamagedError(
            f"run {timeline.header.run_id} was made of a trajectory and not recorded: there are no files and "
            "no snapshots of it, so it cannot be restored, forked, replayed, resumed, carried or searched by "
            "its states; `log`, `show`, `diff`, `view` and the other forms of `export` work"
        )
