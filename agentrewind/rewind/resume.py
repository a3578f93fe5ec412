"""Works out from the log where a fresh process takes up a run. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from agentrewind.records import (
    MAIN_WORKSPACE,
    AttemptFailed,
    CommitId,
    ForkPoint,
    InputId,
    LlmNode,
    MessageList,
    Metadata,
    Node,
    NodeKind,
    Record,
    RecordUid,
    RewindDone,
    Started,
    ToolNode,
)
from agentrewind.replayer import Beyond, Mode
from agentrewind.rewind.memory import Memory
from agentrewind.timeline import Timeline


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumePoint:
    """Where a process begins.

    Attributes:
        prefix: the nodes that are served from the log.
        checkpoint: the node whose call is made live after them; None when no rewind is to be reached.
        beyond: what the log tells of calls that are not in the prefix.
        memory: the memory message in force, or None.
        last_commit: the newest commit that the log names on this path.
        unsettled: the last nodes that have no after-commit yet, each with its before-commit.
    """

    mode: Mode
    prefix: tuple[Node, ...]
    checkpoint: LlmNode | None
    beyond: Beyond
    memory: Memory | None
    last_commit: CommitId | None
    unsettled: tuple[tuple[RecordUid, CommitId], ...]

    @property
    def fresh(self) -> bool:
        """Nothing has been recorded yet."""
        return not self.prefix and self.checkpoint is None and not self.beyond.unfinished


def resume_point(timeline: Timeline, *, replay: bool = False) -> ResumePoint:
    """Where the current path goes on. Raises DamagedError for a target that cannot be read."""
    cut = _cut(timeline)
    left_out = {each.record_uid for each in cut}
    prefix = tuple(node for node in timeline.path() if node.record_uid not in left_out)
    checkpoint = None if replay else _checkpoint(timeline)
    mode = Mode.REPLAY if replay else Mode.REWIND if checkpoint else Mode.RESUME
    unfinished = () if checkpoint else timeline.started_unfinished()
    return ResumePoint(
        mode=mode,
        prefix=prefix,
        checkpoint=checkpoint,
        beyond=Beyond(
            unfinished=unfinished,
            cut=cut,
            later=_requests(unfinished) if replay else _later(timeline, prefix),
            failed=_failed(timeline, unfinished) if replay else (),
        ),
        memory=_memory(timeline),
        last_commit=_files_at(timeline, checkpoint) if checkpoint else _last_commit(prefix),
        unsettled=() if checkpoint else _unsettled(prefix),
    )


def _cut(timeline: Timeline) -> tuple[Started, ...]:
    """The tool calls on the path that had not ended when the files were captured to which it went back."""
    found: list[Started] = []
    for number in chain(timeline, timeline.head):
        fork = fork_of(timeline, number)
        target = None if fork is None or fork.inclusive else fork.record_uid
        if target is not None and target in timeline.nodes:
            found += _running_at(timeline.records(timeline.segment_of(target)), target)
    return tuple(found)


def _running_at(records: Iterable[Record], target: RecordUid) -> Iterator[Started]:
    """The tool calls of a segment that were under way when the snapshot before `target` was begun."""
    running: dict[RecordUid, Started] = {}
    for record in records:
        match record:
            case Started(record_uid=uid) if uid == target:
                break
            case Started() if record.node_kind is NodeKind.TOOL:
                running[record.record_uid] = record
            case ToolNode(record_uid=uid):
                running.pop(uid, None)
            case _:
                continue
    return iter(running.values())


def _later(timeline: Timeline, prefix: Sequence[Node]) -> frozenset[InputId]:
    served = {node.record_uid for node in prefix}
    return frozenset(
        input_id
        for number in chain(timeline, timeline.head)
        for input_id in _requests(
            event
            for event in timeline.events(number)
            if isinstance(event, Started) and event.record_uid not in served
        )
    )


def _requests(begun: Iterable[Started]) -> frozenset[InputId]:
    return frozenset(each.input_id for each in begun if each.node_kind is NodeKind.LLM)


def _failed(timeline: Timeline, unfinished: Iterable[Started]) -> tuple[LlmNode, ...]:
    """The calls with which the run ended, since the provider had failed each attempt that was made."""
    errors = {each.record_uid: each for each in timeline.events() if isinstance(each, AttemptFailed)}
    return tuple(
        LlmNode(
            record_uid=started.record_uid,
            input_id=started.input_id,
            conversation="",
            client="",
            model="",
            parameters={},
            messages=MessageList(base=None, keep=0, append=()),
            tools=None,
            output=None,
            error=errors[started.record_uid].error,
            metadata=Metadata(
                created_at=started.at, latency_ms=0, attempts=errors[started.record_uid].attempt
            ),
        )
        for started in unfinished
        if started.record_uid in errors and errors[started.record_uid].attempt >= started.attempt
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
