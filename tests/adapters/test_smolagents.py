"""Agents of smolagents that a user built himself: joined, rewound, replayed, over HTTP to a scripted one."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from agentrewind.adapters import Assignment
from agentrewind.errors import DivergenceError, UsageError
from agentrewind.layer import Layer
from agentrewind.options import RunOptions, Strategy
from agentrewind.records import LlmNode, ToolNode
from agentrewind.rewind.signal import EndReason, RewindSignal
from harness_adapters.scripted import Policy, ScriptedAnswer, ScriptedModel, ScriptedRequest
from harness_adapters.scripted_request import text_of
from tests.adapters.attempts import Attempts
from tests.adapters.code_steps import back, candidates, code, final, look, story, told, uid_of

os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")

smolagents = pytest.importorskip("smolagents")
adapter = pytest.importorskip("harness_adapters.smolagents")

pytestmark = [
    # of the clients' own making
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

QUIET = smolagents.LogLevel.OFF
Build = Callable[..., Any]


class World:
    """A scripted model, a run, and tools that leave a mark whenever they really run."""

    def __init__(self, base: Path, server: ScriptedModel, options: RunOptions) -> None:
        self.server = server
        self.attempts = Attempts(base=base, options=options)
        self.marks: list[str] = []

    def model(self, kind: str = "litellm") -> Any:
        given = {"api_base": self.server.base_url, "api_key": "none-needed"}
        if kind == "openai":
            return smolagents.OpenAIModel("scripted", **given)
        return smolagents.LiteLLMModel("openai/scripted", **given)

    def tools(self) -> list[Any]:
        @smolagents.tool  # type: ignore[untyped-decorator]
        def mark(word: str) -> str:
            """Leave a mark.

            Args:
                word: the mark.
            """
            self.marks.append(word)
            return f"marked {word}"

        @smolagents.tool  # type: ignore[untyped-decorator]
        def pair(word: str) -> Any:
            """Two words.

            Args:
                word: the word.
            """
            self.marks.append(word)
            return (word, word)

        @smolagents.tool  # type: ignore[untyped-decorator]
        def writer(word: str) -> Any:
            """An object that acts.

            Args:
                word: where it begins.
            """
            self.marks.append(word)
            return Writer(self.marks)

        return [mark, pair, writer]

    def agent(self, cls: Any = None, model: str = "litellm", **given: Any) -> Any:
        given.setdefault("tools", self.tools())
        cls = cls or smolagents.CodeAgent
        return cls(model=self.model(model), verbosity_level=QUIET, **given)

    def run(self, build: Callable[[], Any]) -> Any:
        return self.attempts.live(lambda layer: self.acted(build, layer))

    def acted(self, build: Callable[[], Any], layer: Layer) -> Any:
        agent = build()
        adapter.attach(agent, layer)
        return agent.run("do it")

    def check_replay(self, build: Callable[[], Any]) -> None:
        """The run again, from the log only."""
        requests, marks = len(self.server.requests), list(self.marks)
        layer = self.attempts.replayed(lambda layer: self.acted(build, layer))
        assert layer.remaining == 0
        assert layer.served > 0
        assert (len(self.server.requests), self.marks) == (requests, marks)


class Writer:
    """Something that acts when it is used, and cannot be carried to another process."""

    def __init__(self, marks: list[str]) -> None:
        self._marks = marks

    def write(self, word: str) -> int:
        self._marks.append(word)
        return len(self._marks)

    def __reduce__(self) -> Any:
        raise TypeError("it is connected")


@contextmanager
def world(base: Path, policy: Policy, *, rewinds: bool = True) -> Iterator[World]:
    strategy = Strategy.REWIND if rewinds else Strategy.CONTINUE
    with ScriptedModel(policy) as server:
        yield World(base, server, RunOptions(task="do it", strategy=strategy))


def call(say: str, *calls: tuple[str, dict[str, Any]]) -> ScriptedAnswer:
    return ScriptedAnswer(f"say-{say}", calls)


def as_list(value: Any) -> list[Any]:
    assert isinstance(value, list)
    return value


STEPS = (
    code("one", "word = mark('one')\nprint(word)\nsum([1, 2])"),
    code("two", "def f(x):\n    return 1 / x\nprint('before')\nf(0)"),
    code("three", "import os"),
    ScriptedAnswer("no code at all"),
    code("four", "for each in pair('four'):\n    print(each, word)"),
    final("word"),
)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("model", ["litellm", "openai"])
def test_recording_changes_nothing(tmp_path: Path, model: str, stream: bool) -> None:
    with ScriptedModel(story(*STEPS)) as server:
        bare = World(tmp_path, server, RunOptions(task="x"))
        expected = bare.agent(model=model, stream_outputs=stream).run("do it")
        requests = [request.raw for request in server.requests]
    with world(tmp_path / "joined", story(*STEPS), rewinds=False) as joined:

        def build() -> Any:
            return joined.agent(model=model, stream_outputs=stream)

        found = joined.run(build)
        assert found == expected == "marked one"
        assert type(found) is type(expected)
        assert joined.marks == bare.marks == ["one", "four"]
        assert [request.raw for request in joined.server.requests] == requests
        joined.check_replay(build)


def test_tool_calls_are_the_same_too(tmp_path: Path) -> None:
    steps = (
        call("one", ("mark", {"word": "a"})),
        call("two", ("mark", {"word": "b"}), ("mark", {"word": "b"})),
        call("three", ("mark", {"wrong": "c"})),
        call("four", ("nothing", {})),
        call("five", ("final_answer", {"answer": "done"})),
    )
    with ScriptedModel(story(*steps)) as server:
        bare = World(tmp_path, server, RunOptions(task="x"))
        expected = bare.agent(smolagents.ToolCallingAgent).run("do it")
        requests = [request.raw for request in server.requests]
    with world(tmp_path / "joined", story(*steps), rewinds=False) as joined:

        def build() -> Any:
            return joined.agent(smolagents.ToolCallingAgent)

        found = joined.run(build)
        assert (found, type(found)) == (expected, type(expected))
        assert [request.raw for request in joined.server.requests] == requests
        assert joined.marks == ["a", "b", "b"]
        joined.check_replay(build)


def test_a_signal_that_agent_code_swallows_ends_the_attempt(tmp_path: Path) -> None:
    def swallow(request: ScriptedRequest) -> ScriptedAnswer:
        commit = f"backtrack_commit(record_uid={uid_of(request, 'two')!r}, memory_summary='NOTE_A')"
        return code(
            "swallow",
            f"def f():\n    try:\n        {commit}\n    finally:\n        return 1\nf()\nprint('still here')",
        )

    steps = (code("one", "x = mark('one')"), code("two", "mark('two')"), look(), swallow)
    with world(tmp_path, story(*steps, NOTE_A=[final("x + '!'")])) as found:
        assert found.run(found.agent) == "marked one!"
        assert found.marks == ["one", "two"]
        assert len(found.server.requests) == 5
        found.check_replay(found.agent)


def test_a_signal_lost_with_an_abandoned_stream_is_in_the_latch(tmp_path: Path) -> None:
    steps = (code("one", "mark('one')"), code("two", "mark('two')"), look(), back("two", "NOTE_A"))
    with world(tmp_path, story(*steps, NOTE_A=[final("'end'")])) as found:
        abandoned: list[EndReason | None] = []

        def act(layer: Layer) -> Any:
            agent = found.agent()
            adapter.attach(agent, layer)
            actions = 0
            for step in agent.run("do it", stream=True):
                if isinstance(step, smolagents.ActionStep):
                    actions += 1
                    if actions == 4:
                        break
                if isinstance(step, smolagents.FinalAnswerStep):
                    return step.output
            abandoned.append(layer.latch.reason)
            with pytest.raises(RewindSignal):
                agent.run("another task")
            return None

        assert found.attempts.live(act) == "end"
        assert abandoned == [EndReason.REWIND]
        assert found.marks == ["one", "two"]


@pytest.mark.parametrize("imports", [[], ["json"]], ids=["again", "once"])
def test_managed_agents_and_plans_belong_to_the_run(tmp_path: Path, imports: list[str]) -> None:
    def answer(request: ScriptedRequest) -> ScriptedAnswer:
        text = text_of(request.messages[-1])
        if request.tools:
            done = any(message["role"] == "assistant" for message in request.messages)
            step = ("final_answer", {"answer": "helped"}) if done else ("mark", {"word": "helper"})
            return ScriptedAnswer("say-helper", [step])
        if "facts" in text and "<code>" not in text_of(request.messages[0]):
            return ScriptedAnswer("the plan")
        return main(request)

    steps = (
        code("one", "said = helper(task='help me')\nmark('after')\nprint(len(said) > 10)"),
        code("two", "mark('two')"),
        look(),
        back("two", "NOTE_A"),
    )
    counted = story(*steps, NOTE_A=[code("three", "print('helped' in said)\nmark('three')"), final("'end'")])

    def main(request: ScriptedRequest) -> ScriptedAnswer:
        return counted(request)

    with world(tmp_path, answer) as found:

        def build() -> Any:
            helper = found.agent(
                smolagents.ToolCallingAgent, name="helper", description="It helps.", tools=found.tools()
            )
            return found.agent(managed_agents=[helper], additional_authorized_imports=imports)

        assert found.run(build) == "end"
        assert found.marks == ["helper", "after", "two", "three"]
        assert "True" in told(found.server.requests[-1])[-1]
        parents = {node.tool_name: node.parent for node in found.attempts.path if isinstance(node, ToolNode)}
        talks = {node.conversation for node in found.attempts.path if isinstance(node, LlmNode)}
        assert len(talks) == (1 if imports else 2)
        assert parents["mark"] is not None
        held = [
            node.output
            for node in found.attempts.path
            if getattr(node, "tool_name", "") == "python_interpreter"
        ]
        said = [
            each for output in held if isinstance(output, dict) for each in as_list(output["model_calls"])
        ]
        assert len(said) == (2 if imports else 0)
        assert all(isinstance(each, dict) and each["model"] == "openai/scripted" for each in said)
        found.check_replay(build)


def test_planning_steps_are_served_too(tmp_path: Path) -> None:
    def answer(request: ScriptedRequest) -> ScriptedAnswer:
        if "<code>" not in text_of(request.messages[0]):
            return ScriptedAnswer("the plan")
        turn = sum("say-" in text_of(message) for message in request.messages)
        return (code("one", "mark('one')"), code("two", "mark('two')"), final("'end'"))[turn]

    with world(tmp_path, answer) as found:

        def build() -> Any:
            return found.agent(planning_interval=2)

        assert found.run(build) == "end"
        assert len([node for node in found.attempts.path if isinstance(node, LlmNode)]) > 3
        found.check_replay(build)


def test_objects_that_act_are_not_used_a_second_time(tmp_path: Path) -> None:
    steps = (
        code("one", "both = pair('one')\nout = writer('open')\nout.write('acted')\nprint(type(both), both)"),
        code("two", "mark('two')"),
        look(),
        back("two", "NOTE_A"),
    )
    later = [code("three", "print(both)\nout.write('again')"), final("str(both)")]
    with world(tmp_path, story(*steps, NOTE_A=later)) as found:
        assert found.run(found.agent) == "('one', 'one')"
        assert found.marks == ["one", "open", "acted", "two"]
        assert "out could not be brought back (" in told(found.server.requests[-1])[-1]
        memory = [
            text_of(each) for each in found.server.requests[-1].messages[1:] if each["role"] == "system"
        ]
        assert "out (" in memory[0]
        found.check_replay(found.agent)


def test_code_that_comes_to_something_else_is_a_divergence(tmp_path: Path) -> None:
    class Counter:
        """Says the same of itself and gives something else each time."""

        def __init__(self) -> None:
            self.count = 0

        def __repr__(self) -> str:
            return "counter"

        def next(self) -> int:
            self.count += 1
            return self.count

    counter = Counter()
    with world(tmp_path, story(code("one", "print(counter.next())"), final("'end'"))) as found:

        def act(layer: Layer) -> Any:
            agent = found.agent()
            adapter.attach(agent, layer)
            return agent.run("do it", additional_args={"counter": counter})

        assert found.attempts.live(act) == "end"
        with pytest.raises(DivergenceError, match=r"rec_000001.*printed.*'1.*'2"):
            found.attempts.replayed(act)


def test_the_clock_is_read_once(tmp_path: Path) -> None:
    steps = (
        code("one", "import time\nbegan = time.time()\nprint(began)"),
        code("two", "mark('two')\nprint(time.time())"),
        look(),
        back("two", "NOTE_A"),
    )
    with world(tmp_path, story(*steps, NOTE_A=[final("str(began)")])) as found:
        assert str(found.run(found.agent)) in told(found.server.requests[1])[-1]
        found.check_replay(found.agent)


def test_what_cannot_be_joined_is_refused(tmp_path: Path) -> None:
    class Mute(smolagents.Model):  # type: ignore[misc,name-defined]
        """A model that calls nobody."""

    class Elsewhere(smolagents.local_python_executor.PythonExecutor):  # type: ignore[misc,name-defined]
        def send_tools(self, tools: Any) -> None: ...
        def send_variables(self, variables: Any) -> None: ...
        def __call__(self, code_action: str) -> Any: ...

    with world(tmp_path, story()) as found:

        def refused(agent: Any, match: str) -> None:
            def act(layer: Layer) -> None:
                with pytest.raises(UsageError, match=match):
                    adapter.attach(agent, layer)

            found.attempts.live(act)

        mute = smolagents.CodeAgent(tools=[], model=Mute(), verbosity_level=QUIET)
        refused(mute, "Mute calls its provider")
        refused(found.agent(executor=Elsewhere()), "Elsewhere cannot be brought back")
        refused("an agent", "is no agent of smolagents")
        twice = found.agent()
        found.attempts.live(lambda layer: adapter.attach(twice, layer) and None)
        refused(twice, "is joined to a layer already")


def test_a_rewind_into_a_managed_agent_s_own_loop(tmp_path: Path) -> None:
    def answer(request: ScriptedRequest) -> ScriptedAnswer:
        if request.tools:
            turn = sum(message["role"] == "assistant" for message in request.messages)
            if "NOTE_A" in str(request.messages):
                return call("better", ("final_answer", {"answer": "a better way"}))
            word = {"word": f"helper{turn}"}
            return call(
                f"helper{turn}", ("mark", word) if turn < 2 else ("final_answer", {"answer": "this way"})
            )
        return main(request)

    def go_back(request: ScriptedRequest) -> ScriptedAnswer:
        uid = next(each["record_uid"] for each in candidates(request) if each["summary"] == "say-helper1")
        return code("back", f"backtrack_commit(record_uid={uid!r}, memory_summary='NOTE_A')")

    main = story(
        code("one", "mark('first')\nsaid = helper(task='help me')\nprint(said)"),
        lambda request: final("said[-30:]") if "a better way" in told(request)[-1] else code("look", LOOK),
        go_back,
    )
    with world(tmp_path, answer) as found:

        def build() -> Any:
            helper = found.agent(smolagents.ToolCallingAgent, name="helper", description="It helps.")
            return found.agent(managed_agents=[helper])

        assert "a better way" in found.run(build)
        assert found.marks == ["first", "helper0", "helper1"]
        found.check_replay(build)


LOOK = "print(backtrack_candidates(reason='why'))"


def test_an_agent_that_runs_out_of_steps_is_stopped(tmp_path: Path) -> None:
    def answer(request: ScriptedRequest) -> ScriptedAnswer:
        return code("on", "mark('on')") if "def mark(" in str(request.messages) else ScriptedAnswer("the end")

    with world(tmp_path, answer) as found:

        def act(layer: Layer) -> Any:
            agent = found.agent(max_steps=2)
            joined = adapter.attach(agent, layer)
            agent.run("do it")
            return joined.outcome().state

        assert found.attempts.live(act) == "stopped"
        assert found.marks == ["on", "on"]


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"agent": "other"}, "no agent 'other'; settings.agent is one of code, tool_calling"),
        ({"imports": "os"}, "is a list of modules"),
        ({"agent": "tool_calling", "imports": ["os"]}, "for the agent `code` only"),
        ({"config": ["stream"]}, "as NAME=VALUE, not 'stream'"),
        ({"config": ["speed=9"]}, "no setting 'speed'; known: agent, imports"),
    ],
)
def test_settings_that_make_no_sense_are_named(tmp_path: Path, settings: Any, match: str) -> None:
    assignment = Assignment(task="x", model="openai/scripted", workspace=tmp_path, settings=settings)
    with pytest.raises(UsageError, match=match):
        adapter.SmolagentsAdapter().build(assignment)


def test_settings_build_the_agent_they_name(tmp_path: Path) -> None:
    settings: Any = {"config": ["agent=tool_calling", "stream=true", "max_steps=3"]}
    agent = adapter.SmolagentsAdapter().build(
        Assignment(task="x", model="openai/scripted", workspace=tmp_path, settings=settings)
    )
    assert isinstance(agent, smolagents.ToolCallingAgent)
    assert (agent.stream_outputs, agent.max_steps) == (True, 3)
    (tmp_path / "made").mkdir()
    assert agent.tools["write_file"](path="made/new/a.txt", text="text") == 4
    assert agent.tools["read_file"](path="made/new/a.txt") == "text"
    assert agent.tools["bash"]("ls made; false") == {"output": "new\n", "returncode": 1}
