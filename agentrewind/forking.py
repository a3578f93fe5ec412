"""Makes a run that goes on from a node of another one: its log up to there, and a copy of the files.

The new run stands by itself: it holds the kept segments under its own id, and a person's decision to go back
to the node, which is carried out when it is resumed. Its header names the parent.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from agentrewind.clock import Clock, new_run_id
from agentrewind.errors import DamagedError, UsageError
from agentrewind.fork_answer import edited
from agentrewind.identity import Conversations
from agentrewind.options import RunOptions
from agentrewind.provenance import refuse_trajectory
from agentrewind.records import (
    MAIN_WORKSPACE,
    ForkPoint,
    Header,
    InputId,
    Json,
    JsonObject,
    LlmNode,
    Record,
    RecordUid,
    RewindAsked,
    RunId,
    Started,
)
from agentrewind.run_files import COPY, open_snapshots
from agentrewind.run_store import Run, RunStore
from agentrewind.timeline import Timeline
from agentrewind.workspace.restore import restore_into


@dataclass(frozen=True, slots=True, kw_only=True)
class Edits:
    """What is different from the node on. Empty fields change nothing.

    Attributes:
        memory: a note that the agent is given, as after a rewind of its own.
        answer: what the model is taken to have answered at the node: text, or an object with `content` and
            `tool_calls`; nothing is asked at the node then.
        settings: the harness's settings that differ; `config` is added to.
    """

    memory: str = ""
    answer: Json = None
    model: str | None = None
    system_prompt: str | None = None
    settings: JsonObject = field(default_factory=dict)


def make_fork(run: Run, node: str, edits: Edits, *, home: Path, clock: Clock) -> Run:
    """The new run, whole on disk with its copy of the files; nothing has been started yet.

    Raises:
        UsageError: the node is no answer of a model, or an edit does not fit it.
        DamagedError: the log has a gap before the node, or its files cannot be read.
    """
    timeline = run.timeline()
    target = checkpoint(timeline, node)
    if edits.memory and edits.answer is not None:
        raise UsageError("an edited answer and a memory exclude each other: the memory is for asking again")
    commit = target.metadata.workspaces[MAIN_WORKSPACE].before_commit
    assert commit is not None
    # an answer that cannot be one is refused before anything is written
    replaced = None if edits.answer is None else edited(target, edits.answer)
    with open_snapshots(timeline, home) as store:
        store.commit(commit)  # nothing is made where the files did not come along with an import
        made = _write_log(run, timeline, target, replaced, edits, home=home, clock=clock)
        # the parent may be dropped one day: the fork keeps what it stands on by a ref of its own
        store.set_ref(f"refs/agentrewind/{made.run_id}/fork", commit)
        report = restore_into(store, commit, made.directory / COPY)
    if not report.verified:
        raise DamagedError("the copy of the workspace could not be verified; the fork was not started")
    return made


def checkpoint(timeline: Timeline, node: str) -> LlmNode:
    """The answer at which a fork or a person's rewind sets in.

    Raises UsageError with the nearest one that would do, DamagedError where the log is not whole up to it.
    """
    refuse_trajectory(timeline)
    found = timeline.node(node)
    if not isinstance(found, LlmNode):
        near = found.parent or "none"
        raise UsageError(
            f"{node} is a tool call; go on from the answer that asked for it ({near}), or from another answer"
        )
    if not timeline.is_checkpoint(found.record_uid):
        raise UsageError(
            f"{node} has no whole snapshot before it, or failed; `agentrewind log {timeline.header.run_id}` "
            "shows the others"
        )
    if gap := timeline.gap_on_path(until=found.record_uid):
        raise DamagedError(f"the log is damaged before {node}: {gap}")
    return found


def _write_log(
    run: Run,
    timeline: Timeline,
    target: LlmNode,
    replaced: LlmNode | None,
    edits: Edits,
    *,
    home: Path,
    clock: Clock,
) -> Run:
    last = timeline.segment_of(target.record_uid)
    run_id = RunId(new_run_id(clock))
    parent = ForkPoint(run_id=timeline.header.run_id, segment=last, record_uid=target.record_uid)
    options = _options(timeline, edits)
    headers = {
        number: _header(header, run_id, parent, options, edits, home=home, at=clock.now())
        for number, header in timeline.headers.items()
        if number <= last
    }
    made = RunStore(home).create(headers[0])
    if (run.directory / "blobs").is_dir():
        shutil.copytree(run.directory / "blobs", made.directory / "blobs")
    identities = _identities(timeline, options)
    for number in range(last + 1):
        if number:
            _open_segment(run, made, headers[number])
        kept = _until(timeline.records(number), target.record_uid if number == last else None)
        with made.writer(number) as writer:
            for record in kept:
                chosen = replaced if replaced is not None and _is(record, target) else record
                writer.append(_identified(chosen, identities), durable=False)
            if number == last and replaced is None:
                writer.append(_asked(target, edits, last + 1, timeline, clock), durable=True)
    return made


def _open_segment(run: Run, made: Run, header: Header) -> None:
    made.create_segment(header)
    if run.rewind_path(header.segment).exists():
        made.write_rewind(header.segment, {**run.read_rewind(header.segment), "run_id": made.run_id})


def _asked(target: LlmNode, edits: Edits, segment: int, timeline: Timeline, clock: Clock) -> RewindAsked:
    return RewindAsked(
        segment=segment,
        target=target.record_uid,
        memory=edits.memory,
        reason=f"fork of {timeline.header.run_id}",
        asked_by=None,
        by="person",
        at=clock.now(),
    )


def _header(
    header: Header,
    run_id: RunId,
    parent: ForkPoint,
    options: RunOptions,
    edits: Edits,
    *,
    home: Path,
    at: str,
) -> Header:
    declaration = header.workspaces[MAIN_WORKSPACE]
    copy = str(home / "runs" / run_id / COPY)
    own = header.forked_from
    return replace(
        header,
        run_id=run_id,
        created_at=at if header.segment == 0 else header.created_at,
        forked_from=parent if header.segment == 0 else own and replace(own, run_id=run_id),
        workspaces={**header.workspaces, MAIN_WORKSPACE: replace(declaration, copy=copy)},
        model=edits.model or header.model,
        options=options.to_json(),
    )


def _options(timeline: Timeline, edits: Edits) -> RunOptions:
    header = timeline.header
    options = RunOptions.from_json(header.options)
    if header.harness is None and (edits.model or edits.system_prompt or edits.settings):
        raise UsageError("this run's agent is a program of its own, which decides its model and its prompts")
    settings = {**options.settings, **edits.settings}
    config = [*_list(options.settings.get("config")), *_list(edits.settings.get("config"))]
    declared = set(options.declared)
    if edits.system_prompt is not None:
        declared.add("system")
        if header.harness == "mini-swe-agent":
            config.append(f"agent.system_template={edits.system_prompt}")
        else:
            settings["instructions"] = edits.system_prompt
    if config:
        settings["config"] = config
    if edits.settings:
        declared |= {"system", "tools"}
    if edits.model is not None:
        declared.add("model")
    return replace(options, settings=settings, declared=frozenset(declared))


def _identities(timeline: Timeline, options: RunOptions) -> Mapping[RecordUid, tuple[InputId, str]]:
    """What the kept requests are compared by, where a fork declares a part of them changed."""
    if not options.declared:
        return {}
    conversations = Conversations(unread=options.declared)
    found = {}
    for uid, node in timeline.nodes.items():
        if isinstance(node, LlmNode):
            request = conversations.identify(
                model=node.model, messages=timeline.messages(uid), tools=node.tools
            )
            found[uid] = (request.input_id, request.conversation)
            conversations.remember(request, uid)
    return found


def _identified(record: Record, identities: Mapping[RecordUid, tuple[InputId, str]]) -> Record:
    if isinstance(record, LlmNode | Started) and record.record_uid in identities:
        input_id, conversation = identities[record.record_uid]
        if isinstance(record, Started):
            return replace(record, input_id=input_id)
        return replace(record, input_id=input_id, conversation=conversation)
    return record


def _until(records: tuple[Record, ...], last: RecordUid | None) -> Iterator[Record]:
    """The records up to and with the node, all of them where none is named."""
    for record in records:
        if isinstance(record, Header):
            continue
        yield record
        if isinstance(record, LlmNode) and record.record_uid == last:
            return


def _is(record: Record, node: LlmNode) -> bool:
    return isinstance(record, LlmNode) and record.record_uid == node.record_uid


def _list(value: Json) -> list[Json]:
    return value if isinstance(value, list) else []
