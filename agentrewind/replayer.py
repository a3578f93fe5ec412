"""Matches what the harness asks on replay with what the log holds.

Pure: it decides, others act. LLM calls are matched by their canonical request, the Nth equal request with
the Nth equal record; tool calls by the LLM node that asked for them, their call id, and their ordinal.
Nothing is matched by arrival, and nothing is ever let through live that the log should have answered: a
conversation that has heard all that the log holds for it waits for the others.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from agentrewind.difference import first_difference
from agentrewind.identity import Request
from agentrewind.records import InputId, Json, JsonObject, LlmNode, Node, RecordUid, ToolNode
from agentrewind.replay_decisions import (
    Beyond,
    Interrupted,
    Live,
    LlmDecision,
    Mode,
    OnDivergence,
    Refuse,
    ServeLlm,
    ServeTool,
    ToolDecision,
    ToolKey,
    Wait,
)

__all__ = [
    "Beyond",
    "Interrupted",
    "Live",
    "LlmDecision",
    "Mode",
    "OnDivergence",
    "Refuse",
    "Replayer",
    "ServeLlm",
    "ServeTool",
    "ToolDecision",
    "ToolKey",
    "Wait",
]

NOTHING_BEYOND = Beyond()


class Replayer:
    """Decides for every call of one agent process. The caller holds a lock around each decision.

    Args:
        path: the recorded nodes to serve, in order (the retained prefix).
        checkpoint: the node whose call is made live after the prefix, in mode `rewind`.
        messages_of: a node's full message list, asked for only to explain a difference.
    """

    def __init__(
        self,
        *,
        path: Sequence[Node],
        beyond: Beyond = NOTHING_BEYOND,
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
        self._interrupted: dict[ToolKey, Interrupted] = {}
        self._later = beyond.later
        self._failed = {node.input_id: node for node in beyond.failed}
        self._talks: dict[str, str] = {}
        self._talk_of: dict[RecordUid, str] = {}
        self._failing: dict[str, tuple[LlmNode, int]] = {}
        self.served = 0
        for node in path:
            match node:
                case LlmNode():
                    self._pending[node.record_uid] = node
                    self._by_request.setdefault(node.input_id, deque()).append(node)
                case ToolNode():
                    self._tools[node.parent, node.tool_call_id, node.ordinal] = node
        for lost, ended in ((beyond.unfinished, False), (beyond.cut, True)):
            for started in lost:
                if started.tool_name is not None:
                    key = (started.parent, started.tool_call_id, started.ordinal)
                    self._interrupted[key] = Interrupted(started=started, ended=ended)

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
        if not self.exhausted:
            return self._before_the_end(request)
        if (node := self._failed.pop(request.input_id, None)) is not None:
            return ServeLlm(node=self._fail(node, request))
        if self._mode is Mode.REPLAY:
            beyond = Refuse(record_uid=None, difference="the harness made a call that the run never made")
            # it was under way when the run ended, and came to nothing then either
            return Wait(otherwise=beyond) if request.input_id in self._later else beyond
        return Live()

    def tool(self, key: ToolKey, *, name: str, input_id: InputId, arguments: Json) -> ToolDecision:
        """Decide a tool call."""
        parent = None if key[0] is None else self._talk_of.get(key[0])
        if parent is not None:
            self._failing.pop(parent, None)
        if (node := self._tools.get(key)) is not None:
            return self._serve_tool(key, node, name=name, input_id=input_id, arguments=arguments)
        if self._mode is not Mode.REPLAY and key in self._interrupted:
            return self._interrupt(key, name=name, input_id=input_id)
        if self.exhausted and self._mode is not Mode.REPLAY:
            return Live()
        if self._mode is Mode.REPLAY and not self._pending:
            beyond = f"the harness called {name}, which the run never did there"
            refused = Refuse(record_uid=None, difference=beyond)
            return Wait(otherwise=refused) if key in self._interrupted else refused
        expected = next(iter(self._pending), self._checkpoint.record_uid if self._checkpoint else None)
        refused = Refuse(
            record_uid=expected,
            difference=f"the log goes on with {expected}, the harness called the tool {name} instead",
        )
        # what an answer asks for after all that the log holds of its conversation
        return Wait(otherwise=refused) if parent is not None and self._heard_all(parent) else refused

    def _before_the_end(self, request: Request) -> LlmDecision:
        """Decide a call that no record fits, while there are records to serve or a checkpoint to reach."""
        talk, checkpoint = self._talks.get(request.conversation), self._checkpoint
        if checkpoint is not None and checkpoint.input_id == request.input_id and self._at_checkpoint():
            return self._others_first() if self._pending else self._reach(checkpoint)
        if self._may_be_new(request) if talk is None else self._heard_all(talk):
            return self._others_first()
        node = self._expected(request)
        difference = self._explain(node, request)
        if not self._position:
            return Refuse(record_uid=node.record_uid, difference=difference)
        if node is not checkpoint:
            return ServeLlm(node=self._serve(node, request), warning=difference)
        return self._others_first() if self._pending else self._reach(checkpoint, warning=difference)

    def _others_first(self) -> Wait:
        missing = next(iter(self._pending), self._checkpoint.record_uid if self._checkpoint else None)
        difference = f"the harness goes on without asking for {missing}, which the log holds before this call"
        return Wait(otherwise=Refuse(record_uid=missing, difference=difference))

    def _at_checkpoint(self) -> bool:
        """Nothing is left to serve to the conversation that goes back."""
        checkpoint = self._checkpoint
        return checkpoint is not None and all(
            node.conversation != checkpoint.conversation for node in self._pending.values()
        )

    def _heard_all(self, talk: str) -> bool:
        """This conversation has been served all that the log holds for it, and is not the one to go back."""
        own = any(node.conversation == talk for node in self._pending.values())
        return not own and (self._checkpoint is None or self._checkpoint.conversation != talk)

    def _may_be_new(self, request: Request) -> bool:
        """A conversation that was not heard of may be one of which the prefix holds nothing.

        It is not where one that the prefix does hold has yet to begin: then that one began otherwise.
        """
        return request.input_id in self._later or next(self._unheard(), None) is None

    def _unheard(self) -> Iterator[LlmNode]:
        """What the log holds next of conversations that have not begun."""
        taken = frozenset(self._talks.values())
        waiting = [*self._pending.values(), *([self._checkpoint] if self._checkpoint else [])]
        return (node for node in waiting if node.conversation not in taken)

    def _exact(self, request: Request) -> LlmNode | None:
        waiting = self._by_request.get(request.input_id)
        return waiting[0] if waiting else None

    def _tried_again(self, request: Request) -> LlmNode | None:
        """The node that failed last, while the harness tries as often as it did when it was recorded."""
        if request.conversation not in self._talks:
            self._failing.clear()  # perhaps the same one, which goes on with another beginning
            return None
        talk = self._talks[request.conversation]
        failing = self._failing.pop(talk, None)
        if failing is None or failing[1] < 1 or failing[0].input_id != request.input_id:
            return None
        self._failing[talk] = failing[0], failing[1] - 1
        return failing[0]

    def _expected(self, request: Request) -> LlmNode:
        """The recorded call that stands where this one was made: the next of its conversation."""
        talk = self._talks.get(request.conversation, request.conversation)
        waiting = [*self._pending.values(), *([self._checkpoint] if self._checkpoint else [])]
        own = (node for node in waiting if node.conversation == talk)
        return next(own, None) or next(self._unheard(), waiting[0])

    def _serve(self, node: LlmNode, request: Request) -> LlmNode:
        del self._pending[node.record_uid]
        self._by_request[node.input_id].remove(node)
        self._talks[request.conversation] = node.conversation
        self._talk_of[node.record_uid] = node.conversation
        if node.error is not None:
            self._failing[node.conversation] = node, node.metadata.attempts - 1
        self.served += 1
        return node

    def _fail(self, node: LlmNode, request: Request) -> LlmNode:
        """A call that came to no node, with the conversation in which it is asked again."""
        talk = self._talks.setdefault(request.conversation, request.conversation)
        failed = replace(node, conversation=talk)
        self._failing[talk] = failed, node.metadata.attempts - 1
        return failed

    def _interrupt(self, key: ToolKey, *, name: str, input_id: InputId) -> ToolDecision:
        found = self._interrupted[key]
        started = found.started
        if started.input_id != input_id and not self._position:
            return Refuse(
                record_uid=started.record_uid,
                difference=f"a call of {started.tool_name} was interrupted here, the harness called {name}"
                + ("" if started.tool_name != name else " with other arguments"),
            )
        del self._interrupted[key]
        return found

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

    def _reach(self, checkpoint: LlmNode, *, warning: str | None = None) -> Live:
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
