"""Decides for every LLM call: live, from the log, or refuse.

A client's wrapper hands the gate a `Call` and a way to perform it; the gate is the only place that lets a
request out. Of nested wrapped calls the outermost wins. The harness's own message list is matched and
recorded; the rewind memory is added afterwards, to what goes to the provider.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias, TypeVar, cast

from agentrewind.capture.call import Call, Pending
from agentrewind.capture.credentials import credentials_in
from agentrewind.capture.nesting import inside
from agentrewind.errors import AgentRewindError, DamagedError, DivergenceError, InternalError
from agentrewind.graph_steps import GraphStep
from agentrewind.identity import Conversations, Request
from agentrewind.raised import rebuild_exception, record_exception
from agentrewind.records import ErrorRecord, InputId, JsonObject, LlmNode, Node, RecordUid
from agentrewind.redact import drop_credentials
from agentrewind.replayer import Live, Refuse, Replayer, ServeLlm, Wait
from agentrewind.rewind.memory import Memory
from agentrewind.rewind.signal import Latch, LayerSignal
from agentrewind.tickets import LlmFacts, LlmTicket
from agentrewind.turns import Turns

T = TypeVar("T")


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
    messages: list[Any]
    describe: Callable[[BaseException, Collection[str]], ErrorRecord]


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
        on_step: told of every step of a graph that begins.
        on_call: told of every call that goes live, once it is written down as begun.
        at_checkpoint: called once before the one live call of a rewind; verifies the files.
        warn: told what differed where a match was made by position.
        on_served: told of every recorded node just before the harness gets it, outside of all locks.
    """

    latch: Latch
    replayer: Replayer
    conversations: Conversations
    records: Records | None
    memory: Memory | None = None
    secrets: Collection[str] = ()
    on_answer: Callable[[LlmNode], None] = lambda node: None
    on_step: Callable[[GraphStep], None] = lambda step: None
    on_call: Callable[[RecordUid], None] = lambda uid: None
    at_checkpoint: Callable[[LlmNode], None] = lambda node: None
    warn: Callable[[str], None] = lambda text: None
    on_served: Callable[[Node], None] = lambda node: None
    turns: Turns = field(init=False)
    _lock: threading.RLock = field(default_factory=threading.RLock)
    _alias: dict[str, str] = field(default_factory=dict)
    _left: deque[tuple[Pending, ErrorRecord]] = field(default_factory=deque)

    def __post_init__(self) -> None:
        self.turns = Turns(check=self.latch.check)

    def run(self, call: Call[T], perform: Callable[[list[Any]], T]) -> T:
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

    async def arun(self, call: Call[T], perform: Callable[[list[Any]], Awaitable[T]]) -> T:
        """The same for a client that is awaited."""
        match await self._aopen(call):
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

    def run_stream(self, call: Call[T], perform: Callable[[list[Any], Pending], T]) -> T:
        """Answer `call` with a stream that is open, made with `perform(messages, pending)` if it goes live.

        Whoever reads the stream tells `pending` how it ended; only then is a node written, and like every
        node it follows the snapshot that was begun with the call.
        """
        match self._open(call):
            case _Served(node=node):
                return self._answer(call, node)
            case _Open() as opened:
                pending = self._pending(opened)
                try:
                    with inside():
                        return perform(opened.messages, pending)
                except BaseException as error:
                    self._broken(opened, pending, error)
                    raise

    async def arun_stream(self, call: Call[T], perform: Callable[[list[Any], Pending], Awaitable[T]]) -> T:
        """The same for a client that is awaited."""
        match await self._aopen(call):
            case _Served(node=node):
                return self._answer(call, node)
            case _Open() as opened:
                pending = self._pending(opened)
                try:
                    with inside():
                        return await perform(opened.messages, pending)
                except BaseException as error:
                    self._broken(opened, pending, error)
                    raise

    def leave(self, pending: Pending, error: ErrorRecord) -> None:
        """Note that nobody reads `pending` any more; written down with the next call.

        This may be called by a finaliser, which runs anywhere, in the middle of a write as well.
        """
        self._left.append((pending, error))

    def settle_left(self) -> None:
        """Write down the streams that were left since the last call."""
        while self._left:
            pending, error = self._left.popleft()
            pending.failed(error)

    def _pending(self, opened: _Open) -> Pending:
        def finish(output: JsonObject) -> None:
            self._written(opened, output)
            self.latch.check()

        def fail(error: ErrorRecord) -> None:
            with self.stopping():
                assert self.records is not None
                self.records.fail_llm(opened.ticket, opened.facts, error)

        return Pending(finish=finish, fail=fail)

    def _broken(self, opened: _Open, pending: Pending, error: BaseException) -> None:
        if not isinstance(error, LayerSignal):
            pending.failed(opened.describe(error, self.secrets))

    def _open(self, call: Call[T]) -> _Step:
        request = self._identified(call)
        with self.stopping():
            return cast("_Step", self.turns.decided(lambda: self._decided(call, request)))

    async def _aopen(self, call: Call[T]) -> _Step:
        request = self._identified(call)
        with self.stopping():
            return cast("_Step", await self.turns.adecided(lambda: self._decided(call, request)))

    def _identified(self, call: Call[T]) -> Request:
        self.latch.check()
        self.settle_left()
        with self.deciding(), self.stopping():
            return self.conversations.identify(model=call.model, messages=call.messages, tools=call.tools)

    def _decided(self, call: Call[T], request: Request) -> _Step | Wait:
        self.latch.check()
        with self.deciding():
            decision = self.replayer.llm(request)
            match decision:
                case Refuse(record_uid=uid, difference=difference):
                    raise DivergenceError(record_uid=uid, difference=difference)
                case ServeLlm(node=node):
                    self._serve(request, decision, node)
                    return _Served(node=node)
                case Live():
                    return self._go_live(call, request, decision)
                case Wait():
                    return decision

    def deciding(self) -> threading.RLock:
        """What is held around every decision, of tool calls as well, and taken before any other lock."""
        return self._lock

    def _serve(self, request: Request, decision: ServeLlm, node: LlmNode) -> None:
        self._alias[request.conversation] = node.conversation
        known = decision.warning is None and self.conversations.reads_system
        # only a node that holds this very list can be referred to
        self.conversations.remember(request, node.record_uid if known else None)
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
        self.secrets = frozenset(self.secrets) | credentials_in(call.parameters)
        facts = LlmFacts(
            # under its first name, however often its first message has changed since
            conversation=self._alias.get(request.conversation, request.conversation),
            client=call.client,
            model=call.model,
            parameters=kept,
            messages=self.conversations.by_reference(request),
            tools=request.tools,
        )
        ticket = records.begin_llm(request.input_id)
        self.on_call(ticket.record_uid)
        return _Open(
            ticket=ticket,
            request=request,
            facts=facts,
            messages=self._with_memory(call, request),
            describe=call.describe or _describe,
        )

    def _with_memory(self, call: Call[T], request: Request) -> list[Any]:
        # the harness's own objects: what is recorded of them is not always what a client would send
        sent = list(call.messages if call.sent is None else call.sent)
        conversation = self._alias.get(request.conversation, request.conversation)
        if self.memory is None or conversation != self.memory.conversation:
            return sent
        return call.place(request.messages, sent, self.memory)

    def _finished(self, call: Call[T], opened: _Open, answer: T) -> T:
        with self.stopping():
            output = call.encode(answer)
        self._written(opened, output)
        self.latch.check()
        return answer

    def _written(self, opened: _Open, output: JsonObject) -> None:
        with self.stopping():
            assert self.records is not None
            node = self.records.end_llm(opened.ticket, opened.facts, output)
            with self._lock:
                self.conversations.remember(opened.request, node.record_uid)
                self.on_answer(node)
        self.settle_left()

    def _failed(self, opened: _Open, error: BaseException) -> None:
        if isinstance(error, LayerSignal):
            return
        with self.stopping():
            assert self.records is not None
            self.records.fail_llm(opened.ticket, opened.facts, opened.describe(error, self.secrets))

    def _answer(self, call: Call[T], node: LlmNode) -> T:
        self.on_served(node)
        if node.error is not None:
            if call.refail is not None:
                return call.refail(node.error)
            with self.stopping():
                failure = rebuild_exception(node.error)
            raise failure
        if node.output is None:
            raise self.latch.stop(DamagedError(f"{node.record_uid} holds neither an answer nor an error"))
        with self.stopping():
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


def _describe(error: BaseException, secrets: Collection[str]) -> ErrorRecord:
    return record_exception(error, secrets=secrets)
