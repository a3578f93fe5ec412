"""Matches what the harness asks on replay with what the log holds.

Pure: it decides, others act. LLM calls are matched by their canonical request, the Nth equal request with
the Nth equal record; tool calls by the LLM node that asked for them, their call id, and their ordinal.
Nothing is matched by arrival, and nothing is ever let through live that the log should have answered.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from agentrewind.difference import first_difference
from agentrewind.identity import Request
from agentrewind.records import InputId, Json, JsonObject, LlmNode, Node, RecordUid, Started, ToolNode


class Mode(StrEnum):
    """What follows the recorded nodes: one call at a checkpoint, anything, or nothing."""

    REWIND = "rewind"
    RESUME = "resume"
    REPLAY = "replay"


class OnDivergence(StrEnum):
    """What to do when a request differs from its record."""

    STOP = "stop"
    POSITION = "position"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeLlm:
    """Answer from the log. `warning` tells what differed when the match is by position."""

    node: LlmNode
    warning: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeTool:
    """Answer from the log."""

    node: ToolNode
    warning: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Interrupted:
    """The call was begun before a crash and its outcome is unknown: it must not run again."""

    started: Started


@dataclass(frozen=True, slots=True, kw_only=True)
class Live:
    """Make the call. `checkpoint` is the target node where this is the one call of a rewind."""

    checkpoint: LlmNode | None = None
    warning: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Refuse:
    """Stop: the log does not hold what was asked for."""

    record_uid: RecordUid | None
    difference: str


LlmDecision: TypeAlias = ServeLlm | Live | Refuse
ToolDecision: TypeAlias = ServeTool | Interrupted | Live | Refuse

ToolKey: TypeAlias = tuple[RecordUid | None, str | None, int]


class Replayer:
    """Decides for every call of one agent process. The caller holds a lock around each decision.

    Args:
        path: the recorded nodes to serve, in order (the retained prefix).
        unfinished: calls that were begun after them and never finished.
        checkpoint: the node whose call is made live after the prefix, in mode `rewind`.
        messages_of: a node's full message list, asked for only to explain a difference.
    """

    def __init__(
        self,
        *,
        path: Sequence[Node],
        unfinished: Iterable[Started] = (),
        checkpoint: LlmNode | None = None,
        mode: Mode,
        on_divergence: OnDivergence = OnDivergence.STOP,
        messages_of: Callable[[RecordUid], Sequence[JsonObject]],
    ) -> None:
        self._mode = mode
        self._position = on_divergence is OnDivergence.POSITION
        self._checkpoint = checkpoint
        self._messages_of = messages_of
        self._pending: dict[RecordUid, LlmNode] = {}
        self._by_request: dict[InputId, deque[LlmNode]] = {}
        self._tools: dict[ToolKey, ToolNode] = {}
        self._interrupted: dict[ToolKey, Started] = {}
        self._talks: dict[str, str] = {}
        self._failing: tuple[LlmNode, int] | None = None
        self.served = 0
        for node in path:
            match node:
                case LlmNode():
                    self._pending[node.record_uid] = node
                    self._by_request.setdefault(node.input_id, deque()).append(node)
                case ToolNode():
                    self._tools[node.parent, node.tool_call_id, node.ordinal] = node
        for started in unfinished:
            if started.tool_name is not None:
                self._interrupted[started.parent, started.tool_call_id, started.ordinal] = started

    @property
    def exhausted(self) -> bool:
        """No recorded LLM call waits to be served, and no checkpoint to be reached."""
        return not self._pending and self._checkpoint is None

    @property
    def remaining(self) -> int:
        """Recorded LLM calls that have not been served yet."""
        return len(self._pending)

    def llm(self, request: Request) -> LlmDecision:
        """Decide an LLM call. A node that failed is served as often as it was attempted."""
        if (node := self._tried_again(request)) is not None:
            return ServeLlm(node=node)
        if (node := self._exact(request)) is not None:
            return ServeLlm(node=self._serve(node, request))
        if self._pending:
            return self._differs(self._expected(request), request)
        if self._checkpoint is not None:
            return self._at_checkpoint(self._checkpoint, request)
        if self._mode is Mode.REPLAY:
            return Refuse(record_uid=None, difference="the harness made a call that the run never made")
        return Live()

    def tool(self, key: ToolKey, *, name: str, input_id: InputId, arguments: Json) -> ToolDecision:
        """Decide a tool call."""
        self._failing = None
        if (node := self._tools.get(key)) is not None:
            return self._serve_tool(key, node, name=name, input_id=input_id, arguments=arguments)
        if self._mode is not Mode.REPLAY and (started := self._interrupted.get(key)) is not None:
            return self._interrupt(key, started, name=name, input_id=input_id)
        if self.exhausted and self._mode is not Mode.REPLAY:
            return Live()
        if self._mode is Mode.REPLAY and not self._pending:
            return Refuse(
                record_uid=None, difference=f"the harness called {name}, which the run never did there"
            )
        expected = next(iter(self._pending), self._checkpoint.record_uid if self._checkpoint else None)
        return Refuse(
            record_uid=expected,
            difference=f"the log goes on with {expected}, the harness called the tool {name} instead",
        )

    def _exact(self, request: Request) -> LlmNode | None:
        waiting = self._by_request.get(request.input_id)
        return waiting[0] if waiting else None

    def _tried_again(self, request: Request) -> LlmNode | None:
        """The node that failed last, while the harness tries as often as it did when it was recorded."""
        failing, self._failing = self._failing, None
        if failing is None or failing[1] < 1 or failing[0].input_id != request.input_id:
            return None
        self._failing = failing[0], failing[1] - 1
        return failing[0]

    def _expected(self, request: Request) -> LlmNode:
        """The recorded call that stands where this one was made: the next of its conversation."""
        talk = self._talks.get(request.conversation, request.conversation)
        for node in self._pending.values():
            if node.conversation == talk:
                return node
        taken = frozenset(self._talks.values())
        free = (node for node in self._pending.values() if node.conversation not in taken)
        return next(free, next(iter(self._pending.values())))

    def _serve(self, node: LlmNode, request: Request) -> LlmNode:
        del self._pending[node.record_uid]
        self._by_request[node.input_id].remove(node)
        self._talks[request.conversation] = node.conversation
        if node.error is not None:
            self._failing = node, node.metadata.attempts - 1
        self.served += 1
        return node

    def _interrupt(self, key: ToolKey, started: Started, *, name: str, input_id: InputId) -> ToolDecision:
        if started.input_id != input_id and not self._position:
            return Refuse(
                record_uid=started.record_uid,
                difference=f"a call of {started.tool_name} was interrupted here, the harness called {name}"
                + ("" if started.tool_name != name else " with other arguments"),
            )
        del self._interrupted[key]
        return Interrupted(started=started)

    def _serve_tool(
        self, key: ToolKey, node: ToolNode, *, name: str, input_id: InputId, arguments: Json
    ) -> ToolDecision:
        warning = None
        if node.input_id != input_id:
            warning = first_difference(
                {"tool_name": node.tool_name, "arguments": node.arguments},
                {"tool_name": name, "arguments": arguments},
            )
            if not self._position:
                return Refuse(record_uid=node.record_uid, difference=warning)
        del self._tools[key]
        self.served += 1
        return ServeTool(node=node, warning=warning)

    def _differs(self, node: LlmNode, request: Request) -> LlmDecision:
        difference = self._explain(node, request)
        if not self._position:
            return Refuse(record_uid=node.record_uid, difference=difference)
        return ServeLlm(node=self._serve(node, request), warning=difference)

    def _at_checkpoint(self, checkpoint: LlmNode, request: Request) -> LlmDecision:
        warning = None
        if checkpoint.input_id != request.input_id:
            warning = self._explain(checkpoint, request)
            # a sub-agent that goes on must not be taken for the agent that went back
            other = self._talks.get(request.conversation, checkpoint.conversation) != checkpoint.conversation
            if other or not self._position:
                return Refuse(record_uid=checkpoint.record_uid, difference=warning)
        self._checkpoint = None
        return Live(checkpoint=checkpoint, warning=warning)

    def _explain(self, node: LlmNode, request: Request) -> str:
        recorded: JsonObject = {
            "model": node.model,
            "messages": list(self._messages_of(node.record_uid)),
            "tools": node.tools,
        }
        asked: JsonObject = {
            "model": request.model,
            "messages": list(request.messages),
            "tools": request.tools,
        }
        return first_difference(recorded, asked)
