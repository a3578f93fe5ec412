"""Steps of graphs in the log: which node ran in which step, once each, in no way of a replay."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agentrewind.graph_steps import TOPIC, GraphStep, step_of
from agentrewind.records import Event, LlmNode, Note, ToolNode
from harness_adapters.scripted import ScriptedAnswer, ScriptedRequest
from tests.cli.desk import Desk
from tests.e2e.steps import back, look, story

pytest.importorskip("langchain_openai")

from tests.adapters.graphs import Kind, World, built, created, world

graph_module = pytest.importorskip("langgraph.graph")

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::PendingDeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


def notes(found: World, segment: int) -> list[str]:
    events = found.attempts.run.timeline().events(segment)
    return [each.text for each in events if isinstance(each, Note) and _begins(each)]


def _begins(event: Event) -> bool:
    return isinstance(event, Note) and event.topic == TOPIC and "record_uid" not in event.data


def mark(say: str) -> ScriptedAnswer:
    return ScriptedAnswer(f"say-{say}", [("mark", {"word": say})])


@pytest.mark.parametrize("mode", ["invoke", "ainvoke", "stream", "astream"])
@pytest.mark.parametrize(("kind", "asks"), [(created, "model"), (built, "ask")])
def test_each_step_is_written_once_whatever_is_rewound_and_replayed(
    tmp_path: Path, mode: str, kind: Kind, asks: str
) -> None:
    policy = story(
        mark("one"), mark("two"), look(), back("two", "NOTE_A"), NOTE_A=[mark("three"), ScriptedAnswer("end")]
    )
    with world(tmp_path, policy) as found:
        assert found.run(kind, mode, memory=False).state == "accepted"
        before = notes(found, 0), notes(found, 1)
        found.check_replay(kind, mode, memory=False)
    first = [text for text in before[0] if not text.split(", ")[1].startswith("BrokenCalls")]
    second = [text for text in before[1] if not text.split(", ")[1].startswith("BrokenCalls")]
    names = [text.split(", ")[1] for text in first]
    assert names == [asks, "tools"] * 4
    # the step of the checkpoint began in the first segment
    assert [text.split(", ")[1] for text in second] == ["tools", asks]
    steps = [int(text.split()[1].rstrip(",")) for text in first]
    assert steps == sorted(set(steps))
    assert (notes(found, 0), notes(found, 1)) == before
    timeline = found.attempts.run.timeline()
    for node in timeline.nodes.values():
        step = step_of(timeline, node.record_uid)
        assert step is not None
        assert step.place == (asks if isinstance(node, LlmNode) else "tools",)


def _branches(found: World) -> Any:
    """Two branches at once, one of them a graph of its own."""

    def asking(word: str) -> Any:
        def ask(state: Any) -> dict[str, Any]:
            return {"messages": [found.model().invoke([("system", word), ("user", "go")])]}

        return ask

    inner = graph_module.StateGraph(graph_module.MessagesState)
    inner.add_node("within", asking("inner"))
    inner.add_edge(graph_module.START, "within")
    outer = graph_module.StateGraph(graph_module.MessagesState)
    outer.add_node("left", asking("outer"))
    outer.add_node("right", inner.compile())
    outer.add_edge(graph_module.START, "left")
    outer.add_edge(graph_module.START, "right")
    return outer.compile()


def test_branches_and_graphs_within_are_named_and_shown(tmp_path: Path) -> None:
    def policy(request: ScriptedRequest) -> ScriptedAnswer:
        return ScriptedAnswer(f"heard {request.messages[0]['content']}")

    with world(tmp_path, policy) as found:

        def act(_: object) -> Any:
            _branches(found).invoke({"messages": []})

        found.attempts.live(act)
        assert sorted(notes(found, 0)) == ["step 1, left", "step 1, right", "step 1, right/within"]
        found.attempts.replayed(act)
        run = found.attempts.run
        timeline = run.timeline()
        answers = {
            str(node.output["content"]): node
            for node in timeline.path()
            if isinstance(node, LlmNode) and node.output
        }
        left = step_of(timeline, answers["heard outer"].record_uid)
        right = step_of(timeline, answers["heard inner"].record_uid)
        assert (left, right) == (
            GraphStep(step=1, place=("left",)),
            GraphStep(step=1, place=("right", "within")),
        )
        desk = Desk(base=tmp_path)
        environment = desk.environment(AGENTREWIND_HOME=str(found.attempts.home))

        def said(*arguments: str) -> str:
            return desk.call(*arguments, environment=environment).stdout

        told = said("log", run.run_id)
        assert "graph: step 1, right/within" in told
        assert told.count("right/within") == 1
        uid = answers["heard inner"].record_uid
        shown = json.loads(said("show", run.run_id, uid, "--json"))
        assert shown["graph"] == {"step": 1, "place": ["right", "within"]}
        assert "in step 1 of the graph, right/within" in said("show", run.run_id, uid)


def test_a_graph_within_a_tool_is_part_of_the_tools_node(tmp_path: Path) -> None:
    with world(tmp_path, story(mark("one"), ScriptedAnswer("end"))) as found:
        from langchain_core.runnables import RunnableLambda

        def quiet(state: Any) -> dict[str, Any]:
            return {"messages": []}

        def act(layer: Any) -> Any:
            inner = graph_module.StateGraph(graph_module.MessagesState)
            inner.add_node("quiet", RunnableLambda(quiet))
            inner.add_edge(graph_module.START, "quiet")
            graph = inner.compile()
            graph.invoke({"messages": []})
            return layer.run_tool("t", {}, lambda: str(graph.invoke({"messages": []})))

        found.attempts.live(act)
        assert notes(found, 0) == ["step 1, quiet"]
        assert [type(node) for node in found.attempts.path] == [ToolNode]
