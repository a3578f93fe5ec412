"""Joins a single agent of smolagents to the layer: in place of each tool stands one that passes the layer."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from typing import Any

from smolagents import CodeAgent
from smolagents.agent_types import handle_agent_input_types, handle_agent_output_types
from smolagents.tools import BaseTool

from agentrewind.capture.nesting import is_inside
from agentrewind.layer import Layer
from agentrewind.named_calls import parent_of
from agentrewind.records import Json, JsonObject, LlmNode, RecordUid
from agentrewind.rewind.tools import COMMIT
from harness_adapters.smolagents_code import CodeActions
from harness_adapters.smolagents_inner import watch
from harness_adapters.smolagents_tools import rewind_tools
from harness_adapters.smolagents_values import MARK, decode_value, describe, encode_value, is_inert

FINAL = "final_answer"

_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_call_id: ContextVar[str | None] = ContextVar("agentrewind_smolagents_call", default=None)
_acting: ContextVar[RecordUid | None] = ContextVar("agentrewind_smolagents_acting", default=None)


class InterruptedCallError(Exception):
    """A tool call whose process died; its effect is unknown and it was not repeated."""


class Joint:
    """The joints of a single agent: every tool of it is replaced by one that passes the layer."""

    def __init__(
        self, agent: Any, layer: Layer, *, label: str, answered: Callable[[RecordUid], None] | None
    ) -> None:
        self.layer = layer
        self._agent = agent
        self._answered = answered or (lambda uid: None)
        self._parent: RecordUid | None = None
        self._code: CodeActions | None = None
        watch(agent.model)
        added = rewind_tools() if answered is not None and layer.options.can_rewind else []
        tools = {**agent.tools, **{tool.name: tool for tool in added}}
        agent.tools = {name: Routed(tool, name, self) for name, tool in tools.items()}
        if isinstance(agent, CodeAgent):
            self._code = agent.python_executor = CodeActions(
                agent.python_executor,
                layer,
                label=label,
                named=lambda: {**agent.tools, **agent.managed_agents},
                begun=self._begin,
                submitted=self._answered,
                step=lambda: len(agent.memory.steps),
                alone=not agent.managed_agents,
            )
        else:
            self._process = agent.process_tool_calls
            self._execute = agent.execute_tool_call
            agent.process_tool_calls = self._process_tool_calls
            agent.execute_tool_call = self._execute_tool_call

    def call(self, name: str, arguments: JsonObject, perform: Callable[[], object]) -> Any:
        """One tool call of this agent, through the layer."""
        live: list[object] = []
        sealed = self.layer.code.sealed

        def performed() -> Json:
            live.append(perform())
            return encode_value(live[0], sealed.keep)

        result = self.layer.run_tool(
            name,
            arguments,
            performed,
            tool_call_id=None if self._code is not None else _call_id.get(),
            # within a code action that is a node of its own, all belongs to the answer that was the code
            parent=_acting.get() if is_inside() else self._parent,
            interrupted=lambda text: {MARK: "interrupted", "text": text},
        )
        if name == FINAL:
            self._answered(result.record_uid)
        if live:
            if self._code is not None and not is_inert(live[0]):
                self._code.live_object = True
            return live[0] if isinstance(result.value, dict) and MARK in result.value else result.value
        if isinstance(result.value, dict) and result.value.get(MARK) == "interrupted":
            raise InterruptedCallError(str(result.value.get("text")))
        return decode_value(result.value, sealed.load, inert_only=self._code is not None)

    def _begin(self, answer: LlmNode) -> None:
        self._parent = answer.record_uid
        _acting.set(answer.record_uid)

    def _process_tool_calls(self, chat_message: Any, memory_step: Any) -> Iterator[Any]:
        """The harness's own, with ids that stay the same on replay, and an order where it matters."""
        answer = self.layer.last_answer
        if answer is not None and not is_inside():
            self._begin(answer)
            given = parent_of(answer)
            for place, call in enumerate(chat_message.tool_calls):
                if call.id not in given and _UUID.fullmatch(str(call.id)):
                    call.id = f"call_{answer.record_uid}_{place}"
        for call in chat_message.tool_calls:
            call.function.arguments = _tagged(call.function.arguments, call.id)
        threads = self._agent.max_tool_threads
        if any(call.function.name == COMMIT for call in chat_message.tool_calls):
            # what stands before the commit runs, and what stands after it does not
            self._agent.max_tool_threads = 1
        try:
            yield from self._process(chat_message, memory_step)
        finally:
            self._agent.max_tool_threads = threads
        self.layer.latch.check()

    def _execute_tool_call(self, tool_name: str, arguments: Any) -> Any:
        token = _call_id.set(getattr(arguments, "call_id", None))
        if isinstance(arguments, _Arguments | _Text):
            arguments = arguments.plain()
        try:
            return self._execute(tool_name, arguments)
        finally:
            _call_id.reset(token)


class Routed(BaseTool):  # type: ignore[misc]
    """Stands in the place of a tool, and is it in all other respects; a call passes the layer first."""

    def __init__(self, inner: Any, name: str, joint: Joint) -> None:
        self._inner = inner
        self._joint = joint
        self.name = name

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["_inner"], name)

    def __call__(self, *args: Any, sanitize_inputs_outputs: bool = False, **kwargs: Any) -> Any:
        if sanitize_inputs_outputs:
            args, kwargs = handle_agent_input_types(*args, **kwargs)
        value = self._joint.call(
            self.name, _by_name(self._inner.inputs, args, kwargs), lambda: self._inner(*args, **kwargs)
        )
        return handle_agent_output_types(value, self._inner.output_type) if sanitize_inputs_outputs else value


class _Arguments(dict[str, Any]):
    """Arguments that know their call; true when empty as well, since the harness drops what is not."""

    call_id: str

    def __bool__(self) -> bool:
        return True

    def plain(self) -> dict[str, Any]:
        return dict(self)


class _Text(str):
    """Arguments that are no JSON, and know their call."""

    call_id: str

    def plain(self) -> str:
        return str.__str__(self)


def _tagged(arguments: Any, call_id: str) -> Any:
    if isinstance(arguments, dict):
        tagged: _Arguments | _Text = _Arguments(arguments)
    elif isinstance(arguments, str):
        tagged = _Text(arguments)
    else:
        return arguments
    tagged.call_id = call_id
    return tagged


def _by_name(inputs: Mapping[str, Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> JsonObject:
    """Positional arguments under the names that the tool gives them."""
    named, placed = dict(kwargs), list(args)
    if len(args) == 1 and not kwargs and isinstance(args[0], dict) and set(args[0]) <= set(inputs):
        named, placed = dict(args[0]), []
    found: JsonObject = dict(zip(inputs, map(describe, placed), strict=False))
    if len(placed) > len(inputs):
        found["*"] = [describe(value) for value in placed[len(inputs) :]]
    found.update({str(name): describe(value) for name, value in named.items()})
    return found
