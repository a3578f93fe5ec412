"""A rewind that a person asks for: the run goes back to a checkpoint, its workspace too, and goes on live."""

from __future__ import annotations

from agentrewind.errors import OutsideChangesError, UsageError
from agentrewind.forking import checkpoint
from agentrewind.manual import Machine, Outside, restore_in_place
from agentrewind.outcome import RunResult
from agentrewind.records import RewindAsked
from agentrewind.run_store import Run
from agentrewind.runs import resume_run
from agentrewind.supervise import Surroundings


def rewind_in_place(run: Run, node: str, *, memory: str, revert: bool, around: Surroundings) -> RunResult:
    """Write the decision down, then see the run through from there.

    Raises:
        UsageError: the node is no checkpoint of the current path.
        OutsideChangesError: somebody has changed files since, and `revert` does not say that they may go.
        and what `resume_run` raises.
    """
    timeline = run.timeline()
    target = checkpoint(timeline, node)
    if not timeline.on_path(target.record_uid):
        raise UsageError(f"{node} lies on an abandoned branch; undo the rewind first, or fork into a copy")
    machine = Machine(
        home=around.home,
        user_home=around.user_home,
        clock=around.clock,
        environment=around.environment,
    )
    planned = restore_in_place(run, node, after=False, outside=Outside.STOP, dry_run=True, machine=machine)
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
            at=around.clock.now(),
        )
        writer.append(asked, durable=True)
    return resume_run(run.run_id, around)
