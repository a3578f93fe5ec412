"""The layer as an adapter sees it: tools that run once, results that come back, submissions and verdicts."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from agentrewind.errors import AgentRewindError, DamagedError, DivergenceError, HarnessError, UsageError
from agentrewind.layer import INTERRUPTED, Layer
from agentrewind.options import RunOptions, Strategy
from agentrewind.records import JsonObject, Started, Submission, ToolNode
from agentrewind.replayer import OnDivergence
from agentrewind.rewind.signal import StopSignal
from tests.capture.plain import START, Provider, ask, grown, says
from tests.core.stage import Stage

REPOSITORY = Path(__file__).parents[2]


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage.create(tmp_path)


def never() -> object:
    raise AssertionError("a tool ran that must not run")


def calls(*ids: str, name: str = "bash") -> JsonObject:
    return says("I call.", *((each, name, "{}") for each in ids))


def tools(stage: Stage) -> list[ToolNode]:
    return [node for node in stage.timeline.path() if isinstance(node, ToolNode)]


class Effects:
    """A tool with a side effect outside the workspace that can be counted."""

    def __init__(self, file: Path) -> None:
        self._file = file
        file.touch()

    def __call__(self, name: str) -> str:
        with self._file.open("a") as out:
            out.write(name + "\n")
        return f"did {name}"

    @property
    def done(self) -> list[str]:
        return self._file.read_text().split()


def test_tools_run_once_and_their_results_come_back(stage: Stage, tmp_path: Path) -> None:
    effects = Effects(tmp_path / "effects")
    provider = Provider([calls("call_1", "call_2"), calls("call_1")])

    def agent(layer: Layer) -> list[object]:
        values: list[object] = []
        first = ask(layer, provider, START)
        for call_id in ("call_1", "call_2"):
            values.append(
                layer.run_tool("bash", {"n": call_id}, lambda: effects("x"), tool_call_id=call_id).value
            )
        ask(layer, provider, grown(START, first, "did x", "did x"))
        # an id that an earlier answer used as well
        values.append(layer.run_tool("bash", {"n": 3}, lambda: effects("y"), tool_call_id="call_1").value)
        return values

    with stage.live() as layer:
        live = agent(layer)
    assert live == ["did x", "did x", "did y"]
    assert agent(stage.replay()) == live
    with stage.live() as layer:
        assert agent(layer) == live
    assert effects.done == ["x", "x", "y"]
    assert [(node.parent, node.tool_call_id) for node in tools(stage)] == [
        ("rec_000001", "call_1"),
        ("rec_000001", "call_2"),
        ("rec_000004", "call_1"),
    ]


def test_results_of_one_answer_come_back_in_any_order(stage: Stage) -> None:
    provider = Provider([calls("a", "b")])
    with stage.live() as layer:
        ask(layer, provider, START)
        for call_id in "ab":
            layer.run_tool("bash", {"id": call_id}, partial(str, call_id), tool_call_id=call_id)
    replay = stage.replay()
    ask(replay, provider, START)
    for call_id in "ba":
        result = replay.run_tool("bash", {"id": call_id}, never, tool_call_id=call_id)
        assert (result.value, result.served) == (call_id, True)


@pytest.mark.parametrize("ids", [("call_1", "call_2"), (None, None)])
def test_without_ids_equal_calls_are_told_apart_by_their_number(
    stage: Stage, ids: tuple[str | None, ...]
) -> None:
    provider = Provider([says("no calls")])
    with stage.live() as layer:
        ask(layer, provider, START)
        live = [
            layer.run_tool("bash", {}, partial(str, number), tool_call_id=ids[0]).value for number in range(3)
        ]
    replay = stage.replay()
    ask(replay, provider, START)
    assert [replay.run_tool("bash", {}, never, tool_call_id=ids[0]).value for _ in range(3)] == live


def test_what_a_tool_raises_is_raised_again_as_its_own(stage: Stage, tmp_path: Path) -> None:
    provider = Provider([calls("call_1", "call_2", "call_3")])

    def missing() -> object:
        return (tmp_path / "missing").read_text()

    def ours() -> object:
        raise UsageError("raised by a tool that uses this package itself")

    def agent(layer: Layer, first: object, second: object) -> None:
        ask(layer, provider, START)
        assert callable(first)
        assert callable(second)
        with pytest.raises(FileNotFoundError) as caught:
            layer.run_tool("read", {}, first, tool_call_id="call_1")
        assert (caught.value.errno, caught.value.filename) == (2, str(tmp_path / "missing"))
        with pytest.raises(UsageError, match="uses this package itself"):
            layer.run_tool("ours", {}, second, tool_call_id="call_2")
        assert layer.latch.reason is None

    with stage.live() as layer:
        agent(layer, missing, ours)
    agent(stage.replay(), never, never)
    with stage.live() as layer:
        agent(layer, never, never)
        assert layer.run_tool("bash", {}, lambda: "on", tool_call_id="call_3").value == "on"


def test_a_failure_that_cannot_be_built_again_stops_the_process(stage: Stage) -> None:
    class LocalError(Exception):
        pass

    def fail() -> object:
        raise LocalError("x")

    provider = Provider([calls("call_1")])
    with stage.live() as layer:
        ask(layer, provider, START)
        with pytest.raises(LocalError):
            layer.run_tool("bash", {}, fail, tool_call_id="call_1")
    replay = stage.replay()
    ask(replay, provider, START)
    with pytest.raises(StopSignal):
        replay.run_tool("bash", {}, never, tool_call_id="call_1")
    assert isinstance(replay.latch.error, DamagedError)


def test_a_result_that_cannot_be_recorded_stops_the_process(stage: Stage) -> None:
    with stage.live() as layer:
        ask(layer, Provider(), START)
        with pytest.raises(StopSignal):
            layer.run_tool("bash", {}, object)
        assert isinstance(layer.latch.error, UsageError)


def test_results_keep_bytes_and_lose_tuples_now_as_later(stage: Stage) -> None:
    with stage.live() as layer:
        ask(layer, Provider(), START)
        live = layer.run_tool("bash", {"raw": b"\xff"}, lambda: {"out": b"\xff\x00", "pair": (1, 2)})
    assert live.value == {"out": b"\xff\x00", "pair": [1, 2]}
    replay = stage.replay()
    ask(replay, Provider(), START)
    assert replay.run_tool("bash", {"raw": b"\xff"}, never).value == live.value


def test_other_arguments_stop_the_process_with_the_difference(stage: Stage) -> None:
    provider = Provider([calls("call_1")])
    with stage.live() as layer:
        ask(layer, provider, START)
        layer.run_tool("bash", {"command": "ls"}, lambda: "ok", tool_call_id="call_1")
    with stage.live() as layer:
        ask(layer, provider, START)
        with pytest.raises(StopSignal):
            layer.run_tool("bash", {"command": "rm"}, never, tool_call_id="call_1")
        error = layer.latch.error
    assert isinstance(error, DivergenceError)
    assert error.record_uid == "rec_000002"
    assert "recorded 'ls', asked 'rm'" in error.difference
    with stage.live(on_divergence=OnDivergence.POSITION) as layer:
        ask(layer, provider, START)
        assert layer.run_tool("bash", {"command": "rm"}, never, tool_call_id="call_1").value == "ok"
    assert len(stage.warnings) == 1


KILLED = """
import os, pathlib, signal, sys
from tests.capture.plain import START, Provider, ask, says
from tests.core.stage import Stage
from agentrewind.run_store import Run
directory = pathlib.Path(sys.argv[1])
run = Run(pathlib.Path(sys.argv[2]))
stage = Stage(root=directory / "workspace", run=run, store=directory / "snapshots.git")
answer = says("Three.", *((f"call_{n}", "bash", "{}") for n in (1, 2, 3)))
def die():
    (stage.root / "half").write_text("done")
    os.kill(os.getpid(), signal.SIGKILL)
with stage.live() as layer:
    ask(layer, Provider([answer]), START)
    layer.run_tool("bash", {"n": 1}, lambda: "one", tool_call_id="call_1")
    layer.run_tool("bash", {"n": 2}, die, tool_call_id="call_2")
"""


def test_a_call_whose_process_died_is_told_and_not_repeated(stage: Stage, tmp_path: Path) -> None:
    command = [sys.executable, "-c", KILLED, str(tmp_path), str(stage.run.directory)]
    killed = subprocess.run(
        command, cwd=REPOSITORY, env={**os.environ, "PYTHONPATH": str(REPOSITORY)}, check=False
    )
    assert killed.returncode == -9

    def agent(layer: Layer, third: object) -> list[object]:
        assert callable(third)
        ask(layer, Provider(), START)
        return [
            layer.run_tool("bash", {"n": 1}, never, tool_call_id="call_1").value,
            layer.run_tool(
                "bash", {"n": 2}, never, tool_call_id="call_2", interrupted=lambda text: {"failed": text}
            ).value,
            layer.run_tool("bash", {"n": 3}, third, tool_call_id="call_3").value,
        ]

    with stage.live() as layer:
        results = agent(layer, lambda: "three")
    assert results == ["one", {"failed": INTERRUPTED}, "three"]
    one, two, three = tools(stage)
    assert (one.interrupted, two.interrupted, three.interrupted) == (False, True, False)
    # what it did before it died is told as its change, not as a change from outside
    assert [change.path for change in two.metadata.workspaces["ws0"].diff_summary] == [b"half"]
    assert len({node.record_uid for node in stage.timeline.path()}) == 4
    # from here on it is a result like any other
    assert agent(stage.replay(), never) == results
    with stage.live() as layer:
        assert agent(layer, never) == results


# --- submissions ---


def checked(directory: Path, command: str, **options: object) -> Stage:
    return Stage.create(directory, options=RunOptions(task="mend", check=command, **options))  # type: ignore[arg-type]


def test_a_verdict_is_given_once_and_served_from_the_log(tmp_path: Path) -> None:
    counter = tmp_path / "checks"
    stage = checked(tmp_path, f"echo ran >> {counter}; echo 'criterion: C1'; echo no index; exit 1")
    provider = Provider()

    def agent(layer: Layer) -> str:
        ask(layer, provider, START)
        result = layer.submit(layer.run_tool("bash", {}, lambda: "submitted").record_uid)
        assert (result.accepted, result.final) == (False, False)
        return result.feedback

    with stage.live() as layer:
        feedback = agent(layer)
    assert "no index" in feedback
    assert agent(stage.replay()) == feedback
    with stage.live() as layer:
        assert agent(layer) == feedback
    assert counter.read_text() == "ran\n"


def test_five_identical_failures_end_the_run_over_all_its_processes(tmp_path: Path) -> None:
    stage = checked(tmp_path, "echo 'criterion: C1'; date +%N; exit 1")
    finals: list[bool] = []
    for _ in range(5):
        with stage.live() as layer:
            history, final = START, False
            for past in range(len(finals) + 1):
                answer = ask(layer, Provider([says(f"answer {past}")]), history)
                uid = layer.run_tool("bash", {}, lambda: "submitted").record_uid
                final = layer.submit(uid).final
                history = grown(history, answer)
            finals.append(final)
    assert finals == [False, False, False, False, True]
    submissions = stage.timeline.submissions()
    assert [each.repeated for each in submissions] == [1, 2, 3, 4, 5]


def test_the_check_sees_the_workspace_as_the_tool_left_it_and_it_is_snapshotted_first(tmp_path: Path) -> None:
    stage = checked(tmp_path, "test -e result && echo spoilt > result")
    with stage.live() as layer:
        ask(layer, Provider(), START)
        made = layer.run_tool("bash", {}, lambda: (stage.root / "result").write_text("3"))
        result = layer.submit(made.record_uid)
    assert (result.accepted, result.final, result.feedback) == (True, True, "")
    (node,) = tools(stage)
    assert [(change.status, change.path) for change in node.metadata.workspaces["ws0"].diff_summary] == [
        ("A", b"result")
    ]


def test_without_a_check_a_submission_is_accepted(stage: Stage) -> None:
    with stage.live() as layer:
        ask(layer, Provider(), START)
        assert layer.submit_last().accepted
    assert [type(each) for each in stage.records].count(Submission) == 1


def test_nothing_can_be_submitted_before_the_first_answer(stage: Stage) -> None:
    with stage.live() as layer, pytest.raises(StopSignal):
        layer.submit_last()


def test_a_verdict_that_the_log_lacks_is_not_made_up_in_a_replay(tmp_path: Path) -> None:
    stage = checked(tmp_path, "exit 0")
    with stage.live() as layer:
        ask(layer, Provider(), START)
    replay = stage.replay()
    ask(replay, Provider(), START)
    with pytest.raises(StopSignal):
        replay.submit_last()
    assert isinstance(replay.latch.error, DivergenceError)


# --- the rewind tools ---


def test_only_the_rewind_strategy_offers_them(stage: Stage, tmp_path: Path) -> None:
    other = Stage.create(tmp_path / "other", options=RunOptions(task="mend", strategy=Strategy.CONTINUE))
    with stage.live() as layer:
        assert len(layer.rewind_tools) == 2
        assert "backtrack_commit" in layer.guidance
        assert layer.is_rewind_tool("backtrack_candidates")
    with other.live() as layer:
        assert layer.rewind_tools == []
        assert layer.guidance == ""
        assert not layer.is_rewind_tool("backtrack_candidates")
        ask(layer, Provider(), START)
        # then it is a tool of the harness like any other
        assert layer.run_tool("backtrack_candidates", {}, lambda: "mine").value == "mine"


def test_candidates_are_recorded_and_served_like_any_result(stage: Stage) -> None:
    def agent(layer: Layer) -> object:
        ask(layer, Provider(), START)
        result = layer.run_tool("backtrack_candidates", {"reason": "lost"}, never, tool_call_id="call_1")
        assert isinstance(result.value, str)
        return json.loads(result.value)

    with stage.live() as layer:
        live = agent(layer)
    assert agent(stage.replay()) == live


def test_a_started_call_names_tool_parent_and_place(stage: Stage) -> None:
    with stage.live() as layer:
        ask(layer, Provider([calls("call_1")]), START)
        layer.run_tool("bash", {}, lambda: "ok", tool_call_id="call_1")
    (started,) = [each for each in stage.records if isinstance(each, Started) and each.tool_name]
    assert (started.tool_name, started.tool_call_id, started.parent, started.ordinal) == (
        "bash",
        "call_1",
        "rec_000001",
        0,
    )


def test_an_error_of_ours_in_an_adapter_ends_the_process_too(stage: Stage) -> None:
    with stage.live() as layer:
        with pytest.raises(StopSignal), layer.collecting():
            raise UsageError("the harness is too old")
        assert isinstance(layer.latch.error, AgentRewindError)
        with pytest.raises(StopSignal):
            ask(layer, Provider(), START)


def test_a_check_that_cannot_judge_ends_the_process_without_a_verdict(tmp_path: Path) -> None:
    stage = Stage.create(tmp_path, options=RunOptions(task="mend", check="echo broken; exit 125"))
    provider = Provider([says("Done.")])
    with stage.live() as layer:
        ask(layer, provider, START)
        with pytest.raises(StopSignal):
            layer.submit_last()
        assert isinstance(layer.latch.error, HarnessError)
    assert stage.timeline.submissions() == ()


@pytest.mark.parametrize("limit", [1, 3])
def test_the_run_ends_at_the_number_of_failures_that_it_was_given(tmp_path: Path, limit: int) -> None:
    options = RunOptions(task="mend", check="exit 1", repeated_failures=limit)
    stage = Stage.create(tmp_path, options=options)
    provider = Provider([says("Done.") for _ in range(limit)])
    with stage.live() as layer:
        messages = START
        for turn in range(1, limit + 1):
            answer = ask(layer, provider, messages)
            assert layer.submit_last().final is (turn == limit)
            messages = [*messages, *grown([], answer), {"role": "user", "content": "Again."}]
