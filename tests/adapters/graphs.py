"""Graphs of LangChain and LangGraph for tests: a chat model over HTTP, tools that leave marks, a run."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import openai
from langchain.agents import create_agent
from langchain_core.messages import SystemMessage, ToolMessage
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import InjectedToolCallId, tool
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from langgraph.types import Command

import agentrewind
from agentrewind.adapters import AgentOutcome
from agentrewind.layer import Layer
from agentrewind.options import RunOptions, Strategy
from harness_adapters.langchain import RewindMiddleware, tool_wrappers, work_until_accepted
from harness_adapters.langchain_middleware import BrokenCalls
from harness_adapters.scripted import Policy, ScriptedModel
from tests.adapters.attempts import Attempts

PROMPT = "You are a test."
Kind = Callable[["World", Any], Any]


class World:
    """A scripted model, a run, and tools that leave a mark whenever they really run."""

    def __init__(self, base: Path, server: ScriptedModel, options: RunOptions) -> None:
        self.server = server
        self.attempts = Attempts(base=base, options=options)
        self.root = self.attempts.root
        self.marks: list[str] = []
        self.together = threading.Barrier(2, timeout=10)

    def model(self) -> Any:
        # a client of its own for each: the shared ones belong to an event loop that is closed by now
        return ChatOpenAI(
            model="scripted",
            base_url=self.server.base_url,
            api_key="none-needed",
            max_retries=0,
            http_async_client=openai.DefaultAsyncHttpxClient(),
        )

    def tools(self) -> list[Any]:
        @tool  # type: ignore[untyped-decorator]
        def mark(word: str) -> str:
            """Leave a mark."""
            self._mark(word)
            return f"marked {word}"

        @tool  # type: ignore[untyped-decorator]
        def slow(word: str) -> str:
            """Leave a mark, late."""
            time.sleep(0.3)
            self._mark(word)
            return f"marked {word}"

        @tool  # type: ignore[untyped-decorator]
        def pair(word: str) -> str:
            """Leave a mark while another one does."""
            self.together.wait()
            self._mark(word)
            self.together.wait()
            return f"marked {word}"

        @tool  # type: ignore[untyped-decorator]
        def fail(word: str) -> str:
            """Leave a mark and break."""
            self._mark(word)
            raise KeyError(word, 7)

        @tool  # type: ignore[untyped-decorator]
        def command(word: str, tool_call_id: Annotated[str, InjectedToolCallId]) -> Any:
            """Leave a mark and change the state."""
            self._mark(word)
            return Command(update={"messages": [ToolMessage(f"ordered {word}", tool_call_id=tool_call_id)]})

        @tool(response_format="content_and_artifact")  # type: ignore[untyped-decorator]
        def both(word: str) -> Any:
            """Leave a mark, with an artifact."""
            self._mark(word)
            return [{"type": "text", "text": f"marked {word}"}], {"word": word, "list": [1, None]}

        @tool  # type: ignore[untyped-decorator]
        async def awaited(word: str) -> str:
            """Leave a mark, awaited."""
            self._mark(word)
            return f"marked {word}"

        return [mark, slow, pair, fail, command, both, awaited]

    def _mark(self, word: str) -> None:
        self.marks.append(word)
        (self.root / word).write_text(word)

    def run(self, kind: Kind, mode: str, *, memory: bool) -> Any:
        """What became of the agent, over all its attempts."""
        return self.attempts.live(lambda layer: self.work(layer, kind, mode, memory=memory))

    def work(self, layer: Layer, kind: Kind, mode: str, *, memory: bool) -> AgentOutcome:
        graph = kind(self, InMemorySaver() if memory else None)
        return work_until_accepted(graph, layer, "do it", mode=mode, keeps_messages=memory)

    def check_replay(self, kind: Kind, mode: str, *, memory: bool) -> None:
        """The run again, from the log only."""
        requests, marks = len(self.server.requests), list(self.marks)
        layer = self.attempts.replayed(lambda layer: self.work(layer, kind, mode, memory=memory))
        assert layer.remaining == 0
        assert layer.served > 0
        assert (len(self.server.requests), self.marks) == (requests, marks)


def created(world: World, memory: Any) -> Any:
    """LangChain's agent, joined by the middleware."""
    return create_agent(
        world.model(),
        world.tools(),
        system_prompt=PROMPT,
        middleware=[BrokenCalls(), RewindMiddleware()],
        checkpointer=memory,
    )


def built(world: World, memory: Any) -> Any:
    """A graph built by hand, joined at its `ToolNode`."""
    tools = [*world.tools(), *agentrewind.rewind_tools("langchain")]
    model = world.model().bind_tools(tools)
    system = SystemMessage("\n\n".join(filter(None, (PROMPT, agentrewind.rewind_guidance()))))

    def ask(state: MessagesState) -> dict[str, Any]:
        return {"messages": [model.invoke([system, *state["messages"]])]}

    async def aask(state: MessagesState) -> dict[str, Any]:
        return {"messages": [await model.ainvoke([system, *state["messages"]])]}

    graph = StateGraph(MessagesState)
    graph.add_node("ask", RunnableLambda(ask, afunc=aask))
    graph.add_node("tools", ToolNode(tools, handle_tool_errors=False, **tool_wrappers()))
    graph.add_edge(START, "ask")
    graph.add_conditional_edges("ask", tools_condition)
    graph.add_edge("tools", "ask")
    return graph.compile(checkpointer=memory)


@contextmanager
def world(base: Path, policy: Policy, *, rewinds: bool = True, check: str | None = None) -> Iterator[World]:
    strategy = Strategy.REWIND if rewinds else Strategy.CONTINUE
    with ScriptedModel(policy) as server:
        yield World(base, server, RunOptions(task="do it", strategy=strategy, check=check))
