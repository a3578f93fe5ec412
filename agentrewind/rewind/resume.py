"""Works out from the log where a fresh process takes up a run. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agentrewind.records import (
    MAIN_WORKSPACE,
    CommitId,
    ForkPoint,
    LlmNode,
    Node,
    RecordUid,
    RewindDone,
    Started,
)
from agentrewind.replayer import Mode
from agentrewind.rewind.memory import Memory
from agentrewind.timeline import Timeline


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumePoint:
    """Where a process begins.

    Attributes:
        prefix: the nodes that are served from the log.
        checkpoint: the node whose call is made live after them; None when no rewind is to be reached.
        unfinished: calls that were begun after the prefix and never finished.
        memory: the memory message in force, or None.
        last_commit: the newest commit that the log names on this path.
        unsettled: the last nodes that have no after-commit yet, each with its before-commit.
    """

    mode: Mode
    prefix: tuple[Node, ...]
    checkpoint: LlmNode | None
    unfinished: tuple[Started, ...]
    memory: Memory | None
    last_commit: CommitId | None
    unsettled: tuple[tuple[RecordUid, CommitId], ...]

    @property
    def fresh(self) -> bool:
        """Nothing has been recorded yet."""
        return not self.prefix and self.checkpoint is None and not self.unfinished


def resume_point(timeline: Timeline, *, replay: bool = False) -> ResumePoint:
    """Where the current path goes on. Raises DamagedError for a target that cannot be read."""
    prefix = timeline.path()
    checkpoint = None if replay else _checkpoint(timeline)
    mode = Mode.REPLAY if replay else Mode.REWIND if checkpoint else Mode.RESUME
    return ResumePoint(
        mode=mode,
        prefix=prefix,
        checkpoint=checkpoint,
        unfinished=() if checkpoint else timeline.started_unfinished(),
        memory=_memory(timeline),
        last_commit=_files_at(timeline, checkpoint) if checkpoint else _last_commit(prefix),
        unsettled=() if checkpoint else _unsettled(prefix),
    )


def chain(timeline: Timeline, segment: int) -> list[int]:
    """The segments that lead to `segment`, itself first."""
    found = [segment]
    while (fork := fork_of(timeline, found[-1])) is not None and fork.segment < found[-1]:
        found.append(fork.segment)
    return found


def fork_of(timeline: Timeline, segment: int) -> ForkPoint | None:
    """Where the segment leaves an earlier one of its run, or None."""
    header = timeline.header_of(segment)
    if header is None or header.forked_from is None or header.forked_from.run_id != header.run_id:
        return None
    return header.forked_from


def _checkpoint(timeline: Timeline) -> LlmNode | None:
    fork = fork_of(timeline, timeline.head)
    if fork is None or fork.inclusive or fork.record_uid is None:
        return None
    if any(isinstance(node, LlmNode) for node in timeline.own_nodes()):
        return None
    target = timeline.nodes.get(fork.record_uid)
    return target if isinstance(target, LlmNode) else None


def last_rewind(timeline: Timeline) -> RewindDone | None:
    """The rewind whose memory is in force on the current path."""
    for segment in chain(timeline, timeline.head):
        for event in timeline.events(segment):
            if isinstance(event, RewindDone) and event.segment == segment:
                return event
    return None


def _memory(timeline: Timeline) -> Memory | None:
    done = last_rewind(timeline)
    if done is None:
        return None
    text, role = done.report.get("memory_message"), done.report.get("memory_role")
    target = timeline.nodes.get(done.target)
    if not isinstance(text, str) or not isinstance(target, LlmNode):
        return None
    messages = timeline.messages(done.target)
    return Memory(
        text=text,
        role=role if isinstance(role, str) else "system",
        conversation=target.conversation,
        index=len(messages),
        anchor=messages[-1] if messages else None,
    )


def _before(node: Node) -> CommitId | None:
    span = node.metadata.workspaces.get(MAIN_WORKSPACE)
    return span.before_commit if span else None


def _files_at(timeline: Timeline, checkpoint: LlmNode) -> CommitId | None:
    """The commit that the files were left at by the rewind to this checkpoint."""
    done = last_rewind(timeline)
    if done is not None and done.report.get("environment") is not None:
        # the rewind moved no file: what the abandoned branch did to them is no outside change
        safety = done.report.get("safety_commit")
        return CommitId(safety) if isinstance(safety, str) else None
    return _before(checkpoint)


def _last_commit(prefix: Sequence[Node]) -> CommitId | None:
    for node in reversed(prefix):
        span = node.metadata.workspaces.get(MAIN_WORKSPACE)
        if span is not None and (commit := span.after_commit or span.before_commit) is not None:
            return commit
    return None


def _unsettled(prefix: Sequence[Node]) -> tuple[tuple[RecordUid, CommitId], ...]:
    found: list[tuple[RecordUid, CommitId]] = []
    for node in reversed(prefix):
        span = node.metadata.workspaces.get(MAIN_WORKSPACE)
        if span is None or span.before_commit is None or span.after_commit is not None:
            break
        found.append((node.record_uid, span.before_commit))
    return tuple(reversed(found))
