"""Calls that are under way, and the nodes that are made of them when they end."""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import dataclass
from typing import Protocol

from agentrewind.records import (
    MAIN_WORKSPACE,
    CommitId,
    ErrorRecord,
    InputId,
    Json,
    JsonObject,
    LlmNode,
    MessageList,
    Metadata,
    RecordUid,
    ToolNode,
    WorkspaceSpan,
)

SHOWN_CHANGES = 200
"""Longest `diff_summary` that a record holds; `diff_total` tells the whole number."""


class Captured(Protocol):
    """A snapshot that was taken."""

    @property
    def commit(self) -> CommitId: ...
    @property
    def partial(self) -> tuple[str, ...]: ...
    @property
    def left_out(self) -> tuple[str, ...]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Shot:
    """A snapshot and how long it took to take and to compare (microseconds)."""

    captured: Captured
    took_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LlmTicket:
    """An LLM call that is under way; `before` is the snapshot that is taken meanwhile."""

    record_uid: RecordUid
    input_id: InputId
    attempt: int
    created_at: str
    began: float
    before: Future[Shot]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolTicket:
    """A tool call that is under way."""

    record_uid: RecordUid
    input_id: InputId
    tool_name: str
    tool_call_id: str | None
    arguments: Json
    parent: RecordUid | None
    ordinal: int
    created_at: str
    began: float
    before: Captured
    snapshot_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LlmFacts:
    """What the node of an LLM call says of its request."""

    conversation: str
    client: str
    model: str
    parameters: JsonObject
    messages: MessageList
    tools: Json


def span_before(taken: Captured) -> WorkspaceSpan:
    """The span of a node whose after-commit is not known yet."""
    return WorkspaceSpan(
        before_commit=taken.commit, partial=taken.partial, left_out=taken.left_out[:SHOWN_CHANGES]
    )


def llm_node(
    record_uid: RecordUid,
    input_id: InputId,
    facts: LlmFacts,
    *,
    metadata: Metadata,
    output: JsonObject | None = None,
    error: ErrorRecord | None = None,
) -> LlmNode:
    return LlmNode(
        record_uid=record_uid,
        input_id=input_id,
        conversation=facts.conversation,
        client=facts.client,
        model=facts.model,
        parameters=facts.parameters,
        messages=facts.messages,
        tools=facts.tools,
        output=output,
        error=error,
        metadata=metadata,
    )


def tool_node(ticket: ToolTicket, *, output: Json, error: ErrorRecord | None, latency: int) -> ToolNode:
    return ToolNode(
        record_uid=ticket.record_uid,
        input_id=ticket.input_id,
        tool_name=ticket.tool_name,
        tool_call_id=ticket.tool_call_id,
        arguments=ticket.arguments,
        parent=ticket.parent,
        ordinal=ticket.ordinal,
        output=output,
        error=error,
        interrupted=False,
        metadata=Metadata(
            created_at=ticket.created_at,
            latency_ms=latency,
            workspaces={MAIN_WORKSPACE: span_before(ticket.before)},
            snapshot_us=ticket.snapshot_us,
        ),
    )
