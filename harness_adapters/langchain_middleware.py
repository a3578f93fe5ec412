"""Joins graphs of LangChain and LangGraph to the layer: a middleware, and what a `ToolNode` takes.

Every tool call passes the layer with its name, its arguments and its id; a result is told from the log on
replay without the tool. The signals of the layer are raised from tools only, where every path lets them out.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from langchain.agents.middleware import AgentMiddleware, hook_config
from langchain_core.messages import AIMessage, SystemMessage, ToolMessage
from langgraph.errors import GraphDrained

from agentrewind.capture.nesting import is_inside
from agentrewind.current import current_layer
from agentrewind.layer import Layer, ToolResult
from agentrewind.own_tools import rewind_tools
from harness_adapters.call_order import CallOrder, Wanted
from harness_adapters.langchain_values import OUTCOMES, decode_result, encode_result

Handler = Callable[[Any], Any]
AsyncHandler = Callable[[Any], Awaitable[Any]]


class RewindMiddleware(AgentMiddleware):  # type: ignore[misc]
    """For `create_agent(middleware=[…, RewindMiddleware()])`; give it last, so that it is next to the tools.

    It adds the two tools and the guidance, and routes every tool call. Without a layer (none given, and the
    process not joined to one) it changes nothing.
    """

    def __init__(self, layer: Layer | None = None) -> None:
        super().__init__()
        self._layer = layer or current_layer()
        self._calls = None if self._layer is None else RoutedCalls(self._layer)
        self.tools = rewind_tools("langchain")

    def wrap_model_call(self, request: Any, handler: Handler) -> Any:
        return handler(self._guided(request))

    async def awrap_model_call(self, request: Any, handler: AsyncHandler) -> Any:
        return await handler(self._guided(request))

    def wrap_tool_call(self, request: Any, handler: Handler) -> Any:
        return handler(request) if self._calls is None else self._calls.wrap(request, handler)

    async def awrap_tool_call(self, request: Any, handler: AsyncHandler) -> Any:
        return await (handler(request) if self._calls is None else self._calls.awrap(request, handler))

    def _guided(self, request: Any) -> Any:
        """The request with the guidance at the end of its system prompt."""
        guidance = "" if self._layer is None else self._layer.guidance
        if not guidance:
            return request
        told = request.system_message
        content: Any = guidance
        if told is not None and isinstance(told.content, str):
            content = "\n\n".join(filter(None, (told.content, guidance)))
        elif told is not None:
            content = [*told.content, {"type": "text", "text": guidance}]
        return request.override(system_message=SystemMessage(content=content))


class BrokenCalls(AgentMiddleware):  # type: ignore[misc]
    """Answers tool calls whose arguments are no JSON, for which LangChain runs nothing and tells nobody.

    Without an answer to each call a provider refuses the next request.
    """

    @hook_config(can_jump_to=["model"])  # type: ignore[untyped-decorator]
    def after_model(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        return self._answer(state["messages"][-1])

    @hook_config(can_jump_to=["model"])  # type: ignore[untyped-decorator]
    async def aafter_model(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        return self._answer(state["messages"][-1])

    @staticmethod
    def _answer(message: Any) -> dict[str, Any] | None:
        broken = getattr(message, "invalid_tool_calls", [])
        if not broken:
            return None
        told = [
            ToolMessage(
                content=f"The arguments of this call are no JSON object, so it did not run: {call['args']}",
                name=call["name"],
                tool_call_id=call["id"] or "",
                status="error",
            )
            for call in broken
        ]
        return {"messages": told} if message.tool_calls else {"messages": told, "jump_to": "model"}


def tool_wrappers(layer: Layer | None = None) -> dict[str, Callable[..., Any]]:
    """For a graph built by hand: `ToolNode(tools, **tool_wrappers())`; empty without a layer.

    The two tools themselves come from `agentrewind.rewind_tools("langchain")`, for the node and the model
    alike, and the guidance from `agentrewind.rewind_guidance()`.
    """
    joined = layer or current_layer()
    if joined is None:
        return {}
    calls = RoutedCalls(joined)
    return {"wrap_tool_call": calls.wrap, "awrap_tool_call": calls.awrap}


class RoutedCalls:
    """The tool calls of one graph through the layer, at the same time where the graph makes them so."""

    def __init__(self, layer: Layer) -> None:
        self._layer = layer
        layer.cut_off = (GraphDrained,)  # a graph within the tool was asked to stop, and can go on later
        self._order = CallOrder()

    def wrap(self, request: Any, handler: Handler) -> Any:
        """Answer one call, with `handler` where it has to run."""
        name, call_id = request.tool_call["name"], request.tool_call["id"]
        ours = self._layer.is_rewind_tool(name)
        if is_inside() and not ours:
            return handler(request)  # an agent within a tool, which is one node
        live: list[Any] = []

        def perform() -> object:
            try:
                live.append(handler(request))
            except OUTCOMES as outcome:
                live.append(outcome)
            return encode_result(live[0])

        with self._order.turn(*_place(request)):
            result = self._layer.run_tool(
                name,
                request.tool_call["args"],
                perform,
                tool_call_id=call_id,
                interrupted=_interrupted,
            )
        return _given(live[0] if live else _message(request, result, ours=ours))

    async def awrap(self, request: Any, handler: AsyncHandler) -> Any:
        """The same in an event loop."""
        name, call_id = request.tool_call["name"], request.tool_call["id"]
        ours = self._layer.is_rewind_tool(name)
        if is_inside() and not ours:
            return await handler(request)
        live: list[Any] = []

        async def perform() -> object:
            try:
                live.append(await handler(request))
            except OUTCOMES as outcome:
                live.append(outcome)
            return encode_result(live[0])

        async with self._order.aturn(*_place(request)):
            result = await self._layer.arun_tool(
                name,
                request.tool_call["args"],
                perform,
                tool_call_id=call_id,
                interrupted=_interrupted,
            )
        return _given(live[0] if live else _message(request, result, ours=ours))


def _message(request: Any, result: ToolResult, *, ours: bool) -> Any:
    """What the log or the layer itself gives, as the graph takes it."""
    call = request.tool_call
    if ours and not isinstance(result.value, dict):
        return ToolMessage(content=str(result.value), name=call["name"], tool_call_id=call["id"] or "")
    return decode_result(result.value, tool_call_id=call["id"])


def _given(value: Any) -> Any:
    if isinstance(value, OUTCOMES):
        raise value
    return value


def _interrupted(text: str) -> dict[str, str]:
    return {"content": text, "status": "error"}


def _place(request: Any) -> tuple[str, list[Wanted], Wanted]:
    """The answer that the call stands in, all its calls, and this one."""
    this = _wanted(request.tool_call)
    for message in reversed(_messages(request.state)):
        if isinstance(message, AIMessage) and message.tool_calls:
            calls = [_wanted(call) for call in message.tool_calls]
            if this in calls:
                return message.id or repr([call.call_id for call in calls]), calls, this
    return f"alone {this.call_id}", [this], this


def _messages(state: Any) -> list[Any]:
    if isinstance(state, dict):
        state = state.get("messages", [])
    elif not isinstance(state, list):
        state = getattr(state, "messages", [])
    return list(state)


def _wanted(call: Any) -> Wanted:
    return Wanted(name=call["name"], call_id=call["id"], arguments=call["args"])
