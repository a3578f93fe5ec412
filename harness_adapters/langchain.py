"""Runs LangChain's agent under the layer in all its ways: invoked or streamed, awaited or not.

The agent is what `create_agent` makes, joined by a middleware; `work_until_accepted` has any graph with
messages work until its final answer is accepted, one that was built by hand as well.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from langchain.agents import create_agent
from langchain_core.messages import HumanMessage
from langchain_core.tools import StructuredTool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import GraphDrained

from agentrewind.adapters import AgentOutcome, Assignment
from agentrewind.layer import Layer
from agentrewind.records import JsonObject
from harness_adapters.instructions import system_prompt
from harness_adapters.langchain_middleware import BrokenCalls, RewindMiddleware, tool_wrappers
from harness_adapters.settings import Choices, openai_model, read_settings
from harness_adapters.shell import (
    COMMAND_DESCRIPTION,
    DESCRIPTION,
    NAME,
    TIMEOUT_S,
    LocalShell,
    Shell,
    open_shell,
)

__all__ = [
    "LangChainAdapter",
    "RewindMiddleware",
    "chat_model",
    "shell_tool",
    "tool_wrappers",
    "work_until_accepted",
]

MODES = ("invoke", "stream", "ainvoke", "astream")
SETTINGS: dict[str, Choices] = {
    "mode": MODES,
    "checkpointer": bool,
    "timeout": float,
    "provider": str,
    "model_settings": dict,
    "instructions": str,
}

Step = Callable[[list[Any]], Any]


class LangChainAdapter:
    """Builds an agent with a shell in the workspace and has it work until it is accepted.

    Settings: `mode` (how the graph is run: `invoke`, `stream`, `ainvoke`, `astream`; the streams have the
    model stream as well), `checkpointer` (true: the graph keeps the messages, in memory), `timeout` of a
    command in seconds (0: none), `provider` (of the model, where it is neither OpenAI nor speaks like it),
    `model_settings` (arguments of the chat model), `instructions` (in place of our system prompt). `config`
    holds the same as `name=value`.
    """

    shell: Shell | None = None

    def run(self, layer: Layer, assignment: Assignment) -> AgentOutcome:
        """Run the agent. Raises what the agent raises: a provider that fails, an error of its own."""
        with layer.collecting():
            settings = read_settings(assignment.settings, harness="langchain", known=SETTINGS)
        with ExitStack() as stack:
            with layer.collecting():
                self.shell = stack.enter_context(open_shell(assignment))
                graph = self.build(layer, assignment, settings)
            return work_until_accepted(
                graph,
                layer,
                assignment.task,
                mode=str(settings.get("mode", MODES[0])),
                keeps_messages=settings.get("checkpointer") is True,
            )

    def build(self, layer: Layer, assignment: Assignment, settings: JsonObject) -> Any:
        """The compiled graph, joined to the layer; its commands run in `self.shell`, or on this machine."""
        shell = self.shell or LocalShell(assignment.workspace)
        timeout = settings.get("timeout", TIMEOUT_S)
        assert isinstance(timeout, int | float)
        return create_agent(
            chat_model(assignment.model, settings),
            [shell_tool(shell, timeout=timeout)],
            system_prompt=settings.get("instructions") or system_prompt(shell.directory),
            middleware=[BrokenCalls(), RewindMiddleware(layer)],
            checkpointer=InMemorySaver() if settings.get("checkpointer") is True else None,
        )


def chat_model(name: str, settings: JsonObject) -> Any:
    """The chat model of an assignment: OpenAI's, or that of the provider that the settings name."""
    given = settings.get("model_settings") or {}
    provider = settings.get("provider")
    assert isinstance(given, dict)
    if provider is not None:
        from langchain.chat_models import init_chat_model

        return init_chat_model(name, model_provider=provider, **given)
    from langchain_openai import ChatOpenAI
    from openai import OpenAIError

    try:
        return ChatOpenAI(model=openai_model(name), **given)
    except OpenAIError:
        # no key is set: servers of one's own need none, and in a replay none is there
        return ChatOpenAI(model=openai_model(name), **{"api_key": "none-given", **given})


def shell_tool(shell: Shell, *, timeout: float = TIMEOUT_S) -> Any:
    """The shell in the workspace; a timeout of 0 means none."""

    def bash(command: str) -> str:
        return shell.run(command, timeout or None).text()

    schema = {
        "type": "object",
        "properties": {"command": {"type": "string", "description": COMMAND_DESCRIPTION}},
        "required": ["command"],
    }
    return StructuredTool.from_function(bash, name=NAME, description=DESCRIPTION, args_schema=schema)


def work_until_accepted(
    graph: Any, layer: Layer, task: str, *, mode: str = MODES[0], keeps_messages: bool = False
) -> AgentOutcome:
    """Let a graph work: where it ends is a submission, and feedback goes back into it.

    The graph is compiled, has `messages` in its state, and is joined by the middleware or by
    `tool_wrappers`. `mode` is `invoke`, `stream`, `ainvoke` or `astream`; the awaited ones use one event loop
    from beginning to end. With `keeps_messages` it has a checkpointer, and only what is new is handed in.
    """
    with _running(graph, mode) as step:
        messages: list[Any] = [HumanMessage(task)]
        while True:
            try:
                state = step(messages)
            except GraphDrained as drained:
                return AgentOutcome(state="stopped", detail=f"the graph was asked to stop: {drained.reason}")
            layer.latch.check()
            verdict = layer.submit_last()
            if verdict.accepted:
                return AgentOutcome(state="accepted", detail="the final answer was accepted")
            if verdict.final:
                return AgentOutcome(state="rejected", detail="the same first problem too many times in a row")
            told = HumanMessage(verdict.feedback)
            messages = [told] if keeps_messages else [*state["messages"], told]


@contextmanager
def _running(graph: Any, mode: str) -> Iterator[Step]:
    """The graph run in this mode: messages in, the last state out."""
    # a thread of a checkpointer is per process: what an earlier process left in one would come twice
    configuration = {"configurable": {"thread_id": "agentrewind"}}
    with ExitStack() as stack:
        if mode == "invoke":
            yield lambda messages: graph.invoke({"messages": messages}, configuration)
        elif mode == "stream":
            yield lambda messages: _last_state(graph, messages, configuration)
        else:
            # its end waits for the threads of tools that still run after a signal
            runner = stack.enter_context(asyncio.Runner())
            awaited = graph.ainvoke if mode == "ainvoke" else _last_state_of(graph)
            yield lambda messages: runner.run(awaited({"messages": messages}, configuration))


def _last_state(graph: Any, messages: list[Any], configuration: dict[str, Any]) -> Any:
    state: Any = None
    for kind, part in graph.stream({"messages": messages}, configuration, stream_mode=["values", "messages"]):
        if kind == "values":
            state = part
    return state


def _last_state_of(graph: Any) -> Callable[..., Any]:
    async def run(given: dict[str, Any], configuration: dict[str, Any]) -> Any:
        state: Any = None
        async for kind, part in graph.astream(given, configuration, stream_mode=["values", "messages"]):
            if kind == "values":
                state = part
        return state

    return run
