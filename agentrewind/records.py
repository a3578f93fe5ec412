"""The values that a log holds: header, nodes and events, frozen and free of any file format.

Field names follow the paper's Figure 9 where it has them; the bytes are the codec's business.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NewType, TypeAlias

FORMAT = 1
"""The format number that this version writes; lower ones are read forever."""

RunId = NewType("RunId", str)
RecordUid = NewType("RecordUid", str)
InputId = NewType("InputId", str)
CommitId = NewType("CommitId", str)

Json: TypeAlias = "bool | int | float | str | bytes | list[Json] | dict[str, Json] | None"
"""What a record may carry: JSON, and bytes that are no UTF-8."""

JsonObject: TypeAlias = "dict[str, Json]"

MAIN_WORKSPACE = "ws0"


@dataclass(frozen=True, slots=True, kw_only=True)
class ForkPoint:
    """Where a segment leaves its parent: before `record_uid`, or after it when `inclusive`."""

    run_id: RunId
    segment: int
    record_uid: RecordUid | None
    inclusive: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkspaceDeclaration:
    """A workspace of the run: its absolute root and the path rules in force, as plain JSON.

    With `copy` the files lie in that folder, and the agent sees them at `root`: a fork touches nothing there.
    """

    root: str
    policy: JsonObject
    copy: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """First line of a segment. `options` is all that a fresh process needs to start the same agent."""

    format: int
    run_id: RunId
    segment: int
    forked_from: ForkPoint | None
    created_at: str
    workspaces: Mapping[str, WorkspaceDeclaration]
    harness: str | None
    model: str | None
    versions: Mapping[str, str]
    options: JsonObject = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One path that differs between two snapshots: status A(dded), M(odified), D(eleted), T(ype)."""

    status: str
    path: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkspaceSpan:
    """The snapshots around a node.

    Attributes:
        partial: paths that could not be captured, each with the reason; such a node is no checkpoint.
        left_out: paths that a rule leaves out (excluded, too large, special files), each with the reason; a
            restore leaves them as they are.
    """

    before_commit: CommitId | None
    after_commit: CommitId | None = None
    changed: bool | None = None
    diff_summary: tuple[Change, ...] = ()
    diff_total: int = 0
    partial: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorRecord:
    """An exception as it can be raised again: `module:Qualified.Name`, its text, its plain attributes."""

    type: str
    message: str
    args: tuple[Json, ...] = ()
    attributes: JsonObject = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageList:
    """A request's messages by reference: the first `keep` of node `base`'s, then `append`."""

    base: RecordUid | None
    keep: int
    append: tuple[JsonObject, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Metadata:
    """When and how long (milliseconds), how many attempts, and the snapshots around the node.

    Attributes:
        snapshot_us: how long the snapshot before the node took (microseconds); None where that is not known.
    """

    created_at: str
    latency_ms: int
    attempts: int = 1
    workspaces: Mapping[str, WorkspaceSpan] = field(default_factory=dict)
    external: tuple[JsonObject, ...] = ()
    snapshot_us: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LlmNode:
    """One LLM call: the harness's own request (no rewind memory in it) and the provider's answer."""

    record_uid: RecordUid
    input_id: InputId
    conversation: str
    client: str
    model: str
    parameters: JsonObject
    messages: MessageList
    tools: Json
    output: JsonObject | None
    error: ErrorRecord | None
    metadata: Metadata


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolNode:
    """One tool call. `parent` is the LLM node that asked for it, `ordinal` its place among equals."""

    record_uid: RecordUid
    input_id: InputId
    tool_name: str
    tool_call_id: str | None
    arguments: Json
    parent: RecordUid | None
    ordinal: int
    output: Json
    error: ErrorRecord | None
    interrupted: bool
    metadata: Metadata


Node: TypeAlias = LlmNode | ToolNode


class NodeKind(StrEnum):
    """The two kinds of node."""

    LLM = "llm"
    TOOL = "tool"


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """A call is about to be made; durable before it is. `processes` lists live (pid, start tick)."""

    record_uid: RecordUid
    node_kind: NodeKind
    input_id: InputId
    at: str
    tool_name: str | None = None
    tool_call_id: str | None = None
    parent: RecordUid | None = None
    ordinal: int = 0
    attempt: int = 1
    processes: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptFailed:
    """One attempt of an LLM node ended in an error; the node itself may still succeed."""

    record_uid: RecordUid
    attempt: int
    error: ErrorRecord
    at: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotTaken:
    """The state after a node, known when the next one begins; folded into the node on reading."""

    record_uid: RecordUid
    workspaces: Mapping[str, WorkspaceSpan]
    at: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OutsideChange:
    """The workspace changed while no tool call ran, after node `after` (None: before the first)."""

    after: RecordUid | None
    workspaces: Mapping[str, WorkspaceSpan]
    at: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """The verdict on a submission made by tool node `record_uid`; served from the log on replay."""

    record_uid: RecordUid
    accepted: bool
    exit_code: int | None
    criterion: str
    feedback: str
    repeated: int
    at: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RewindAsked:
    """The decision to go back; from here on the rewind happens exactly once, whatever is killed.

    `segment` is the number of the segment that the rewind will open. `by` is "agent" or "person".
    """

    segment: int
    target: RecordUid
    memory: str
    reason: str
    asked_by: RecordUid | None
    by: str
    at: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SafetySnapshot:
    """The state just before a restore. `segment`: the rewind's segment, or None for a plain restore."""

    segment: int | None
    workspaces: Mapping[str, WorkspaceSpan]
    at: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RewindDone:
    """Files and context are at the target; first event of the segment that the rewind opened."""

    segment: int
    target: RecordUid
    report: JsonObject
    at: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored:
    """A restore by `undo`, by a person, or without context rewind; `report` as the command prints it."""

    record_uid: RecordUid | None
    commit: CommitId
    report: JsonObject
    by: str
    at: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessesEnded:
    """Processes that were ended (or left running) before files moved."""

    ended: tuple[str, ...]
    kept: tuple[str, ...]
    at: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Resumed:
    """A process took the segment up again after a crash, a failure or a person's stop."""

    at: str
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """The agent process ended by itself: accepted, rejected, stopped or error, and why."""

    state: str
    detail: str
    at: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """Anything worth telling that is none of the above; `topic` is one word, `data` plain JSON."""

    topic: str
    text: str
    at: str
    data: JsonObject = field(default_factory=dict)


Event: TypeAlias = (
    Started
    | AttemptFailed
    | SnapshotTaken
    | OutsideChange
    | Submission
    | RewindAsked
    | SafetySnapshot
    | RewindDone
    | Restored
    | ProcessesEnded
    | Resumed
    | Finished
    | Note
)

Record: TypeAlias = Header | Node | Event
