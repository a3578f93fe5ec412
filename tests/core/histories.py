"""Recorded histories for tests of the replayer: several conversations, prompts alike, ids used again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from hypothesis import strategies as st

from agentrewind.identity import Conversations, Request, tool_input_id
from agentrewind.records import (
    ErrorRecord,
    Json,
    JsonObject,
    LlmNode,
    MessageList,
    Metadata,
    Node,
    NodeKind,
    RecordUid,
    Started,
    ToolNode,
)
from agentrewind.replayer import Beyond, Mode, OnDivergence, Replayer, ToolDecision, ToolKey

AT = "2026-01-31T08:00:00.123Z"
OFFERED: Json = [{"type": "function", "function": {"name": "bash"}}]
FAILED = ErrorRecord(type="builtins:RuntimeError", message="overloaded", args=("overloaded",))


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """An LLM call as the harness made it, and what was recorded of it."""

    request: Request
    node: LlmNode


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """What a run asked and what its log holds, in order."""

    path: tuple[Node, ...]
    asked: tuple[Asked, ...]
    tools: tuple[ToolNode, ...]
    unfinished: tuple[Started, ...] = ()

    @property
    def messages(self) -> Mapping[RecordUid, Sequence[JsonObject]]:
        """The full message list of every LLM node."""
        return {each.node.record_uid: each.request.messages for each in self.asked}

    def replayer(
        self,
        mode: Mode = Mode.RESUME,
        *,
        on_divergence: OnDivergence = OnDivergence.STOP,
        checkpoint: Asked | None = None,
    ) -> Replayer:
        """A replayer of all of it, or of what stands before `checkpoint`."""
        path = self.path
        if checkpoint is not None:
            path = tuple(node for node in path if node.record_uid < checkpoint.node.record_uid)
        messages = self.messages
        return Replayer(
            path=path,
            beyond=Beyond(unfinished=self.unfinished),
            checkpoint=checkpoint.node if checkpoint else None,
            mode=mode,
            on_divergence=on_divergence,
            messages_of=lambda uid: messages[uid],
        )


def key_of(node: ToolNode | Started) -> ToolKey:
    return (node.parent, node.tool_call_id, node.ordinal)


def ask_tool(replayer: Replayer, node: ToolNode, *, arguments: Json = None) -> ToolDecision:
    """Ask for this very call again, or for one with other arguments in its place."""
    asked = node.arguments if arguments is None else arguments
    return replayer.tool(
        key_of(node),
        name=node.tool_name,
        input_id=tool_input_id(node.tool_name, asked),
        arguments=asked,
    )


class Book:
    """Builds a history call by call, with ascending uids."""

    def __init__(self) -> None:
        self._number = 0
        self._path: list[Node] = []
        self._asked: list[Asked] = []
        self._unfinished: list[Started] = []

    def llm(
        self,
        messages: Sequence[JsonObject],
        *,
        model: str = "m",
        error: ErrorRecord | None = None,
        attempts: int = 1,
    ) -> Asked:
        request = identified(messages, model=model)
        node = LlmNode(
            record_uid=self._uid(),
            input_id=request.input_id,
            conversation=request.conversation,
            client="plain",
            model=model,
            parameters={},
            messages=MessageList(base=None, keep=0, append=request.messages),
            tools=OFFERED,
            output=None if error else {"content": f"answer {self._number}", "tool_calls": []},
            error=error,
            metadata=Metadata(created_at=AT, latency_ms=1, attempts=attempts),
        )
        asked = Asked(request=request, node=node)
        self._path.append(node)
        self._asked.append(asked)
        return asked

    def tool(
        self, parent: LlmNode | None, call_id: str | None, arguments: Json, *, ordinal: int = 0
    ) -> ToolNode:
        node = ToolNode(
            record_uid=self._uid(),
            input_id=tool_input_id("bash", arguments),
            tool_name="bash",
            tool_call_id=call_id,
            arguments=arguments,
            parent=parent.record_uid if parent else None,
            ordinal=ordinal,
            output=f"result {self._number}",
            error=None,
            interrupted=False,
            metadata=Metadata(created_at=AT, latency_ms=1),
        )
        self._path.append(node)
        return node

    def begun(
        self, parent: LlmNode | None, call_id: str | None, arguments: Json, *, ordinal: int = 0
    ) -> Started:
        """A tool call of which no end was recorded."""
        started = Started(
            record_uid=self._uid(),
            node_kind=NodeKind.TOOL,
            input_id=tool_input_id("bash", arguments),
            at=AT,
            tool_name="bash",
            tool_call_id=call_id,
            parent=parent.record_uid if parent else None,
            ordinal=ordinal,
        )
        self._unfinished.append(started)
        return started

    def history(self) -> History:
        return History(
            path=tuple(self._path),
            asked=tuple(self._asked),
            tools=tuple(node for node in self._path if isinstance(node, ToolNode)),
            unfinished=tuple(self._unfinished),
        )

    def _uid(self) -> RecordUid:
        self._number += 1
        return RecordUid(f"rec_{self._number:06d}")


def identified(messages: Sequence[JsonObject], *, model: str = "m") -> Request:
    return Conversations().identify(model=model, messages=messages, tools=OFFERED)


def changed(request: Request, what: str) -> Request:
    """The request with another last message, tool list or model, or with one message more."""
    conversations = Conversations()
    messages, offered, model = [*request.messages], request.tools, request.model
    match what:
        case "message":
            messages[-1] = {**messages[-1], "content": "what was never said"}
        case "tools":
            offered = None
        case "model":
            model += "-turbo"
        case _:
            messages.append({"role": "user", "content": "one more"})
    found = conversations.identify(model=model, messages=messages, tools=offered)
    # what differs in the first message would also be another conversation: here it is only another request
    return replace(found, conversation=request.conversation)


CHANGES = ("message", "tools", "model", "more")

_prompts = st.sampled_from(["mend the build", "again", "look"])
_call_ids = st.sampled_from(["call_1", "call_2", None])
_commands = st.sampled_from(["ls", "make", "cat a"])


@st.composite
def histories(draw: st.DrawFn, *, interrupted: bool = False) -> History:
    """Conversations recorded side by side; prompts, tool call ids and commands come from small sets."""
    book = Book()
    count = draw(st.integers(1, 3))
    talks: list[list[JsonObject]] = [
        [
            {"role": "system", "content": f"agent {draw(st.integers(0, 1))}"},
            {"role": "user", "content": draw(_prompts)},
        ]
        for _ in range(count)
    ]
    last: LlmNode | None = None
    for _ in range(draw(st.integers(1, 7))):
        talk = talks[draw(st.integers(0, count - 1))]
        asked = book.llm(talk)
        last = asked.node
        ordinals: dict[str | None, int] = {}
        for _ in range(draw(st.integers(0, 3))):
            call_id = draw(_call_ids)
            ordinal = ordinals.get(call_id, 0)
            ordinals[call_id] = ordinal + 1
            book.tool(asked.node, call_id, {"command": draw(_commands)}, ordinal=ordinal)
        # a harness may repeat itself, so the same request comes again and is answered anew
        if draw(st.booleans()):
            talk.append({"role": "assistant", "content": draw(_prompts)})
            talk.append({"role": "user", "content": draw(_prompts)})
    if interrupted:
        for number in range(draw(st.integers(1, 2))):
            book.begun(last, f"lost_{number}", {"command": draw(_commands)})
    return book.history()
