"""What holds of every harness of the table: real packages, real processes, HTTP to a scripted model."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agentrewind.adapters import ADAPTERS
from agentrewind.launch import OFFLINE_SETTINGS
from agentrewind.records import LlmNode, ToolNode
from agentrewind.replay_outcome import Replay
from agentrewind.replaying import replay_run
from harness_adapters.scripted import ScriptedAnswer, ScriptedRequest, Step
from tests.adapters.code_steps import story
from tests.contracts.dialects import VARIANTS, Call, Variant
from tests.e2e.laws import check_laws
from tests.e2e.stage import Stage
from tests.e2e.steps import CANDIDATES, commit, marked, shell

pytestmark = pytest.mark.slow

SOAK = bool(os.environ.get("AGENTREWIND_SOAK"))
BARE = Path(__file__).with_name("bare.py")
CHECK = "test -e ready && exit 0; echo 'criterion: ready'; echo there is no file; exit 1"


@pytest.fixture(params=VARIANTS)
def variant(request: pytest.FixtureRequest) -> Variant:
    found = VARIANTS[str(request.param)]
    pytest.importorskip(ADAPTERS[found.harness].needs)
    return found


@pytest.fixture(
    params=VARIANTS if SOAK else {each.harness: name for name, each in reversed(VARIANTS.items())}.values()
)
def one_a_harness(request: pytest.FixtureRequest) -> Variant:
    """The first variant of each harness: the others go through the same code here; all of them in a soak."""
    found = VARIANTS[str(request.param)]
    pytest.importorskip(ADAPTERS[found.harness].needs)
    return found


def test_every_harness_of_the_table_is_among_them() -> None:
    assert {each.harness for each in VARIANTS.values()} == set(ADAPTERS)


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    with Stage(base=tmp_path, policy=story()) as made:
        yield made


class Script:
    """Answers in a harness's dialect."""

    def __init__(self, variant: Variant) -> None:
        self.dialect = variant.dialect

    def work(self, mark: str, command: str = "true") -> ScriptedAnswer:
        return self.dialect.say(mark, [shell(marked(mark, command))])

    def look(self, mark: str = "look") -> ScriptedAnswer:
        return self.dialect.say(mark, [(CANDIDATES, {"reason": "why"})])

    def back(self, to: str, note: str, *, before: list[Call] | None = None, after: list[Call]) -> Step:
        """Go back, from among other calls of the same answer where there can be any."""

        def step(request: ScriptedRequest) -> ScriptedAnswer:
            going = commit(self.dialect.uid_of(request, to), note)
            calls = [*(before or []), going, *after] if self.dialect.several else [going]
            return self.dialect.say(f"back-{note}", calls)

        return step


def replayed(stage: Stage) -> Replay:
    """The run again; nothing may reach the provider or a tool."""
    requests, marks = len(stage.server.requests), stage.marks
    found = replay_run(stage.run, home=stage.home, environment=stage.environment)
    assert (len(stage.server.requests), stage.marks) == (requests, marks)
    return found


def test_rewinds_submissions_and_a_replay(stage: Stage, variant: Variant) -> None:
    script = Script(variant)
    stage.policy = story(
        script.work("one", "mkdir -p d && echo one > d/one.txt"),
        script.work("two", "rm -r d; echo worse > two.txt"),
        script.look(),
        script.back(
            "two",
            "NOTE_A",
            before=[shell(marked("before", "touch before"))],
            after=[shell(marked("never"))],
        ),
        NOTE_A=[
            script.work("three", "cat d/one.txt > three.txt"),
            script.dialect.submit("first"),
            script.look("again"),
            script.back("three", "NOTE_B", after=[shell(marked("never"))]),
        ],
        NOTE_B=[script.work("four", "touch ready"), script.dialect.submit("second")],
    )
    ended = stage.start(harness=variant.harness, settings=variant.settings, check=CHECK)
    assert (ended.code, ended.result["state"], ended.result["rewinds"]) == (0, "accepted", 2), ended
    assert ended.result["submissions"] == 2
    before = ["before"] if script.dialect.several else []
    assert stage.marks == ["one", "two", *before, "three", "four"]
    assert sorted(str(path.relative_to(stage.root)) for path in stage.root.rglob("*")) == [
        *("d", "d/one.txt", "ready")
    ]
    check_laws(stage)
    first, guided = stage.server.requests[0], "backtrack_commit"
    assert guided in str(first.messages[0]["content"])
    rejected = next(each for each in stage.arrivals if "there is no file" in str(each.request.messages))
    assert rejected.request.messages[-1]["role"] in ("user", "tool")
    tools = [node for node in stage.timeline.path() if isinstance(node, ToolNode)]
    assert all(node.parent is not None for node in tools)
    assert [_command(node) for node in tools if node.tool_name == "bash"][:2] == [
        marked("one", "mkdir -p d && echo one > d/one.txt"),
        marked("four", "touch ready"),
    ]
    found = replayed(stage)
    assert (found.divergence, found.remaining, found.state) == (None, 0, "accepted")
    assert found.served == len(stage.timeline.path())


def _command(node: ToolNode) -> Any:
    assert isinstance(node.arguments, dict)
    return node.arguments["command"]


def test_a_kill_and_a_failing_provider_are_survived(stage: Stage, one_a_harness: Variant) -> None:
    script = Script(one_a_harness)
    refused = ScriptedAnswer(None, status=400, body={"error": {"message": "the provider says no"}})
    failing = [refused]

    def third(_: ScriptedRequest) -> ScriptedAnswer:
        return failing.pop() if failing else script.work("three")

    stage.policy = story(
        script.work("one", "echo one > one.txt"),
        script.work("two", "echo half > half.txt; kill -9 $PPID"),
        third,
        script.dialect.submit("end"),
    )
    killed = stage.start(harness=one_a_harness.harness, settings=one_a_harness.settings)
    assert killed.result["state"] == "error"
    refusal = stage.resume()
    assert (refusal.code, refusal.result["state"]) == (1, "error")
    assert "the provider says no" in refusal.result["detail"]
    ended = stage.resume()
    assert (ended.code, ended.result["state"]) == (0, "accepted"), ended
    assert stage.marks == ["one", "two", "three"]
    assert "interrupted" in script.dialect.told(stage.server.requests[-1])
    answers = [node for node in stage.timeline.path() if isinstance(node, LlmNode)]
    assert len(stage.server.requests) == len(answers) + 1


def test_answers_that_make_no_sense_are_recorded_told_and_replayed(
    stage: Stage, one_a_harness: Variant
) -> None:
    dialect, given = one_a_harness.dialect, Script(one_a_harness)
    # by their order: some harnesses put an error in the place of such an answer
    answers = iter([given.work("one"), *dialect.nonsense(), given.work("two"), dialect.submit("end")])
    stage.policy = lambda request: next(answers)
    ended = stage.start(harness=one_a_harness.harness, settings=one_a_harness.settings)
    assert (ended.code, ended.result["state"]) == (0, "accepted"), ended
    assert stage.marks == ["one", "two"]
    assert not [each.request.refusal for each in stage.arrivals if each.request.refusal]
    found = replayed(stage)
    assert (found.divergence, found.remaining, found.state) == (None, 0, "accepted")


def test_a_divergence_ends_the_process_at_once(stage: Stage, one_a_harness: Variant) -> None:
    """None of the harnesses' ways to try again takes the signal of the model's call for a failure of it."""
    script = Script(one_a_harness)
    refused = ScriptedAnswer(None, status=400, body={"error": {"message": "not now"}})
    stage.policy = story(script.work("one"), refused)
    stage.extra["MSWEA_MODEL_RETRY_STOP_AFTER_ATTEMPT"] = "10"
    told = {"TOLD": "do that", "HARNESS": one_a_harness.harness}
    harness = "tests.contracts.told:Told"
    first = stage.start(
        harness=harness, settings=one_a_harness.settings, agent_environment={**told, "TOLD": "do it"}
    )
    assert first.result["state"] == "error", first
    requests = len(stage.server.requests)
    other = stage.resume(agent_environment=told)
    assert (other.code, other.result["state"]) == (3, "error"), other
    assert "do that" in other.result["detail"]
    assert (len(stage.server.requests), stage.marks) == (requests, ["one"])


def test_the_harness_does_what_it_does_without_the_layer(stage: Stage, variant: Variant) -> None:
    script = Script(variant)
    left, right = shell(marked("left")), shell(marked("right", "cat one.txt"))
    pairs = [[left, right]] if script.dialect.several else [[left], [right]]
    stage.policy = story(
        script.work("one", "echo one > one.txt; exit 3"),
        *(script.dialect.say(f"pair-{place}", pair) for place, pair in enumerate(pairs)),
        script.dialect.submit("end"),
    )
    ended = stage.start(harness=variant.harness, settings=variant.settings, strategy="continue")
    assert (ended.code, ended.result["state"]) == (0, "accepted"), ended
    recorded = [_comparable(request) for request in stage.server.requests]
    for path in stage.root.iterdir():
        path.unlink()
    done = subprocess.run(
        [
            *(sys.executable, str(BARE), variant.harness, "openai/scripted", str(stage.root), "do it"),
            json.dumps(variant.settings),
        ],
        env={**OFFLINE_SETTINGS, **stage.environment, "PYTHONHASHSEED": "0"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout.split()[-1]) == (0, "accepted"), done.stderr
    assert [_comparable(request) for request in stage.server.requests[len(recorded) :]] == recorded
    assert sorted(stage.marks) == sorted(["one", "left", "right"] * 2)


def _comparable(request: ScriptedRequest) -> str:
    """The request as it came, but for seeds, which are random, and ids, which count the answers."""
    raw = {name: value for name, value in request.raw.items() if name != "seed"}
    text = str(raw)
    for place, call in enumerate(request.calls):
        text = text.replace(call.call_id, f"<call {place}>")
    return re.sub(r"\bmsg_\d+\b", "<message>", text)
