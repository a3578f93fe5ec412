"""Decides for every LLM call: live, from the log, or refuse.

A client's wrapper hands the gate a `Call` and a way to perform it; the gate is the only place that lets a
request out. Of nested wrapped calls the outermost wins. The harness's own message list is matched and
recorded; the rewind memory is added afterwards, to what goes to the provider.
"""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeAlias, TypeVar

from agentrewind.errors import AgentRewindError, DamagedError, DivergenceError, InternalError
from agentrewind.identity import Conversations, Request
from agentrewind.raised import rebuild_exception, record_exception
from agentrewind.recorder import LlmFacts, LlmTicket
from agentrewind.records import ErrorRecord, InputId, JsonObject, LlmNode, RecordUid
from agentrewind.redact import drop_credentials
from agentrewind.replayer import Live, Refuse, Replayer, ServeLlm
from agentrewind.rewind.memory import Memory, place
from agentrewind.rewind.signal import Latch, LayerSignal

T = TypeVar("T")

_inside: ContextVar[bool] = ContextVar("agentrewind_inside_call", default=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Call(Generic[T]):
    """One LLM call as a client's wrapper understood it.

    Attributes:
        client: the client's entry point, e.g. `litellm.completion`.
        parameters: everything else that was passed; credentials among it are dropped before recording.
        encode: the client's answer as JSON.
        decode: the answer rebuilt from that JSON.
    """

    client: str
    model: str
    messages: Sequence[object]
    tools: object
    parameters: dict[str, object]
    encode: Callable[[T], JsonObject]
    decode: Callable[[JsonObject], T]


class Records(Protocol):
    """What the gate needs of the recorder."""

    def begin_llm(self, input_id: InputId) -> LlmTicket: ...
    def end_llm(self, ticket: LlmTicket, facts: LlmFacts, output: JsonObject) -> LlmNode: ...
    def fail_llm(self, ticket: LlmTicket, facts: LlmFacts, error: ErrorRecord) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class _Open:
    """A call that goes live: what is sent, and what is written down about it."""

    ticket: LlmTicket
    request: Request
    facts: LlmFacts
    messages: list[JsonObject]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Served:
    node: LlmNode


_Step: TypeAlias = _Open | _Served


@dataclass(slots=True, kw_only=True)
class Gate:
    """The gate of one agent process. Safe for threads; live calls are made outside its lock.

    Attributes:
        records: the recorder, or None where nothing may go live (`replay`).
        on_answer: told of every LLM node that is served or recorded, so that tool calls find their parent.
        at_checkpoint: called once before the one live call of a rewind; verifies the files.
        warn: told what differed where a match was made by position.
    """

    latch: Latch
    replayer: Replayer
    conversations: Conversations
    records: Records | None
    memory: Memory | None = None
    secrets: Collection[str] = ()
    on_answer: Callable[[LlmNode], None] = lambda node: None
    at_checkpoint: Callable[[LlmNode], None] = lambda node: None
    warn: Callable[[str], None] = lambda text: None
    _lock: threading.RLock = field(default_factory=threading.RLock)
    _alias: dict[str, str] = field(default_factory=dict)

    def run(self, call: Call[T], perform: Callable[[list[JsonObject]], T]) -> T:
        """Answer `call`, making it with `perform(messages)` if it has to go live."""
        match self._open(call):
            case _Served(node=node):
                return self._answer(call, node)
            case _Open() as opened:
                try:
                    with inside():
                        answer = perform(opened.messages)
                except BaseException as error:
                    self._failed(opened, error)
                    raise
                return self._finished(call, opened, answer)

    async def arun(self, call: Call[T], perform: Callable[[list[JsonObject]], Awaitable[T]]) -> T:
        """The same for a client that is awaited."""
        match self._open(call):
            case _Served(node=node):
                return self._answer(call, node)
            case _Open() as opened:
                try:
                    with inside():
                        answer = await perform(opened.messages)
                except BaseException as error:
                    self._failed(opened, error)
                    raise
                return self._finished(call, opened, answer)

    def _open(self, call: Call[T]) -> _Step:
        self.latch.check()
        with self._lock, self.stopping():
            request = self.conversations.identify(model=call.model, messages=call.messages, tools=call.tools)
            decision = self.replayer.llm(request)
            match decision:
                case Refuse(record_uid=uid, difference=difference):
                    raise DivergenceError(record_uid=uid, difference=difference)
                case ServeLlm(node=node):
                    self._serve(request, decision, node)
                    return _Served(node=node)
                case Live():
                    return self._go_live(call, request, decision)

    def _serve(self, request: Request, decision: ServeLlm, node: LlmNode) -> None:
        self._alias[request.conversation] = node.conversation
        self.conversations.remember(request, node.record_uid if decision.warning is None else None)
        if decision.warning is not None:
            self.warn(f"{node.record_uid} was matched by position: {decision.warning}")
        self.on_answer(node)

    def _go_live(self, call: Call[T], request: Request, decision: Live) -> _Open:
        records = self.records
        if records is None:
            raise DivergenceError(record_uid=None, difference="a live call was asked for during a replay")
        if decision.checkpoint is not None:
            self._alias[request.conversation] = decision.checkpoint.conversation
            if decision.warning is not None:
                self.warn(f"checkpoint {decision.checkpoint.record_uid} differs: {decision.warning}")
            self.at_checkpoint(decision.checkpoint)
        kept, _omitted = drop_credentials(call.parameters)
        facts = LlmFacts(
            conversation=request.conversation,
            client=call.client,
            model=call.model,
            parameters=kept,
            messages=self.conversations.by_reference(request),
            tools=request.tools,
        )
        ticket = records.begin_llm(request.input_id)
        return _Open(ticket=ticket, request=request, facts=facts, messages=self._with_memory(request))

    def _with_memory(self, request: Request) -> list[JsonObject]:
        conversation = self._alias.get(request.conversation, request.conversation)
        if self.memory is None or conversation != self.memory.conversation:
            return list(request.messages)
        return place(request.messages, self.memory)

    def _finished(self, call: Call[T], opened: _Open, answer: T) -> T:
        with self.stopping():
            assert self.records is not None
            node = self.records.end_llm(opened.ticket, opened.facts, call.encode(answer))
            with self._lock:
                self.conversations.remember(opened.request, node.record_uid)
                self.on_answer(node)
        self.latch.check()
        return answer

    def _failed(self, opened: _Open, error: BaseException) -> None:
        if isinstance(error, LayerSignal):
            return
        with self.stopping():
            assert self.records is not None
            self.records.fail_llm(opened.ticket, opened.facts, record_exception(error, secrets=self.secrets))

    def _answer(self, call: Call[T], node: LlmNode) -> T:
        if node.error is not None:
            raise rebuild_exception(node.error)
        if node.output is None:
            raise self.latch.stop(DamagedError(f"{node.record_uid} holds neither an answer nor an error"))
        return call.decode(node.output)

    @contextmanager
    def stopping(self) -> Iterator[None]:
        """Within this, an error of ours becomes a signal, whatever the harness catches."""
        try:
            yield
        except AgentRewindError as error:
            raise self.latch.stop(error) from error
        except Exception as error:
            raise self.latch.stop(InternalError(error)) from error


@contextmanager
def inside() -> Iterator[None]:
    """While this lasts, calls of wrapped clients in this context belong to the call around them."""
    token = _inside.set(True)
    try:
        yield
    finally:
        _inside.reset(token)


def is_inside() -> bool:
    """True within a call that the layer already handles: nested client calls pass through."""
    return _inside.get()


def named_calls(node: LlmNode) -> list[tuple[str, str]]:
    """The tool calls that an answer asks for, in order, each as name and id."""
    calls = (node.output or {}).get("tool_calls")
    found: list[tuple[str, str]] = []
    for call in calls if isinstance(calls, list) else ():
        function = call.get("function") if isinstance(call, dict) else None
        if isinstance(call, dict) and isinstance(function, dict) and isinstance(call.get("id"), str):
            found.append((str(function.get("name")), str(call["id"])))
    return found


def parent_of(node: LlmNode) -> dict[str, RecordUid]:
    """The tool call ids that an answer names, each with the node as its parent."""
    calls = (node.output or {}).get("tool_calls")
    found: dict[str, RecordUid] = {}
    for call in calls if isinstance(calls, list) else ():
        if isinstance(call, dict) and isinstance(call.get("id"), str):
            found[str(call["id"])] = node.record_uid
    return found
