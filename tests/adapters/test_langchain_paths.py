"""Odd ways through a graph: retries, swallowed signals, interrupts, agents within tools, no layer at all."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentrewind.current import set_layer
from agentrewind.errors import UsageError
from agentrewind.jsonform import to_json
from agentrewind.layer import Layer
from agentrewind.records import ToolNode
from agentrewind.rewind.signal import EndReason, RewindSignal
from harness_adapters.scripted import ScriptedAnswer, ScriptedRequest
from tests.e2e.steps import back, look, story

pytest.importorskip("langchain_openai")

from harness_adapters.langchain import RewindMiddleware, tool_wrappers
from harness_adapters.langchain_values import decode_result, encode_result
from tests.adapters.graphs import PROMPT, World, created, world

agents = pytest.importorskip("langchain.agents")
middleware = pytest.importorskip("langchain.agents.middleware")
messages = pytest.importorskip("langchain_core.messages")
tools_module = pytest.importorskip("langchain_core.tools")
memory = pytest.importorskip("langgraph.checkpoint.memory")
types = pytest.importorskip("langgraph.types")
errors = pytest.importorskip("langgraph.errors")

pytestmark = [
    # of the clients' own making
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::PendingDeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


def call(say: str, name: str, word: str) -> ScriptedAnswer:
    return ScriptedAnswer(f"say-{say}", [(name, {"word": word})])


def end(say: str = "end") -> ScriptedAnswer:
    return ScriptedAnswer(f"say-{say}")


def nodes(found: World) -> list[ToolNode]:
    return [node for node in found.attempts.path if isinstance(node, ToolNode)]


def test_a_middleware_that_retries_lets_the_signal_out_and_its_attempts_are_told_apart(
    tmp_path: Path,
) -> None:
    def retrying(found: World, keeps: Any) -> Any:
        retry = middleware.ToolRetryMiddleware(max_retries=1, initial_delay=0, jitter=False)
        return agents.create_agent(
            found.model(),
            found.tools(),
            system_prompt=PROMPT,
            middleware=[retry, RewindMiddleware()],
            checkpointer=keeps,
        )

    policy = story(
        call("one", "mark", "one"),
        call("two", "fail", "two"),
        look(),
        back("two", "NOTE_A"),
        NOTE_A=[call("three", "fail", "three"), end()],
    )
    with world(tmp_path, policy) as found:
        assert found.run(retrying, "ainvoke", memory=False).state == "accepted"
        assert found.marks == ["one", "two", "two", "three", "three"]
        assert [(node.ordinal, node.error is not None) for node in nodes(found)] == [
            *((0, False), (0, True), (1, True))
        ]
        found.check_replay(retrying, "ainvoke", memory=False)


def test_a_signal_that_is_swallowed_ends_at_the_latch(tmp_path: Path) -> None:
    """`gather(return_exceptions=True)` keeps whatever it gets; the next hook raises the signal again."""
    loud = story(call("one", "mark", "one"), look(), back("one", "NOTE_A"), NOTE_A=[end()])

    def policy(request: ScriptedRequest) -> ScriptedAnswer:
        return end("quiet") if request.told("be quiet") else loud(request)

    with world(tmp_path, policy) as found:
        seen: list[Any] = []

        async def both() -> list[str]:
            graph = created(found, None)
            quiet = await graph.ainvoke({"messages": [("user", "be quiet")]})
            asked = graph.ainvoke({"messages": [("user", "do it")]})
            return [
                type(each).__name__ for each in (quiet, *await asyncio.gather(asked, return_exceptions=True))
            ]

        def act(layer: Layer) -> None:
            seen.append(asyncio.run(both()))
            if layer.latch.reason is EndReason.REWIND:
                with pytest.raises(RewindSignal):
                    layer.run_tool("mark", {}, pytest.fail)

        found.attempts.live(act)
        assert seen == [["dict", "RewindSignal"], ["dict", "dict"]]
        assert found.marks == ["one"]
        assert [request.told("NOTE_A") for request in found.server.requests] == [False] * 4 + [True]


def test_a_graph_that_asks_somebody_goes_on_and_replays(tmp_path: Path) -> None:
    with world(tmp_path, story(call("one", "ask", "one"), end())) as found:

        def ask(word: str) -> str:
            """Ask somebody."""
            said = types.interrupt({"question": word})
            found.marks.append(said)
            return f"heard {said}"

        asking = tools_module.StructuredTool.from_function(ask)

        def act(_: Layer | None = None) -> list[Any]:
            graph = agents.create_agent(
                found.model(), [asking], middleware=[RewindMiddleware()], checkpointer=memory.InMemorySaver()
            )
            thread = {"configurable": {"thread_id": "t"}}
            first = graph.invoke({"messages": [("user", "do it")]}, thread)
            asked = [each.value for each in first["__interrupt__"]]
            last = graph.invoke(types.Command(resume="yes"), thread)
            return [asked, last["messages"][-2].content, last["messages"][-1].content]

        expected = [[{"question": "one"}], "heard yes", "say-end"]
        assert found.attempts.live(act) == expected
        assert found.marks == ["yes"]
        replayed: list[Any] = []
        found.attempts.replayed(lambda _: replayed.append(act()))
        assert replayed == [expected]
        assert (found.marks, len(found.server.requests)) == (["yes"], 2)


@pytest.mark.parametrize("mode", ["invoke", "ainvoke"])
def test_a_graph_that_is_asked_to_stop_has_not_failed_and_goes_on_later(tmp_path: Path, mode: str) -> None:
    """What was cut off in a tool has no end in the log: it is told as interrupted, and never runs again."""
    asked: list[str] = []

    def drained(word: str) -> str:
        """Work in a graph of one's own, which is asked to stop."""
        asked.append(word)
        raise errors.GraphDrained("shutdown")

    def kind(found: World, keeps: Any) -> Any:
        tools = [*found.tools(), tools_module.StructuredTool.from_function(drained)]
        return agents.create_agent(
            found.model(), tools, system_prompt=PROMPT, middleware=[RewindMiddleware()], checkpointer=keeps
        )

    with world(tmp_path, story(call("one", "mark", "one"), call("two", "drained", "two"), end())) as found:
        outcome = found.run(kind, mode, memory=False)
        assert (outcome.state, "shutdown" in outcome.detail) == ("stopped", True)
        assert [(node.tool_name, node.error) for node in nodes(found)] == [("mark", None)]
        assert found.run(kind, mode, memory=False).state == "accepted"
        assert asked == ["two"]
        assert [node.interrupted for node in nodes(found)] == [False, True]
        found.check_replay(kind, mode, memory=False)


@pytest.mark.parametrize("mode", ["invoke", "ainvoke"])
def test_an_agent_within_a_tool_belongs_to_the_tools_node(tmp_path: Path, mode: str) -> None:
    def policy(request: ScriptedRequest) -> ScriptedAnswer:
        inner = "You are inner." in str(request.messages[0]["content"])
        steps = (
            [call("in", "mark", "inner"), end("inner")] if inner else [call("out", "delegate", "x"), end()]
        )
        return steps[request.turn]

    with world(tmp_path, policy) as found:

        def outer(one: World, keeps: Any) -> Any:
            inner = agents.create_agent(
                one.model(), one.tools(), system_prompt="You are inner.", middleware=[RewindMiddleware()]
            )

            def delegate(word: str) -> str:
                """Let another agent do it."""
                return str(inner.invoke({"messages": [("user", word)]})["messages"][-1].content)

            return agents.create_agent(
                one.model(),
                [tools_module.StructuredTool.from_function(delegate)],
                middleware=[RewindMiddleware()],
                checkpointer=keeps,
            )

        assert found.run(outer, mode, memory=False).state == "accepted"
        assert found.marks == ["inner"]
        assert [node.tool_name for node in nodes(found)] == ["delegate"]
        assert len(found.attempts.path) == 3
        found.check_replay(outer, mode, memory=False)


def test_a_result_that_cannot_be_recorded_stops_the_run_and_says_where(tmp_path: Path) -> None:
    def odd(word: str) -> Any:
        """Give something odd."""
        return "text", {"set": {word}}

    def graph(one: World, keeps: Any) -> Any:
        tool = tools_module.StructuredTool.from_function(odd, response_format="content_and_artifact")
        return agents.create_agent(one.model(), [tool], middleware=[RewindMiddleware()], checkpointer=keeps)

    with world(tmp_path, story(call("one", "odd", "x"), end())) as found:
        with pytest.raises(UsageError, match=r"artifact\.set.*a set is neither JSON"):
            found.run(graph, "invoke", memory=False)
        assert len(found.server.requests) == 1


def test_without_a_layer_the_middleware_changes_nothing(tmp_path: Path) -> None:
    set_layer(None)
    assert tool_wrappers() == {}
    with world(tmp_path, story(call("one", "mark", "one"), end())) as found:
        result = created(found, None).invoke({"messages": [("user", "do it")]})
        assert [type(each).__name__ for each in result["messages"]] == [
            *("HumanMessage", "AIMessage", "ToolMessage", "AIMessage")
        ]
        assert found.server.requests[0].messages[0]["content"] == PROMPT
        assert not [name for name in found.server.requests[0].tool_names if name.startswith("backtrack")]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**40), 2**40) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["a", "$message", "$tuple", "returned", "content"]), inner, max_size=2
        )
    ),
    max_leaves=8,
)


@st.composite
def tool_messages(draw: st.DrawFn) -> Any:
    content = draw(st.text(max_size=20) | st.just('{"exit_code": 3, "output": ""}'))
    return messages.ToolMessage(
        content=content,
        tool_call_id="call_1",
        name=draw(st.none() | st.text(max_size=4)),
        status=draw(st.sampled_from(["success", "error"])),
        artifact=draw(JSON),
        additional_kwargs=draw(st.just({}) | st.dictionaries(st.text(max_size=3), JSON, max_size=2)),
    )


RESULTS = st.one_of(
    tool_messages(),
    st.lists(tool_messages(), max_size=2),
    st.builds(
        lambda update, goto: types.Command(update=update, goto=goto),
        st.none()
        | st.dictionaries(st.text(max_size=3), JSON | st.lists(tool_messages(), max_size=2), max_size=2)
        | st.lists(st.tuples(st.text(max_size=3), JSON), max_size=2),
        st.text(max_size=4) | st.lists(st.builds(types.Send, st.text(max_size=3), JSON), max_size=2),
    ),
)


@given(value=RESULTS)
def test_a_result_survives_the_log(value: Any) -> None:
    logged = json.loads(json.dumps(to_json(encode_result(value))))
    assert decode_result(logged, tool_call_id="call_1") == value
