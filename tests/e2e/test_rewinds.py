"""Stories of going back: files and context together, once, several times, inside one another."""

from __future__ import annotations

import json

import pytest

from agentrewind.records import LlmNode, RewindDone, ToolNode
from harness_adapters.scripted import ScriptedAnswer, ScriptedRequest, Step
from tests.e2e.laws import check_laws, live_nodes
from tests.e2e.stage import Stage
from tests.e2e.steps import (
    SUBMIT,
    back,
    commit,
    look,
    marked,
    results,
    shell,
    story,
    submit,
    uid_of,
    work,
)
from tests.workspace.disk import differences

pytestmark = pytest.mark.slow


def test_one_rewind(stage: Stage) -> None:
    stage.write("kept.txt", "as it was\n")
    stage.policy = story(
        work("one", "echo one > one.txt"),
        work("two", "mkdir -p d/e && echo two > d/e/two.txt && chmod 640 one.txt"),
        work("three", "rm -r d kept.txt; echo worse > one.txt; ln -s /etc/passwd link"),
        look(),
        back("three", "NOTE_A"),
        NOTE_A=[work("better", "echo better >> d/e/two.txt"), submit()],
    )
    ended = stage.start()
    assert (ended.code, ended.result["state"], ended.result["rewinds"]) == (0, "accepted", 1)
    assert stage.marks == ["one", "two", "three", "better"]
    assert stage.read("d/e/two.txt") == "two\nbetter\n"
    assert stage.read("kept.txt") == "as it was\n"
    assert (stage.root / "one.txt").stat().st_mode & 0o777 == 0o640
    assert not (stage.root / "link").is_symlink()
    assert ended.result["nodes"] == 14
    check_laws(stage)


def test_three_rewinds_one_of_them_inside_a_rewound_suffix(stage: Stage) -> None:
    stage.policy = story(
        work("a", "echo a > a"),
        work("b", "echo b > b"),
        work("c", "rm a; echo c > c"),
        look("l1"),
        back("b", "NOTE_ONE"),
        NOTE_ONE=[work("d", "echo d > d"), work("e", "rm d a"), look("l2"), back("e", "NOTE_TWO")],
        NOTE_TWO=[work("f", "echo f > f"), look("l3"), back("a", "NOTE_THREE")],
        NOTE_THREE=[work("g", "echo g > g"), submit()],
    )
    ended = stage.start()
    assert (ended.code, ended.result["rewinds"], ended.result["segments"]) == (0, 3, 4)
    assert stage.marks == ["a", "b", "c", "d", "e", "f", "g"]
    assert [path.name for path in stage.root.iterdir()] == ["g"]
    assert [asked.memory for asked in stage.timeline.rewinds()] == ["NOTE_ONE", "NOTE_TWO", "NOTE_THREE"]
    check_laws(stage)


def test_three_hundred_nodes_and_one_rewind(stage: Stage) -> None:
    steps: list[Step] = [ScriptedAnswer(f"say-n{n}", [shell("true")]) for n in range(150)]
    stage.policy = story(
        *steps,
        work("late", "echo late > late"),
        look(),
        back("late", "NOTE_A"),
        NOTE_A=[work("other", "echo other > other"), submit()],
    )
    ended = stage.start()
    assert (ended.code, ended.result["rewinds"]) == (0, 1), ended.result
    assert ended.result["nodes"] > 300
    check_laws(stage)
    sizes = [len(line) for line in stage.run.segment_path(0).read_bytes().splitlines()]
    early, late = sum(sizes[40:240]), sum(sizes[440:640])
    assert late < 1.2 * early, "a line grows with the history before it"


def test_two_equal_prompts_are_answered_differently(stage: Stage) -> None:
    def numbered(request: ScriptedRequest) -> ScriptedAnswer:
        """Whatever the prompt, the answer is a new one."""
        told = any("NOTE_A" in str(each["content"]) for each in request.messages if each["role"] == "system")
        if request.turn < 3:
            return work(f"n{request.number}", f"echo {request.number} > {request.turn}")
        if told:
            return ScriptedAnswer(f"say-end{request.number}", [shell(SUBMIT)])
        if request.turn == 3:
            return look(f"look{request.number}")
        return ScriptedAnswer(f"say-b{request.number}", [commit(uid_of(request, "n6"), "NOTE_A")])

    stage.policy = numbered
    ended = stage.start(harness="tests.e2e.twice:Twice")
    assert (ended.code, ended.result["rewinds"]) == (0, 1), ended.result
    prompts = [json.dumps(list(map(dict, each.request.messages))) for each in stage.arrivals[:10]]
    assert prompts[0::2] == prompts[1::2]
    # the first of the pair at the checkpoint came from the log, the second was the one live call
    assert stage.marks == ["n2", "n4", "n6", "n11"]
    assert stage.read("2") == "11\n"
    check_laws(stage)


def test_an_agent_that_asks_again_at_once_for_unknown_and_abandoned_points(stage: Stage) -> None:
    abandoned: list[str] = []

    def remember(request: ScriptedRequest) -> ScriptedAnswer:
        abandoned.append(uid_of(request, "b"))
        return ScriptedAnswer("say-go", [commit(abandoned[0], "NOTE_A")])

    def again(_request: ScriptedRequest) -> ScriptedAnswer:
        return ScriptedAnswer("say-again", [commit(abandoned[0], "never")])

    stage.policy = story(
        work("a", "echo a > a"),
        work("b", "echo b > b"),
        look("l1"),
        remember,
        NOTE_A=[
            again,
            ScriptedAnswer("say-unknown", [commit("rec_999999", "never")]),
            ScriptedAnswer("say-empty", [("backtrack_commit", {"record_uid": ""})]),
            ScriptedAnswer("say-odd", [("backtrack_commit", "no json")]),
            look("l2"),
            back("a", "NOTE_B"),
        ],
        NOTE_B=[work("c", "echo c > c"), submit()],
    )
    ended = stage.start()
    assert (ended.code, ended.result["rewinds"]) == (0, 2), ended.result
    said = results(stage.arrivals[-3].request)
    refused = [json.loads(each)["error"] for each in said if '"error"' in each]
    assert "abandoned" in refused[0]
    assert "rec_000001" in refused[0]
    assert "rec_999999" in refused[1]
    assert "rec_000001" in refused[1]
    assert "record_uid" in refused[2]
    assert "JSON" in refused[3]
    assert stage.marks == ["a", "b", "c"]
    assert [path.name for path in stage.root.iterdir()] == ["c"]
    check_laws(stage)


def test_no_more_rewinds_than_allowed(stage: Stage) -> None:
    stage.policy = story(
        work("a"),
        look("l1"),
        back("a", "NOTE_A"),
        NOTE_A=[work("b"), look("l2"), back("b", "never"), work("c"), submit()],
    )
    ended = stage.start(max_rewinds=1)
    assert (ended.code, ended.result["rewinds"]) == (0, 1), ended.result
    said = results(stage.arrivals[-1].request)
    assert json.loads(said[1])["rewinds_left"] == 0
    assert "No rewind is left (of 1)" in said[2]
    assert stage.marks == ["a", "b", "c"]
    check_laws(stage)


def test_the_memory_as_a_user_message(stage: Stage) -> None:
    stage.policy = story(
        work("a"), work("b"), look("l1"), back("b", "NOTE_A"), NOTE_A=[work("c"), work("d"), submit()]
    )
    ended = stage.start(memory_role="user")
    assert ended.code == 0
    roles = [message["role"] for message in stage.arrivals[4].request.messages]
    assert roles == ["system", "user", "assistant", "tool", "user"]
    check_laws(stage)


def test_ablation_the_files_stay(stage: Stage) -> None:
    stage.policy = story(
        work("a", "echo a > a"),
        work("b", "rm a; echo b > b"),
        look("l1"),
        back("b", "NOTE_A"),
        NOTE_A=[work("c", "echo c > c"), submit()],
    )
    ended = stage.start(ablations=["environment"])
    assert (ended.code, ended.result["rewinds"]) == (0, 1)
    assert sorted(path.name for path in stage.root.iterdir()) == ["b", "c"]
    assert differences(stage.arrivals[4].files, stage.arrivals[3].files) == []
    memory = stage.arrivals[4].request.messages[-1]["content"]
    assert "NOT put back" in memory
    assert not stage.run.segment_path(1).read_bytes().count(b'"outside_change"')
    check_laws(stage, files=False)


def test_ablation_the_memory_is_left_behind(stage: Stage) -> None:
    asked = iter([work("a", "echo a > a"), work("b", "rm a"), look("l1"), back("b", "NOTE_A")])
    later = iter([work("c", "echo c > c"), submit()])

    def policy(request: ScriptedRequest) -> ScriptedAnswer:
        step = next(asked, None) or next(later)
        return step if isinstance(step, ScriptedAnswer) else step(request)

    stage.policy = policy
    ended = stage.start(ablations=["memory"])
    assert (ended.code, ended.result["rewinds"]) == (0, 1)
    assert list(stage.arrivals[4].request.messages) == list(stage.arrivals[1].request.messages)
    assert sorted(path.name for path in stage.root.iterdir()) == ["a", "c"]
    check_laws(stage)


def test_ablation_the_context_goes_on(stage: Stage) -> None:
    stage.policy = story(
        work("a", "echo a > a"),
        work("b", "rm a; echo b > b"),
        look("l1"),
        back("b", "NOTE_A"),
        work("c", "echo c > c"),
        submit(),
    )
    ended = stage.start(ablations=["context"])
    assert (ended.code, ended.result["rewinds"], ended.result["segments"]) == (0, 1, 1)
    assert sorted(path.name for path in stage.root.iterdir()) == ["a", "c"]
    assert differences(stage.arrivals[4].files, stage.arrivals[1].files) == []
    assert "say-back-NOTE_A" in [each.get("content") for each in stage.arrivals[4].request.messages]
    assert len(stage.arrivals) == 6
    assert not any(isinstance(event, RewindDone) for event in stage.timeline.events())
    check_laws(stage)


def test_three_calls_in_one_answer_are_no_place_to_go_back_into(stage: Stage) -> None:
    three = [shell(marked(f"t{n}", f"echo {n} > t{n}")) for n in (1, 2, 3)]

    def into_the_middle(request: ScriptedRequest) -> ScriptedAnswer:
        middle = int(uid_of(request, "three").removeprefix("rec_")) + 2
        return ScriptedAnswer("say-middle", [commit(f"rec_{middle:06d}", "never")])

    stage.policy = story(
        work("a"),
        ScriptedAnswer("say-three", three),
        work("b", "rm t1"),
        look("l1"),
        into_the_middle,
        back("b", "NOTE_A"),
        NOTE_A=[work("c"), submit()],
    )
    ended = stage.start()
    assert (ended.code, ended.result["rewinds"]) == (0, 1)
    refused = results(stage.arrivals[5].request)[-1]
    assert "rec_000005 is a tool call" in refused
    assert "rec_000003" in refused
    assert stage.marks == ["a", "t1", "t2", "t3", "b", "c"]
    check_laws(stage)


def test_a_commit_beside_other_calls_runs_those_before_it_only(stage: Stage) -> None:
    def beside(request: ScriptedRequest) -> ScriptedAnswer:
        calls = [
            shell(marked("before", "echo before > before")),
            commit(uid_of(request, "b"), "NOTE_A"),
            shell(marked("behind", "echo behind > behind")),
        ]
        return ScriptedAnswer("say-beside", calls)

    def refused(_request: ScriptedRequest) -> ScriptedAnswer:
        calls = [shell(marked("x")), commit("rec_777777", "never"), shell(marked("y"))]
        return ScriptedAnswer("say-refused", calls)

    stage.policy = story(
        work("a"),
        work("b", "echo b > b"),
        look("l1"),
        beside,
        NOTE_A=[refused, submit()],
    )
    ended = stage.start()
    assert (ended.code, ended.result["rewinds"]) == (0, 1)
    assert stage.marks == ["a", "b", "before", "x", "y"]
    assert list(stage.root.iterdir()) == []
    check_laws(stage)
    ran = [
        node.arguments["command"]
        for node in stage.timeline.nodes.values()
        if isinstance(node, ToolNode) and isinstance(node.arguments, dict) and "command" in node.arguments
    ]
    assert not [each for each in ran if "behind" in str(each)]
    assert len(live_nodes(stage.timeline, 1)) == 2
    assert all(isinstance(node, LlmNode | ToolNode) for node in stage.timeline.path())
