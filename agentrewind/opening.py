"""Builds the layer of one agent process from what is on disk."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from agentrewind.backup.rewinding import External
from agentrewind.capture.gate import Gate
from agentrewind.capture.graph_steps import current_step
from agentrewind.clock import Clock
from agentrewind.errors import RestoreError
from agentrewind.graph_steps import TOPIC as GRAPH
from agentrewind.graph_steps import GraphSteps
from agentrewind.identity import Conversations
from agentrewind.layer import Layer
from agentrewind.lost_snapshots import account_for_losses
from agentrewind.nested import KEY_NAME, CodeRuns, Sealed, code_notes
from agentrewind.options import Ablation, RunOptions
from agentrewind.path_notes import notes_on_path
from agentrewind.processes import Identity, descendant_identities, identity_of, inherited
from agentrewind.recorder import Recorder
from agentrewind.records import (
    MAIN_WORKSPACE,
    Json,
    JsonObject,
    LlmNode,
    Note,
    RecordUid,
    Restored,
    Resumed,
    SafetySnapshot,
    WorkspaceSpan,
)
from agentrewind.replayer import OnDivergence, Replayer
from agentrewind.rewind.conduct import Conduct
from agentrewind.rewind.perform import abandoned, safety_ref
from agentrewind.rewind.resume import ResumePoint, resume_point
from agentrewind.rewind.signal import Latch
from agentrewind.run_store import Run
from agentrewind.submission import Verdict, accept_all, run_check
from agentrewind.timeline import Timeline
from agentrewind.workspace.lock import alone
from agentrewind.workspace.outside import repositories_outside
from agentrewind.workspace.policy import Policy
from agentrewind.workspace.roots import present_root
from agentrewind.workspace.snapshots import SnapshotStore
from agentrewind.workspace.tracker import Workspace

if TYPE_CHECKING:
    from agentrewind.backup.hook import Backups

AUDIT = "audit"
"""Topic of the note on what audits of a process found."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a run keeps what: the run itself, the workspace, and its snapshot store."""

    run: Run
    root: Path
    store: Path


@contextmanager
def opened_workspace(place: Place, timeline: Timeline, *, clock: Clock) -> Iterator[Workspace]:
    """The run's workspace, open while this lasts; its snapshots are kept under the current segment's ref.

    Raises WorkspaceRefusedError where another directory stands in its place.
    """
    declaration = timeline.header.workspaces[MAIN_WORKSPACE]
    present_root(place.root)
    with (
        closing(SnapshotStore.open(place.store)) as store,
        closing(
            Workspace(
                root=place.root,
                store=store,
                policy=Policy.from_json(declaration.policy),
                ref=segment_ref(place.run.run_id, timeline.head),
                clock=clock,
            )
        ) as files,
    ):
        yield files


def segment_ref(run_id: str, segment: int) -> str:
    """The ref that keeps a segment's snapshots reachable."""
    return f"refs/agentrewind/{run_id}/segment-{segment:04d}"


@contextmanager
def live_layer(
    place: Place,
    *,
    supervisor: int,
    clock: Clock,
    secrets: Collection[str],
    warn: Callable[[str], None],
    on_divergence: OnDivergence | None = None,
    environment: Mapping[str, str] | None = None,
) -> Iterator[Layer]:
    """The layer of a process that goes live after the recorded prefix; closed with a last snapshot.

    `environment` is what tools run in; only backups need it.
    """
    run = place.run
    guard = alone(run.directory)
    timeline = run.timeline()
    options = RunOptions.from_json(timeline.header.options)
    if on_divergence is not None:
        options = replace(options, on_divergence=on_divergence)
    point = resume_point(timeline)
    latch = Latch()
    with (
        closing(guard),
        opened_workspace(place, timeline, clock=clock) as files,
        run.writer(timeline.head) as writer,
    ):
        uids = _Uids(timeline.next_uid())
        accounted = account_for_losses(timeline, point, files, run_id=run.run_id, clock=clock)
        point = accounted.point
        recorder = Recorder(
            journal=writer,
            snapshots=files,
            clock=clock,
            next_uid=uids,
            processes=_no_jobs
            if options.jobs_end
            else _Jobs(supervisor, inherited=() if point.fresh else inherited(run.run_id, supervisor)),
            last=point.last_commit,
            last_uid=point.prefix[-1].record_uid if point.prefix else None,
            unsettled=point.unsettled,
        )
        recorder.expect_nothing_of(node.record_uid for node in point.prefix if isinstance(node, LlmNode))
        if not point.fresh:
            recorder.write(Resumed(at=clock.now(), detail=point.mode.value))
        for record in (*_recovered(files, clock), *accounted.records):
            recorder.write(record)
            if isinstance(record, Note):
                warn(record.text)
        backups = _backups(place, options, clock, environment or {})
        external = External(
            home=run.directory.parent.parent,
            run_id=run.run_id,
            workspace=place.root,
            environment=environment or {},
            clock=clock,
        )

        def note(text: str) -> None:
            recorder.write(Note(topic="position", text=text, at=clock.now()))
            warn(text)
            if gate.memory is not None:
                gate.memory = replace(gate.memory, by_position=True)

        conduct = Conduct(
            timeline=run.timeline,
            journal=recorder,
            options=options,
            clock=clock,
            restore_in_place=lambda target: _restore_in_place(
                run, files, recorder, target, options, clock, external
            ),
            not_restored=_not_restored(timeline),
        )
        steps = GraphSteps(notes=notes_on_path(timeline, GRAPH), write=recorder.write, clock=clock)
        gate = Gate(
            latch=latch,
            replayer=_replayer(point, options, timeline),
            conversations=Conversations(unread=options.declared),
            records=recorder,
            memory=point.memory,
            secrets=secrets,
            on_step=steps.ran,
            on_call=lambda uid: steps.made_a_call(current_step(), uid),
            at_checkpoint=lambda target: _verify_checkpoint(files, recorder, target, options, clock),
            warn=note,
        )
        layer = Layer(
            gate=gate,
            recorder=recorder,
            options=options,
            submissions=list(timeline.submissions()),
            check=lambda: _check(options, place.root),
            conduct=conduct,
            clock=clock,
            code=CodeRuns(
                notes=code_notes(timeline),
                write=lambda record, durable: recorder.write(record, durable=durable),
                sealed=_sealed(run),
                clock=clock,
            ),
        )
        layer.backups = backups
        try:
            yield layer
        finally:
            try:
                gate.settle_left()
                recorder.close()
                _note_audits(files, recorder, clock)
            finally:
                if backups is not None:
                    backups.store.close()


def _recovered(files: Workspace, clock: Clock) -> Iterator[Note]:
    return (Note(topic="store", text=text, at=clock.now()) for text in files.recovered)


def _backups(
    place: Place, options: RunOptions, clock: Clock, environment: Mapping[str, str]
) -> Backups | None:
    """What preserves state outside the workspace, None where the run does not want it."""
    if options.backup is None:
        return None
    from agentrewind.backup.joining import open_backups

    return open_backups(
        place.run.directory.parent.parent,
        policy=options.backup,
        run_id=place.run.run_id,
        workspace=place.root,
        environment=environment,
        clock=clock,
        request=options.task,
    )


def _note_audits(files: Workspace, recorder: Recorder, clock: Clock) -> None:
    """Keep what audits found that the watcher had missed; `verify` counts it."""
    tally = files.tally
    if tally.disagreements:
        data: JsonObject = {"audits": tally.audits, "disagreements": tally.disagreements}
        text = "an audit found changes that the watcher had missed; the snapshot after it holds them"
        recorder.write(Note(topic=AUDIT, text=text, at=clock.now(), data=data))


def replay_layer(
    run: Run, *, clock: Clock, warn: Callable[[str], None], on_divergence: OnDivergence
) -> Layer:
    """The layer of a replay: everything from the log, nothing live, nothing written."""
    timeline = run.timeline()
    options = replace(RunOptions.from_json(timeline.header.options), on_divergence=on_divergence)
    point = resume_point(timeline, replay=True)
    latch = Latch()
    gate = Gate(
        latch=latch,
        replayer=_replayer(point, options, timeline),
        conversations=Conversations(unread=options.declared),
        records=None,
        memory=point.memory,
        warn=warn,
    )
    return Layer(
        gate=gate,
        recorder=None,
        options=options,
        submissions=list(timeline.submissions()),
        check=accept_all,
        conduct=None,
        clock=clock,
        code=CodeRuns(notes=code_notes(timeline), write=None, sealed=_sealed(run), clock=clock),
    )


def _no_jobs() -> tuple[Identity, ...]:
    """Nothing that a rewind could keep: whatever runs is ended before files move."""
    return ()


class _Jobs:
    """Lists what the agent has running: below the supervisor, and left over from an earlier one."""

    def __init__(self, supervisor: int, *, inherited: Sequence[Identity]) -> None:
        self._supervisor = supervisor
        self._inherited = inherited

    def __call__(self) -> tuple[Identity, ...]:
        # in a warm start this process has a parent below the supervisor, which is no job of the agent either
        below = descendant_identities(self._supervisor, without=(os.getpid(), os.getppid()))
        if not self._inherited:
            return below
        left = (each for each in self._inherited if identity_of(each[0]) == each)
        return tuple(sorted({*below, *left}))


class _Uids:
    """Gives ascending record uids, beginning with the first free one."""

    def __init__(self, first: RecordUid) -> None:
        self._number = int(first.removeprefix("rec_"))

    def __call__(self) -> RecordUid:
        uid = RecordUid(f"rec_{self._number:06d}")
        self._number += 1
        return uid


def _replayer(point: ResumePoint, options: RunOptions, timeline: Timeline) -> Replayer:
    return Replayer(
        path=point.prefix,
        beyond=point.beyond,
        checkpoint=point.checkpoint,
        mode=point.mode,
        on_divergence=options.on_divergence,
        messages_of=timeline.messages,
    )


def _sealed(run: Run) -> Sealed:
    return Sealed(store=run.blobs, key=run.directory.parent.parent / KEY_NAME)


def _check(options: RunOptions, root: Path) -> Verdict:
    return accept_all() if options.check is None else run_check(options.check, workspace=root)


def _not_restored(timeline: Timeline) -> tuple[str, ...]:
    policy = Policy.from_json(timeline.header.workspaces[MAIN_WORKSPACE].policy)
    root = Path(timeline.header.workspaces[MAIN_WORKSPACE].root)
    outside = (
        f"the repository data in {place}, outside the workspace" for place in repositories_outside(root)
    )
    return (*(f"files matching {pattern}" for pattern in policy.excluded), *outside)


def _verify_checkpoint(
    files: Workspace, recorder: Recorder, target: LlmNode, options: RunOptions, clock: Clock
) -> None:
    """The harness may have touched files while it started: put them back before the one live call."""
    commit = target.metadata.workspaces[MAIN_WORKSPACE].before_commit
    if commit is None or Ablation.ENVIRONMENT in options.ablations:
        return
    taken = files.snapshot(label="checkpoint")
    changes = files.changes(commit, taken.commit)
    if not changes:
        return
    report = files.restore(commit)
    if not report.verified:
        raise RestoreError("the files of the checkpoint could not be verified")
    if not (report.created or report.modified or report.deleted or report.touched):
        return  # what differs is what the system had refused to bring back
    recorder.write(
        Note(
            topic="startup",
            text="the harness changed files while it started; they were put back",
            at=clock.now(),
            data={"paths": [change.path.decode("utf-8", "backslashreplace") for change in changes[:200]]},
        )
    )


def _restore_in_place(
    run: Run,
    files: Workspace,
    recorder: Recorder,
    target: LlmNode,
    options: RunOptions,
    clock: Clock,
    external: External,
) -> Restored:
    """Put the files back while the process lives on (context not rewound)."""
    commit = target.metadata.workspaces[MAIN_WORKSPACE].before_commit
    assert commit is not None
    taken = recorder.settle("safety before a restore", hurried=False)
    files.pin(taken.commit, safety_ref(run.run_id, str(target.record_uid)))
    recorder.write(
        SafetySnapshot(
            segment=None,
            workspaces={MAIN_WORKSPACE: WorkspaceSpan(before_commit=taken.commit, partial=taken.partial)},
            at=clock.now(),
        ),
        durable=True,
    )
    report: JsonObject = {"environment": "left as it is"}
    if Ablation.ENVIRONMENT not in options.ablations:
        report = files.restore(commit).to_json()
        later = abandoned(run.timeline(), target.record_uid)
        taken_back: list[Json] = list(external.take_back(later, by=f"in place {run.run_id} {clock.now()}"))
        report["external"] = taken_back
    return Restored(record_uid=target.record_uid, commit=commit, report=report, by="agent", at=clock.now())
