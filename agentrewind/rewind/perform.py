"""Finishes a rewind that was asked for, exactly once, whatever was killed before.

Each step is written down or can be repeated: processes ended, safety snapshot, restore, `rewind-NNNN.json`,
new segment. The rewind has happened when its segment exists.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from agentrewind.clock import Clock
from agentrewind.errors import DamagedError
from agentrewind.options import Ablation, RunOptions
from agentrewind.processes import Identity, Process
from agentrewind.record import (
    MAIN_WORKSPACE,
    Change,
    CommitId,
    ForkPoint,
    Header,
    JsonObject,
    LlmNode,
    OutsideChange,
    ProcessesEnded,
    RewindAsked,
    RewindDone,
    SafetySnapshot,
    Started,
    WorkspaceSpan,
)
from agentrewind.recorder import Captured
from agentrewind.rewind.memory import compose
from agentrewind.run_store import Run
from agentrewind.timeline import Timeline
from agentrewind.workspace.restore import RestoreReport


class Files(Protocol):
    """The workspace."""

    def snapshot(self, *, label: str) -> Captured: ...
    def changes(self, before: CommitId, after: CommitId) -> tuple[Change, ...]: ...
    def restore(self, commit: CommitId) -> RestoreReport: ...
    def pin(self, commit: CommitId, ref: str) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Quiet:
    """What became of the processes: the ended ones, and those of the kept prefix that are suspended."""

    ended: Sequence[Process]
    kept: Sequence[Process]
    go_on: Callable[[], None]


MakeQuiet = Callable[[frozenset[Identity]], Quiet]
"""Ends every process of the run but those given, suspends these, and says which they were."""


def safety_ref(run_id: str, name: str) -> str:
    """The ref that keeps a safety snapshot reachable."""
    return f"refs/agentrewind/{run_id}/safety-{name}"


def perform_rewind(
    *,
    run: Run,
    timeline: Timeline,
    asked: RewindAsked,
    files: Files,
    options: RunOptions,
    make_quiet: MakeQuiet,
    clock: Clock,
) -> JsonObject:
    """Bring files and log to the target; returns the report. Safe to call again after a kill.

    Raises:
        DamagedError: the target cannot be read.
        RestoreError: the files did not come out as the snapshot says; the rewind stays pending.
    """
    target = timeline.nodes.get(asked.target)
    commit = _commit(target) if isinstance(target, LlmNode) else None
    if not isinstance(target, LlmNode) or commit is None:
        raise DamagedError(f"the rewind's target {asked.target} cannot be read; the run stays as it is")
    quiet = make_quiet(_processes_before(timeline, target))
    try:
        report = _move_files(
            run=run, timeline=timeline, asked=asked, commit=commit, files=files, options=options, quiet=quiet, clock=clock
        )
        _open_segment(run=run, timeline=timeline, asked=asked, commit=commit, options=options, report=report, clock=clock)
    finally:
        quiet.go_on()
    return report


def _move_files(
    *,
    run: Run,
    timeline: Timeline,
    asked: RewindAsked,
    commit: CommitId,
    files: Files,
    options: RunOptions,
    quiet: Quiet,
    clock: Clock,
) -> JsonObject:
    with run.writer(timeline.head) as writer:
        if quiet.ended or quiet.kept:
            writer.append(
                ProcessesEnded(
                    ended=tuple(map(str, quiet.ended)), kept=tuple(map(str, quiet.kept)), at=clock.now()
                ),
                durable=False,
            )
        safety = _safety(timeline, asked.segment)
        if safety is None:
            taken = files.snapshot(label=f"safety before rewind {asked.segment}")
            safety = taken.commit
            files.pin(safety, safety_ref(run.run_id, f"{asked.segment:04d}"))
            span = WorkspaceSpan(before_commit=safety, partial=taken.partial)
            writer.append(
                SafetySnapshot(segment=asked.segment, workspaces={MAIN_WORKSPACE: span}, at=clock.now()),
                durable=True,
            )
        changes = files.changes(safety, commit)
        if Ablation.ENVIRONMENT in options.ablations:
            restored: JsonObject = {"environment": "left as it is"}
        else:
            restored = files.restore(commit).to_json()
    facts = _facts(timeline, asked, changes=changes, restored=restored, quiet=quiet, options=options)
    notes = [*timeline.memories(), asked]
    text = None if Ablation.MEMORY in options.ablations else compose(_unique(notes), facts)
    return {
        **restored,
        "safety_commit": safety,
        "commit": commit,
        "ended": [str(each) for each in quiet.ended],
        "still_running": [str(each) for each in quiet.kept],
        "memory_message": text,
        "memory_role": options.memory_role,
    }


def _open_segment(
    *,
    run: Run,
    timeline: Timeline,
    asked: RewindAsked,
    commit: CommitId,
    options: RunOptions,
    report: JsonObject,
    clock: Clock,
) -> None:
    now = clock.now()
    run.write_rewind(
        asked.segment,
        {
            "format": timeline.header.format,
            "run_id": run.run_id,
            "segment": asked.segment,
            "target": asked.target,
            "workspace_commit": commit,
            "memories": [note.memory for note in _unique([*timeline.memories(), asked])],
            "report": report,
        },
    )
    header: Header = replace(
        timeline.headers[timeline.head],
        segment=asked.segment,
        forked_from=ForkPoint(
            run_id=run.run_id, segment=timeline.segment_of(asked.target), record_uid=asked.target
        ),
        created_at=now,
    )
    run.create_segment(header)
    with run.writer(asked.segment) as writer:
        writer.append(
            RewindDone(segment=asked.segment, target=asked.target, report=report, at=now), durable=True
        )


def complete_opening(run: Run, timeline: Timeline, clock: Clock) -> bool:
    """Add the first event of a rewind's segment if a kill came between; returns whether it was missing."""
    head = timeline.head
    fork = timeline.headers[head].forked_from
    if fork is None or fork.inclusive or fork.record_uid is None:
        return False
    if any(isinstance(event, RewindDone) for event in timeline.events(head)):
        return False
    report = run.read_rewind(head).get("report")
    if not isinstance(report, dict):
        raise DamagedError(f"rewind-{head:04d}.json has no report; the rewind cannot be finished")
    with run.writer(head) as writer:
        writer.append(
            RewindDone(segment=head, target=fork.record_uid, report=report, at=clock.now()), durable=True
        )
    return True


def _unique(notes: Sequence[RewindAsked]) -> list[RewindAsked]:
    return list({note.segment: note for note in notes}.values())


def _commit(node: LlmNode) -> CommitId | None:
    span = node.metadata.workspaces.get(MAIN_WORKSPACE)
    return span.before_commit if span else None


def _processes_before(timeline: Timeline, target: LlmNode) -> frozenset[Identity]:
    for event in timeline.events(timeline.segment_of(target.record_uid)):
        if isinstance(event, Started) and event.record_uid == target.record_uid:
            return frozenset(event.processes)
    return frozenset()


def _safety(timeline: Timeline, segment: int) -> CommitId | None:
    for event in timeline.events(timeline.head):
        if isinstance(event, SafetySnapshot) and event.segment == segment:
            return event.workspaces[MAIN_WORKSPACE].before_commit
    return None


def _facts(
    timeline: Timeline,
    asked: RewindAsked,
    *,
    changes: Sequence[Change],
    restored: JsonObject,
    quiet: Quiet,
    options: RunOptions,
) -> list[str]:
    """What the agent should know of the restored state, without a word of the abandoned branch's content."""
    if Ablation.ENVIRONMENT in options.ablations:
        return ["The workspace's files were NOT put back; they are as the abandoned attempt left them."]
    facts = [
        f"{len(changes)} path(s) in the workspace were put back to this point." if changes
        else "No file in the workspace had changed."
    ]
    kept = restored.get("kept")
    if isinstance(kept, list) and kept:
        shown = ", ".join(map(str, kept[:20])) + (" …" if len(kept) > 20 else "")
        facts.append(f"Not put back, still as they were last: {shown}.")
    if quiet.kept:
        facts.append(f"Still running, started before this point: {', '.join(map(str, quiet.kept))}.")
    if quiet.ended:
        facts.append(f"{len(quiet.ended)} process(es) started after this point were ended.")
    outside = sum(_paths(event) for event in _outside_since(timeline, asked))
    if outside:
        facts.append(f"{outside} change(s) that no call of yours made were undone as well; a person can bring them back.")
    return facts


def _outside_since(timeline: Timeline, asked: RewindAsked) -> list[OutsideChange]:
    events: list[OutsideChange] = []
    after = {node.record_uid for node in timeline.path() if node.record_uid >= asked.target}
    for number in timeline.headers:
        for event in timeline.events(number):
            if isinstance(event, OutsideChange) and event.after in after:
                events.append(event)
    return events


def _paths(event: OutsideChange) -> int:
    return sum(span.diff_total or len(span.diff_summary) for span in event.workspaces.values())
