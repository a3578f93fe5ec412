"""Graphs of LangChain and LangGraph in all their ways: rewound, replayed, submitted, over real HTTP."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agentrewind.records import MAIN_WORKSPACE, LlmNode, ToolNode
from harness_adapters.scripted import ScriptedAnswer, ScriptedRequest
from tests.e2e.steps import back, commit, look, story, uid_of

pytest.importorskip("langchain")
pytest.importorskip("langchain_openai")

from tests.adapters.graphs import Kind, World, built, created, world

pytestmark = [
    # of the clients' own making
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::PendingDeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

MODES = ("invoke", "stream", "ainvoke", "astream")
KINDS = (pytest.param(created, id="created"), pytest.param(built, id="built"))


def call(say: str, *calls: tuple[str, str]) -> ScriptedAnswer:
    return ScriptedAnswer(f"say-{say}", [(name, {"word": word}) for name, word in calls])


def end(say: str = "end") -> ScriptedAnswer:
    return ScriptedAnswer(f"say-{say}")


def tools(found: World) -> list[ToolNode]:
    return [node for node in found.attempts.path if isinstance(node, ToolNode)]


def several(request: ScriptedRequest) -> ScriptedAnswer:
    """A commit between other calls."""
    calls: list[tuple[str, dict[str, str]]] = [
        ("slow", {"word": "before"}),
        commit(uid_of(request, "two"), "NOTE_A"),
        ("mark", {"word": "never"}),
        ("awaited" if request.stream else "slow", {"word": "never"}),
    ]
    return ScriptedAnswer("say-several", calls)


@pytest.mark.parametrize(
    ("mode", "kind", "memory"),
    [
        *((mode, created, mode in ("invoke", "astream")) for mode in MODES),
        *((mode, built, mode not in ("invoke", "astream")) for mode in MODES),
    ],
)
def test_going_back_from_among_parallel_calls(tmp_path: Path, mode: str, kind: Kind, *, memory: bool) -> None:
    policy = story(
        call("one", ("mark", "one")),
        call("two", ("pair", "left"), ("pair", "right")),
        look(),
        several,
        NOTE_A=[call("three", ("mark", "three")), look("l2"), back("three", "NOTE_B")],
        NOTE_B=[call("four", ("mark", "four"), ("mark", "five")), end()],
    )
    with world(tmp_path, policy) as found:
        outcome = found.run(kind, mode, memory=memory)
        assert outcome.state == "accepted"
        assert found.marks[0] == "one"
        assert sorted(found.marks[1:3]) == ["left", "right"]
        assert found.marks[3:5] == ["before", "three"]
        assert sorted(found.marks[5:]) == ["five", "four"]
        assert sorted(path.name for path in found.root.iterdir()) == ["five", "four", "one"]
        last = found.server.requests[-1].messages
        roles = [message["role"] for message in last]
        assert roles == ["system", "user", "assistant", "tool", "system", "assistant", "tool", "tool"]
        assert "NOTE_A" in str(last[4]["content"])
        assert "NOTE_B" in str(last[4]["content"])
        assert "left" not in str(last)
        assert not [request.refusal for request in found.server.requests if request.refusal]
        found.check_replay(kind, mode, memory=memory)


@pytest.mark.parametrize("mode", ["invoke", "ainvoke"])
def test_a_change_under_calls_that_overlap_is_attributed_to_all_of_them(tmp_path: Path, mode: str) -> None:
    with world(tmp_path, story(call("two", ("pair", "left"), ("pair", "right")), end())) as found:
        found.run(created, mode, memory=False)
        spans = [node.metadata.workspaces[MAIN_WORKSPACE] for node in tools(found)]
        assert [{change.path for change in span.diff_summary} for span in spans] == [{b"left", b"right"}] * 2


@pytest.mark.parametrize(
    ("mode", "memory"), [("invoke", True), ("stream", False), ("ainvoke", False), ("astream", True)]
)
def test_a_rejected_answer_goes_back_into_the_same_loop(tmp_path: Path, mode: str, *, memory: bool) -> None:
    policy = story(call("one", ("mark", "one")), end("first"), call("two", ("mark", "ready")), end("second"))
    check = "test -e ready && exit 0; echo 'criterion: ready'; echo no file; exit 1"
    with world(tmp_path, policy, check=check) as found:
        assert found.run(created, mode, memory=memory).state == "accepted"
        last = found.server.requests[-1].messages
        assert [message["role"] for message in last] == [
            *("system", "user", "assistant", "tool", "assistant", "user", "assistant", "tool")
        ]
        assert "no file" in str(last[5]["content"])
        assert len(found.attempts.run.timeline().submissions()) == 2
        found.check_replay(created, mode, memory=memory)


def test_five_times_the_same_failure_ends_the_run(tmp_path: Path) -> None:
    with world(tmp_path, story(*[end(str(n)) for n in range(9)]), check="echo no; exit 1") as found:
        assert found.run(created, "invoke", memory=False).state == "rejected"
        assert len(found.server.requests) == 5


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("mode", ["invoke", "ainvoke"])
def test_results_of_every_form_come_back_on_replay(tmp_path: Path, mode: str, kind: Kind) -> None:
    calls = call("all", ("command", "one"), ("both", "two"), ("mark", "three"), ("unknown", "four"))
    with world(tmp_path, story(calls, end())) as found:
        found.run(kind, mode, memory=False)
        told = {
            message["tool_call_id"]: message["content"] for message in found.server.requests[1].messages[3:]
        }
        assert told["call_1"] == "ordered one"
        assert told["call_2"] == [{"type": "text", "text": "marked two"}]
        assert "unknown is not a valid tool" in told["call_4"]
        assert len(tools(found)) == 4
        found.check_replay(kind, mode, memory=False)


@pytest.mark.parametrize("mode", MODES)
def test_what_a_tool_raises_is_raised_live_and_on_replay(tmp_path: Path, mode: str) -> None:
    with world(tmp_path, story(call("one", ("fail", "one")))) as found:
        for run in (found.run, found.check_replay):
            with pytest.raises(KeyError) as caught:
                run(created, mode, memory=False)
            assert caught.value.args == ("one", 7)
        assert found.marks == ["one"]


def test_arguments_that_are_no_json_are_told_and_are_no_submission(tmp_path: Path) -> None:
    policy = story(
        ScriptedAnswer("say-broken", [("mark", '{"word": "on')]),
        ScriptedAnswer("say-half", [("mark", '{"word": "on'), ("mark", {"word": "two"})]),
        end(),
    )
    with world(tmp_path, policy) as found:
        assert found.run(created, "invoke", memory=False).state == "accepted"
        assert found.marks == ["two"]
        assert not [request.refusal for request in found.server.requests if request.refusal]
        assert "no JSON object" in str(found.server.requests[1].messages[-1]["content"])
        found.check_replay(created, "invoke", memory=False)


def test_refused_commits_let_the_calls_behind_them_run(tmp_path: Path) -> None:
    refused = ScriptedAnswer(
        "say-refused",
        [("mark", {"word": "x"}), commit("rec_777777", "never"), ("mark", {"word": "y"})],
    )
    with world(tmp_path, story(refused, end())) as found:
        found.run(created, "invoke", memory=False)
        assert found.marks == ["x", "y"]
        assert "rec_777777" in str(found.server.requests[1].messages[-2]["content"])


def test_without_rewind_nothing_is_added(tmp_path: Path) -> None:
    with world(tmp_path, story(call("one", ("mark", "one")), end()), rewinds=False) as found:
        found.run(created, "invoke", memory=False)
        request = found.server.requests[0]
        assert request.messages[0]["content"] == "You are a test."
        assert not [name for name in request.tool_names if name.startswith("backtrack")]


def test_nodes_carry_names_arguments_and_ids(tmp_path: Path) -> None:
    with world(tmp_path, story(call("two", ("mark", "left"), ("mark", "right")), end())) as found:
        found.run(created, "invoke", memory=False)
        parent = next(node for node in found.attempts.path if isinstance(node, LlmNode))
        seen: dict[Any, Any] = {node.tool_call_id: node for node in tools(found)}
        assert {key: (node.tool_name, node.arguments) for key, node in seen.items()} == {
            "call_1": ("mark", {"word": "left"}),
            "call_2": ("mark", {"word": "right"}),
        }
        assert {node.parent for node in seen.values()} == {parent.record_uid}
