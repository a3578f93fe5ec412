"""Finishes a rewind that was asked for, exactly once, whatever was killed before.

Each step is written down or can be repeated: processes ended, safety snapshot, restore, `rewind-NNNN.json`,
new segment. The rewind has happened when its segment exists.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from agentrewind.backup.rewinding import told
from agentrewind.clock import Clock
from agentrewind.errors import DamagedError
from agentrewind.nested import not_carried
from agentrewind.options import Ablation, RunOptions
from agentrewind.processes import Identity, Process
from agentrewind.records import (
    MAIN_WORKSPACE,
    Change,
    CommitId,
    ForkPoint,
    JsonObject,
    LlmNode,
    OutsideChange,
    ProcessesEnded,
    RecordUid,
    RewindAsked,
    RewindDone,
    SafetySnapshot,
    Started,
    WorkspaceSpan,
)
from agentrewind.rewind.memory import compose
from agentrewind.rewind.resume import fork_of
from agentrewind.run_store import Run
from agentrewind.tickets import Captured
from agentrewind.timeline import Timeline
from agentrewind.workspace.outside import repositories_outside
from agentrewind.workspace.restore import RestoreReport


class External(Protocol):
    """What the run changed outside the workspace."""

    def take_back(self, nodes: Collection[str], *, by: str) -> list[JsonObject]: ...


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewinding:
    """One rewind that was asked for and is to be finished. `external`: None where nothing was preserved."""

    run: Run
    timeline: Timeline
    asked: RewindAsked
    files: Files
    options: RunOptions
    make_quiet: MakeQuiet
    clock: Clock
    external: External | None = None

    def perform(self) -> JsonObject:
        """Bring files and log to the target; returns the report. Safe to call again after a kill.

        Raises:
            DamagedError: the target cannot be read.
            RestoreError: the files did not come out as the snapshot says; the rewind stays pending.
        """
        target = self.timeline.nodes.get(self.asked.target)
        commit = _commit(target) if isinstance(target, LlmNode) else None
        if not isinstance(target, LlmNode) or commit is None:
            raise DamagedError(
                f"the rewind's target {self.asked.target} cannot be read; the run stays as it is"
            )
        quiet = self.make_quiet(_processes_before(self.timeline, target))
        try:
            report = self._move_files(commit, quiet)
            self._open_segment(commit, report)
        finally:
            quiet.go_on()
        return report

    def _move_files(self, commit: CommitId, quiet: Quiet) -> JsonObject:
        safety = self._safety_snapshot(quiet)
        changes = self.files.changes(safety, commit)
        restored: JsonObject = {"environment": "left as it is"}
        if Ablation.ENVIRONMENT not in self.options.ablations:
            restored = self.files.restore(commit).to_json()
        restored = {**restored, "external": list(self._take_back())}
        text: str | None = None
        if Ablation.MEMORY not in self.options.ablations and self._notes():
            facts = [*self._facts(changes, restored, quiet), *self._lost_variables()]
            text = compose(self._notes(), facts)
        return {
            **restored,
            "safety_commit": safety,
            "commit": commit,
            "ended": [str(each) for each in quiet.ended],
            "still_running": [str(each) for each in quiet.kept],
            "memory_message": text,
            "memory_role": self.options.memory_role,
        }

    def _safety_snapshot(self, quiet: Quiet) -> CommitId:
        """The state before the restore; taken once, however often the rewind is begun."""
        asked = self.asked
        with self.run.writer(self.timeline.head) as writer:
            if quiet.ended or quiet.kept:
                ended, kept = tuple(map(str, quiet.ended)), tuple(map(str, quiet.kept))
                writer.append(ProcessesEnded(ended=ended, kept=kept, at=self.clock.now()), durable=False)
            for event in self.timeline.events():
                if isinstance(event, SafetySnapshot) and event.segment == asked.segment:
                    known = event.workspaces[MAIN_WORKSPACE].before_commit
                    if known is not None:
                        return known
            taken = self.files.snapshot(label=f"safety before rewind {asked.segment}")
            self.files.pin(taken.commit, safety_ref(self.run.run_id, f"{asked.segment:04d}"))
            span = WorkspaceSpan(before_commit=taken.commit, partial=taken.partial)
            writer.append(
                SafetySnapshot(segment=asked.segment, workspaces={MAIN_WORKSPACE: span}, at=self.clock.now()),
                durable=True,
            )
            return taken.commit

    def _open_segment(self, commit: CommitId, report: JsonObject) -> None:
        run, asked, now = self.run, self.asked, self.clock.now()
        run.write_rewind(
            asked.segment,
            {
                "format": self.timeline.header.format,
                "run_id": run.run_id,
                "segment": asked.segment,
                "target": asked.target,
                "workspace_commit": commit,
                "memories": [note.memory for note in self._notes()],
                "report": report,
            },
        )
        fork = ForkPoint(
            run_id=run.run_id, segment=self.timeline.segment_of(asked.target), record_uid=asked.target
        )
        parent = self.timeline.headers[self.timeline.head]
        run.create_segment(replace(parent, segment=asked.segment, forked_from=fork, created_at=now))
        with run.writer(asked.segment) as writer:
            done = RewindDone(segment=asked.segment, target=asked.target, report=report, at=now)
            writer.append(done, durable=True)

    def _take_back(self) -> list[JsonObject]:
        """What the abandoned nodes changed outside the workspace, newest first, each at most once."""
        if self.external is None or Ablation.ENVIRONMENT in self.options.ablations:
            return []
        nodes = abandoned(self.timeline, self.asked.target)
        return self.external.take_back(nodes, by=f"rewind {self.run.run_id}/{self.asked.segment:04d}")

    def _notes(self) -> list[RewindAsked]:
        notes = [*self.timeline.memories(), self.asked]
        # a person may go back without a word
        return [note for note in {note.segment: note for note in notes}.values() if note.memory.strip()]

    def _left_outside(self) -> list[str]:
        root = Path(self.timeline.header.workspaces[MAIN_WORKSPACE].root)
        return [
            f"The repository's data in {place} lies outside the workspace and was NOT put back: "
            "branches, index and commits are as they were last."
            for place in repositories_outside(root)
        ]

    def _lost_variables(self) -> list[str]:
        lost = not_carried(self.timeline, self.asked.target)
        return [f"Variables of your code that could not be brought back: {', '.join(lost)}."] if lost else []

    def _running(self, quiet: Quiet) -> Iterator[str]:
        """What runs on and what does not. In a sandbox of its own nothing does."""
        if self.options.jobs_end:
            yield "Whatever your commands had left running has ended, whenever it was started."
            return
        if quiet.kept:
            yield f"Still running, started before this point: {', '.join(map(str, quiet.kept))}."
        if quiet.ended:
            yield f"{len(quiet.ended)} process(es) started after this point were ended."

    def _facts(self, changes: Sequence[Change], restored: JsonObject, quiet: Quiet) -> list[str]:
        """What the agent should know of the state, without a word of the abandoned branch's content."""
        if Ablation.ENVIRONMENT in self.options.ablations:
            return ["The workspace's files were NOT put back; they are as the abandoned attempt left them."]
        facts = ["No file in the workspace had changed."]
        if changes:
            facts = [f"{len(changes)} path(s) in the workspace were put back to this point."]
        facts += self._left_outside()
        external = restored.get("external")
        facts += told(
            [each for each in external if isinstance(each, dict)] if isinstance(external, list) else []
        )
        lost = restored.get("lost_commits")
        if isinstance(lost, list) and lost:
            facts.append(f"{len(lost)} commit(s) in the workspace's repositories were undone as well.")
        kept = restored.get("kept")
        if isinstance(kept, list) and kept:
            shown = ", ".join(map(str, kept[:20])) + (" …" if len(kept) > 20 else "")
            facts.append(f"Not put back, still as they were last: {shown}.")
        facts += self._running(quiet)
        outside = sum(_paths(event) for event in _outside_since(self.timeline, self.asked))
        if outside:
            facts.append(f"{outside} change(s) that no call of yours made were undone as well.")
        return facts


def abandoned(timeline: Timeline, target: RecordUid) -> list[RecordUid]:
    """The nodes of the current path from `target` on, and the calls after it that never ended."""
    path = [node.record_uid for node in timeline.path()]
    later = path[path.index(target) :] if target in path else []
    return [*later, *(started.record_uid for started in timeline.started_unfinished())]


def complete_opening(run: Run, timeline: Timeline, clock: Clock) -> bool:
    """Add the first event of a rewind's segment if a kill came between; returns whether it was missing."""
    head = timeline.head
    fork = fork_of(timeline, head)
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


def _commit(node: LlmNode) -> CommitId | None:
    span = node.metadata.workspaces.get(MAIN_WORKSPACE)
    return span.before_commit if span else None


def _processes_before(timeline: Timeline, target: LlmNode) -> frozenset[Identity]:
    for event in timeline.events(timeline.segment_of(target.record_uid)):
        if isinstance(event, Started) and event.record_uid == target.record_uid:
            return frozenset(event.processes)
    return frozenset()


def _outside_since(timeline: Timeline, asked: RewindAsked) -> list[OutsideChange]:
    events: list[OutsideChange] = []
    after = {node.record_uid for node in timeline.path() if node.record_uid >= asked.target}
    for number in timeline.segments:
        for event in timeline.events(number):
            if isinstance(event, OutsideChange) and event.after in after:
                events.append(event)
    return events


def _paths(event: OutsideChange) -> int:
    return sum(span.diff_total or len(span.diff_summary) for span in event.workspaces.values())
