"""Records for tests: a builder of small ones, and Hypothesis strategies of any ones."""

from __future__ import annotations

from typing import TypeVar

from hypothesis import strategies as st

from agentrewind.records import (
    FORMAT,
    AttemptFailed,
    Change,
    CommitId,
    ErrorRecord,
    Event,
    Finished,
    ForkPoint,
    Header,
    InputId,
    Json,
    JsonObject,
    LlmNode,
    MessageList,
    Metadata,
    NodeKind,
    Note,
    OutsideChange,
    ProcessesEnded,
    Record,
    RecordUid,
    Restored,
    Resumed,
    RewindAsked,
    RewindDone,
    RunId,
    SafetySnapshot,
    SnapshotTaken,
    Started,
    Submission,
    ToolNode,
    WorkspaceDeclaration,
    WorkspaceSpan,
)

T = TypeVar("T")

AT = "2026-01-31T08:00:00.123Z"
RUN = RunId("20260131-080000-1f3a9c")
MESSAGE: JsonObject = {"role": "user", "content": "go on"}


# --- small ones ---


def uid(number: int) -> RecordUid:
    return RecordUid(f"rec_{number:06d}")


def commit(number: int) -> CommitId:
    return CommitId(f"{number:040x}")


def header(segment: int = 0, *, fork: ForkPoint | None = None, run_id: RunId = RUN) -> Header:
    return Header(
        format=FORMAT,
        run_id=run_id,
        segment=segment,
        forked_from=fork,
        created_at=AT,
        workspaces={"ws0": WorkspaceDeclaration(root="/somewhere", policy={"excluded": [".env*"]})},
        harness="scripted",
        model="scripted/one",
        versions={"agentrewind": "0.1.0"},
    )


def fork_at(number: int | None, *, segment: int = 0, inclusive: bool = False) -> ForkPoint:
    return ForkPoint(
        run_id=RUN,
        segment=segment,
        record_uid=None if number is None else uid(number),
        inclusive=inclusive,
    )


def metadata(before: int | None = 1, *, partial: tuple[str, ...] = ()) -> Metadata:
    spans = {"ws0": WorkspaceSpan(before_commit=None if before is None else commit(before), partial=partial)}
    return Metadata(created_at=AT, latency_ms=12, workspaces=spans)


def llm(
    number: int,
    *,
    base: int | None = None,
    keep: int = 0,
    append: tuple[JsonObject, ...] = (MESSAGE,),
    meta: Metadata | None = None,
    tools: Json = None,
) -> LlmNode:
    return LlmNode(
        record_uid=uid(number),
        input_id=InputId(f"sha256:{number:064x}"),
        conversation="main",
        client="litellm",
        model="scripted/one",
        parameters={"temperature": 0.0},
        messages=MessageList(base=None if base is None else uid(base), keep=keep, append=append),
        tools=tools,
        output={"content": f"answer {number}", "tool_calls": []},
        error=None,
        metadata=meta or metadata(number),
    )


def tool(number: int, *, output: Json = "done", meta: Metadata | None = None) -> ToolNode:
    return ToolNode(
        record_uid=uid(number),
        input_id=InputId(f"sha256:{number:064x}"),
        tool_name="bash",
        tool_call_id=f"call_{number}",
        arguments={"command": f"echo {number}"},
        parent=uid(number - 1) if number > 1 else None,
        ordinal=0,
        output=output,
        error=None,
        interrupted=False,
        metadata=meta or metadata(number),
    )


def started(number: int, kind: NodeKind = NodeKind.LLM) -> Started:
    return Started(record_uid=uid(number), node_kind=kind, input_id=InputId("sha256:00"), at=AT)


def asked(segment: int, target: int, *, memory: str = "", by: str = "agent") -> RewindAsked:
    return RewindAsked(
        segment=segment,
        target=uid(target),
        memory=memory or f"lesson {segment}",
        reason="a dead end",
        asked_by=None,
        by=by,
        at=AT,
    )


def done(segment: int, target: int) -> RewindDone:
    return RewindDone(segment=segment, target=uid(target), report={"created": []}, at=AT)


def submission(number: int, *, accepted: bool = False) -> Submission:
    return Submission(
        record_uid=uid(number),
        accepted=accepted,
        exit_code=0 if accepted else 1,
        criterion="C1",
        feedback="missing index",
        repeated=1,
        at=AT,
    )


def finished(state: str) -> Finished:
    return Finished(state=state, detail="as told", at=AT)


# --- any ones ---


def same(left: object, right: object) -> bool:
    """Equality under which NaN equals itself and 0.0 differs from -0.0 and from False."""
    return repr(left) == repr(right) and (left == right or "nan" in repr(left))


texts = st.text(st.characters(), max_size=12)
"""Text with lone surrogates, NULs and line breaks among it."""

_tags = st.sampled_from(["bytes", "str", "float", "int", "pairs", "escaped", "value", "sum", "kind"])
_tagged_texts = st.sampled_from(
    [
        "base64:AAAA",
        "base64:!",
        "nan",
        "-inf",
        "0x10",
        "-0x1",
        "blob:",
        "blob:sha256:" + "0" * 64,
        "",
        "\ud800",
    ]
)

scalars: st.SearchStrategy[Json] = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.sampled_from([2**63 - 1, 2**63, 2**64 - 1, 2**64, -(2**63), -(2**63) - 1, 10**400]),
    st.floats(),
    texts,
    _tagged_texts,
    st.binary(max_size=12),
)

values: st.SearchStrategy[Json] = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.one_of(texts, _tags), inner, max_size=3),
        st.dictionaries(_tags, inner, min_size=1, max_size=1),
    ),
    max_leaves=8,
)

objects: st.SearchStrategy[JsonObject] = st.dictionaries(st.one_of(texts, _tags), values, max_size=3)


def _tuples(items: st.SearchStrategy[T], size: int = 3) -> st.SearchStrategy[tuple[T, ...]]:
    return st.lists(items, max_size=size).map(tuple)


_optional_texts = st.none() | texts
_counts = st.integers(0, 2**40)
_uids = st.one_of(st.integers(1, 2000).map(uid), texts.map(RecordUid))
_optional_uids = st.none() | _uids
_commits = texts.map(CommitId)
_changes = st.builds(Change, status=st.sampled_from("AMDT"), path=st.binary(max_size=12))
_spans = st.builds(
    WorkspaceSpan,
    before_commit=st.none() | _commits,
    after_commit=st.none() | _commits,
    changed=st.none() | st.booleans(),
    diff_summary=_tuples(_changes),
    diff_total=_counts,
    partial=_tuples(texts),
    left_out=_tuples(texts),
)
_workspaces = st.dictionaries(texts, _spans, max_size=2)
_errors = st.builds(ErrorRecord, type=texts, message=texts, args=_tuples(values), attributes=objects)
_metadata = st.builds(
    Metadata,
    created_at=texts,
    latency_ms=_counts,
    attempts=st.integers(1, 9),
    workspaces=_workspaces,
    external=_tuples(objects),
    snapshot_us=st.none() | _counts,
)
_fork_points = st.builds(
    ForkPoint, run_id=texts.map(RunId), segment=_counts, record_uid=_optional_uids, inclusive=st.booleans()
)

headers = st.builds(
    Header,
    format=st.integers(0, FORMAT),
    run_id=texts.map(RunId),
    segment=_counts,
    forked_from=st.none() | _fork_points,
    created_at=texts,
    workspaces=st.dictionaries(
        texts, st.builds(WorkspaceDeclaration, root=texts, policy=objects), max_size=2
    ),
    harness=_optional_texts,
    model=_optional_texts,
    versions=st.dictionaries(texts, texts, max_size=2),
    options=objects,
)

llm_nodes = st.builds(
    LlmNode,
    record_uid=_uids,
    input_id=texts.map(InputId),
    conversation=texts,
    client=texts,
    model=texts,
    parameters=st.dictionaries(
        st.one_of(texts, st.sampled_from(["model", "messages", "tools", "parameters", "arguments"])),
        values,
        max_size=3,
    ),
    messages=st.builds(MessageList, base=_optional_uids, keep=_counts, append=_tuples(objects)),
    tools=values,
    output=st.none() | objects,
    error=st.none() | _errors,
    metadata=_metadata,
)

tool_nodes = st.builds(
    ToolNode,
    record_uid=_uids,
    input_id=texts.map(InputId),
    tool_name=texts,
    tool_call_id=_optional_texts,
    arguments=values,
    parent=_optional_uids,
    ordinal=_counts,
    output=values,
    error=st.none() | _errors,
    interrupted=st.booleans(),
    metadata=_metadata,
)

event_kinds: dict[type, st.SearchStrategy[Event]] = {
    Started: st.builds(
        Started,
        record_uid=_uids,
        node_kind=st.sampled_from(NodeKind),
        input_id=texts.map(InputId),
        at=texts,
        tool_name=_optional_texts,
        tool_call_id=_optional_texts,
        parent=_optional_uids,
        ordinal=_counts,
        attempt=_counts,
        processes=_tuples(st.tuples(_counts, _counts)),
    ),
    AttemptFailed: st.builds(AttemptFailed, record_uid=_uids, attempt=_counts, error=_errors, at=texts),
    SnapshotTaken: st.builds(SnapshotTaken, record_uid=_uids, workspaces=_workspaces, at=texts),
    OutsideChange: st.builds(OutsideChange, after=_optional_uids, workspaces=_workspaces, at=texts),
    Submission: st.builds(
        Submission,
        record_uid=_uids,
        accepted=st.booleans(),
        exit_code=st.none() | st.integers(-64, 255),
        criterion=texts,
        feedback=texts,
        repeated=_counts,
        at=texts,
    ),
    RewindAsked: st.builds(
        RewindAsked,
        segment=_counts,
        target=_uids,
        memory=texts,
        reason=texts,
        asked_by=_optional_uids,
        by=texts,
        at=texts,
    ),
    SafetySnapshot: st.builds(SafetySnapshot, segment=st.none() | _counts, workspaces=_workspaces, at=texts),
    RewindDone: st.builds(RewindDone, segment=_counts, target=_uids, report=objects, at=texts),
    Restored: st.builds(
        Restored, record_uid=_optional_uids, commit=_commits, report=objects, by=texts, at=texts
    ),
    ProcessesEnded: st.builds(ProcessesEnded, ended=_tuples(texts), kept=_tuples(texts), at=texts),
    Resumed: st.builds(Resumed, at=texts, detail=texts),
    Finished: st.builds(Finished, state=texts, detail=texts, at=texts),
    Note: st.builds(Note, topic=texts, text=texts, at=texts, data=objects),
}

events: st.SearchStrategy[Event] = st.one_of(*event_kinds.values())

records: st.SearchStrategy[Record] = st.one_of(headers, llm_nodes, tool_nodes, events)
