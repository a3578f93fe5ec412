"""A rewind that a person asks for: resuming the run then takes it and its files back to a checkpoint."""

from __future__ import annotations

from agentrewind.errors import OutsideChangesError, UsageError
from agentrewind.forking import checkpoint
from agentrewind.manual import Machine, Outside, restore_in_place
from agentrewind.records import RewindAsked
from agentrewind.run_store import Run


def ask_to_rewind(run: Run, node: str, *, memory: str, revert: bool, machine: Machine) -> None:
    """Write the decision down; the run is then resumed like after any rewind that was interrupted.

    Raises:
        UsageError: the node is no checkpoint of the current path.
        OutsideChangesError: somebody has changed files since, and `revert` does not say that they may go.
        WorkspaceBusyError: a run is at work in these files, this one or another.
    """
    timeline = run.timeline()
    target = checkpoint(timeline, node)
    # where a run is at work, that is said first: what it does moves the path
    planned = restore_in_place(run, node, after=False, outside=Outside.STOP, dry_run=True, machine=machine)
    if not timeline.on_path(target.record_uid):
        raise UsageError(f"{node} lies on an abandoned branch; undo the rewind first, or fork into a copy")
    if planned.outside and not revert:
        raise OutsideChangesError(planned.outside)
    with run.writer(timeline.head) as writer:
        asked = RewindAsked(
            segment=timeline.head + 1,
            target=target.record_uid,
            memory=memory,
            reason="asked for by a person",
            asked_by=None,
            by="person",
            at=machine.clock.now(),
        )
        writer.append(asked, durable=True)
