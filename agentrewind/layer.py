"""One agent process's end of the runtime layer: what an adapter talks to.

An adapter routes every tool call through `run_tool`, every submission through `submit`, and lets signals
pass. Whether a call runs, is served from the log or is refused is decided below, never by the adapter.
"""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agentrewind.answers import Answers
from agentrewind.backup.briefing import BRIEFING, is_tagged
from agentrewind.backup.values import ToolCall
from agentrewind.capture.gate import Gate
from agentrewind.capture.nesting import inside
from agentrewind.clock import Clock
from agentrewind.errors import AgentRewindError, DivergenceError, UsageError
from agentrewind.identity import tool_input_id
from agentrewind.jsonform import to_json
from agentrewind.nested import CodeRuns
from agentrewind.options import RunOptions
from agentrewind.raised import rebuild_exception, record_exception
from agentrewind.recorder import Recorder
from agentrewind.records import InputId, Json, JsonObject, LlmNode, RecordUid, Submission, ToolNode
from agentrewind.replayer import Interrupted, Live, Refuse, ServeTool, ToolKey, Wait
from agentrewind.rewind.conduct import Conduct
from agentrewind.rewind.signal import LayerSignal
from agentrewind.rewind.tools import GUIDANCE, REWIND_TOOLS, openai_tools
from agentrewind.submission import Verdict
from agentrewind.submissions import SubmissionResult, Submissions
from agentrewind.tickets import ToolTicket

if TYPE_CHECKING:
    from agentrewind.backup.hook import Backups, Guarded

INTERRUPTED = (
    "interrupted: the process died while this call ran. Its effect is unknown and it was not repeated; "
    "look at the state before you go on."
)

CUT = (
    "interrupted: this call was still running at the moment to which the files went back. It did not run "
    "again, and its effect may be there in part; look at the state before you go on."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    """What a tool call gave. `served`: it comes from the log and nothing ran."""

    value: Json
    record_uid: RecordUid
    served: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class _ToolCall:
    """A tool call as an adapter handed it in; the fields are `run_tool`'s."""

    name: str
    arguments: object
    call_id: str | None
    parent: RecordUid | None
    interrupted: Callable[[str], object]


@dataclass(frozen=True, slots=True)
class _Open:
    """A tool call that is to run, and what was preserved for it."""

    ticket: ToolTicket
    guarded: Guarded | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """The same as it is matched and recorded."""

    call: _ToolCall
    key: ToolKey
    arguments: Json
    input_id: InputId


class Layer:
    """The layer inside one agent process. Safe for threads.

    Args:
        recorder: None in a replay, where nothing may be recorded.
        submissions: verdicts that the log holds, by the node that submitted.
        check: validates a submission; only called live.
        conduct: carries out the two rewind tools; None where the agent has none.
        code: the code actions of agents that write code; None where there can be none.

    Attributes:
        cut_off: what a harness raises through a tool to stop it half way; such a call has no end.
        backups: what preserves state outside the workspace before a live call; None where that is not wanted.
    """

    def __init__(
        self,
        *,
        gate: Gate,
        recorder: Recorder | None,
        options: RunOptions,
        submissions: list[Submission],
        check: Callable[[], Verdict],
        conduct: Conduct | None,
        clock: Clock,
        code: CodeRuns | None = None,
    ) -> None:
        self.latch = gate.latch
        self.options = options
        self.gate = gate
        self._replayer = gate.replayer
        self._recorder = recorder
        self._submissions = Submissions(submissions, check=check, options=options, clock=clock)
        self._answers = Answers()
        self._conduct = conduct
        self._lock = threading.RLock()
        self.cut_off: tuple[type[BaseException], ...] = ()
        self._code = code
        self.backups: Backups | None = None
        gate.on_answer = self._answered

    @property
    def guidance(self) -> str:
        """Text for the system prompt on what the layer offers, empty where that is nothing."""
        parts = (
            GUIDANCE if self.options.can_rewind else "",
            BRIEFING if self.options.backup is not None else "",
        )
        return "\n\n".join(filter(None, parts))

    @property
    def rewind_tools(self) -> list[JsonObject]:
        """The two tools in the form of chat completions, none where the agent cannot rewind."""
        return openai_tools() if self.options.can_rewind else []

    @property
    def recorder(self) -> Recorder:
        """The recorder. Raises DivergenceError in a replay, where nothing may be recorded."""
        if self._recorder is None:
            raise DivergenceError(record_uid=None, difference="a live call was asked for during a replay")
        return self._recorder

    @property
    def code(self) -> CodeRuns:
        """The code actions of the run. Raises UsageError where the layer was opened without them."""
        if self._code is None:
            raise UsageError("this layer was opened without a store for code actions")
        return self._code

    @property
    def last_answer(self) -> LlmNode | None:
        """The last answer that a call made in this thread got: what an agent that runs here acts on."""
        return self._answers.here

    @property
    def served(self) -> int:
        """Calls answered from the log so far."""
        return self._replayer.served

    @property
    def remaining(self) -> int:
        """Recorded LLM calls that were not asked for yet."""
        return self._replayer.remaining

    def is_rewind_tool(self, name: str) -> bool:
        """The layer itself carries this tool out."""
        return self.options.can_rewind and name in REWIND_TOOLS

    def run_tool(
        self,
        name: str,
        arguments: object,
        perform: Callable[[], object],
        *,
        tool_call_id: str | None = None,
        parent: RecordUid | None = None,
        interrupted: Callable[[str], object] = str,
    ) -> ToolResult:
        """Answer a tool call: from the log, or by `perform()`, recorded around it.

        `perform` is not called for the layer's own tools, nor on replay; `interrupted` shapes the text for
        a call whose outcome a crash made unknown, and for one that does not run since its backup failed.
        With `parent` the call belongs to that LLM node, whoever answered last; without, to the one that
        named its id, or the last. Raises what the tool raised, now or when it was recorded, and the layer's
        signals.
        """
        call = _ToolCall(
            name=name, arguments=arguments, call_id=tool_call_id, parent=parent, interrupted=interrupted
        )
        asked = self._asked(call)
        with self.gate.stopping():
            found = self.gate.turns.decided(lambda: self._recorded(asked))
        opened = self._begin(asked, found)
        if isinstance(opened, ToolResult):
            return opened
        try:
            with inside():
                value = perform()
        except BaseException as error:
            self._broke(opened, error)
            raise
        return self._ended(opened, value)

    async def arun_tool(
        self,
        name: str,
        arguments: object,
        perform: Callable[[], Awaitable[object]],
        *,
        tool_call_id: str | None = None,
        parent: RecordUid | None = None,
        interrupted: Callable[[str], object] = str,
    ) -> ToolResult:
        """The same for a tool that is awaited; snapshots are taken on the loop's thread."""
        call = _ToolCall(
            name=name, arguments=arguments, call_id=tool_call_id, parent=parent, interrupted=interrupted
        )
        asked = self._asked(call)
        with self.gate.stopping():
            found = await self.gate.turns.adecided(lambda: self._recorded(asked))
        opened = self._begin(asked, found)
        if isinstance(opened, ToolResult):
            return opened
        try:
            with inside():
                value = await perform()
        except BaseException as error:
            self._broke(opened, error)
            raise
        return self._ended(opened, value)

    def _asked(self, call: _ToolCall) -> _Asked:
        """The call with its place among the recorded ones, which is given out once."""
        self.latch.check()
        with self._lock, self.gate.stopping():
            plain = to_json(call.arguments)
            key = self._answers.place(call.name, call.call_id, call.parent)
            return _Asked(call=call, key=key, arguments=plain, input_id=tool_input_id(call.name, plain))

    def _begin(self, asked: _Asked, found: ToolNode | ToolResult | None) -> ToolResult | _Open:
        """What the log or the layer itself gives, or a call that is written down as begun and may run."""
        if isinstance(found, ToolNode):
            # outside of the deciding: what the tool raised then is no failure of the layer now
            return self._served(found)
        if found is not None:
            return found
        recorder, call = self.recorder, asked.call
        parent, call_id, ordinal = asked.key
        with self.gate.stopping():
            ticket = recorder.begin_tool(
                name=call.name,
                call_id=call_id,
                arguments=asked.arguments,
                input_id=asked.input_id,
                parent=parent,
                ordinal=ordinal,
            )
            self.gate.on_call(ticket.record_uid)
        if self.is_rewind_tool(call.name):
            return self._rewind_tool(recorder, ticket, asked.arguments)
        return self._preserved(call, ticket)

    def _preserved(self, call: _ToolCall, ticket: ToolTicket) -> ToolResult | _Open:
        """The call with what was preserved for it; what may not run is answered with the reason."""
        backups = self.backups
        if backups is None:
            return _Open(ticket, None)
        with self.gate.stopping():
            tool_call = ToolCall(
                name=ticket.tool_name,
                arguments=ticket.arguments,
                call_id=ticket.tool_call_id,
                tagged=self._answers.is_tagged(ticket.parent) or is_tagged(ticket.arguments),
            )
            guarded = backups.before(tool_call, ticket.record_uid)
            if not guarded.blocked:
                return _Open(ticket, guarded)
            node = self.recorder.end_tool(
                ticket,
                output=to_json(call.interrupted(guarded.blocked)),
                error=None,
                external=backups.after(guarded),
            )
        return ToolResult(value=node.output, record_uid=node.record_uid, served=False)

    def _external(self, opened: _Open) -> tuple[JsonObject, ...]:
        """What the call changed outside the workspace."""
        if self.backups is None or opened.guarded is None:
            return ()
        return self.backups.after(opened.guarded)

    def _recorded(self, asked: _Asked) -> ToolNode | ToolResult | Wait | None:
        """The node to serve, the result of a call that was interrupted, or None where it goes live."""
        self.latch.check()
        name, key = asked.call.name, asked.key
        with self.gate.deciding(), self._lock:
            decision = self._replayer.tool(key, name=name, input_id=asked.input_id, arguments=asked.arguments)
            match decision:
                case Refuse(record_uid=uid, difference=difference):
                    raise DivergenceError(record_uid=uid, difference=difference)
                case ServeTool(node=node, warning=warning):
                    if warning:
                        self.gate.warn(f"{node.record_uid} was matched by position: {warning}")
                    return node
                case Interrupted():
                    return self._interrupted(asked, decision)
                case Wait():
                    return decision
                case Live():
                    return None

    def _interrupted(self, asked: _Asked, found: Interrupted) -> ToolResult:
        recorder, started = self.recorder, found.started
        written = recorder.interrupted(
            started,
            again=found.ended,
            arguments=asked.arguments,
            before=recorder.last_commit(),
            output=to_json(asked.call.interrupted(CUT if found.ended else INTERRUPTED)),
            external=self.backups.of_node(started.record_uid) if self.backups else (),
        )
        return ToolResult(value=written.output, record_uid=written.record_uid, served=False)

    def submit(self, record_uid: RecordUid) -> SubmissionResult:
        """The verdict on the submission that node `record_uid` made: from the log, or by the check."""
        self.latch.check()
        with self._lock, self.gate.stopping():
            return self._submissions.judge(record_uid, record=lambda: self.recorder)

    def submit_last(self) -> SubmissionResult:
        """The verdict on the present state as submitted by the last answer."""
        last = self._answers.last
        if last is None:
            raise self.latch.stop(UsageError("nothing can be submitted before the agent's first answer"))
        return self.submit(last)

    def _rewind_tool(self, recorder: Recorder, ticket: ToolTicket, arguments: Json) -> ToolResult:
        with self.gate.stopping():
            assert self._conduct is not None
            outcome = self._conduct.call(
                ticket.tool_name, arguments, asking=ticket.parent, record_uid=ticket.record_uid
            )
            node = recorder.end_tool(ticket, output=outcome.value, error=None)
        if outcome.rewinds:
            raise self.latch.rewind()
        return ToolResult(value=node.output, record_uid=node.record_uid, served=False)

    def _broke(self, opened: _Open, error: BaseException) -> None:
        """Write down what a tool raised. A signal is not the tool's, nor what is cancelled after one."""
        if isinstance(error, (LayerSignal, *self.cut_off)):
            return
        if self.latch.reason is not None and not isinstance(error, Exception):
            return
        with self.gate.stopping():
            self.recorder.end_tool(
                opened.ticket,
                output=None,
                error=record_exception(error, secrets=self.gate.secrets),
                external=self._external(opened),
            )

    def _ended(self, opened: _Open, value: object) -> ToolResult:
        with self.gate.stopping():
            node = self.recorder.end_tool(
                opened.ticket, output=to_json(value), error=None, external=self._external(opened)
            )
        self.latch.check()
        return ToolResult(value=node.output, record_uid=node.record_uid, served=False)

    def _served(self, node: ToolNode) -> ToolResult:
        self.gate.on_served(node)
        if node.error is not None:
            with self.gate.stopping():
                error = rebuild_exception(node.error)
            raise error
        value = node.output
        if self.is_rewind_tool(node.tool_name) and Conduct.went_back(value):
            value = Conduct.undone()
        return ToolResult(value=value, record_uid=node.record_uid, served=True)

    def _answered(self, node: LlmNode) -> None:
        with self._lock:
            self._answers.heard(node)

    @contextmanager
    def collecting(self) -> Iterator[None]:
        """Errors of ours raised in an adapter's own code end the process as those of the layer do."""
        try:
            yield
        except AgentRewindError as error:
            raise self.latch.stop(error) from error
