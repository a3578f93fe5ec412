"""Qwen-Agent's agents, with native tools and with tools in the prompt, over HTTP to a scripted model."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import chdir, contextmanager
from pathlib import Path
from typing import Any, ClassVar

import pytest

from agentrewind.adapters import AgentOutcome, Assignment
from agentrewind.current import set_layer
from agentrewind.errors import UsageError
from agentrewind.layer import Layer
from agentrewind.options import RunOptions, Strategy
from agentrewind.records import LlmNode, ToolNode
from harness_adapters.scripted import Policy, ScriptedAnswer, ScriptedModel, Step
from harness_adapters.scripted_request import text_of
from tests.adapters.attempts import Attempts
from tests.adapters.tagged import in_tags, with_calls
from tests.e2e.steps import back, commit, look, story, uid_of

agents = pytest.importorskip("qwen_agent.agents")
schema = pytest.importorskip("qwen_agent.llm.schema")
tools = pytest.importorskip("qwen_agent.tools.base")
adapter = pytest.importorskip("harness_adapters.qwen_agent")

pytestmark = [
    # of the clients' own making
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

FnCallAgent, Assistant = agents.FnCallAgent, agents.Assistant
AGENTS = (FnCallAgent, Assistant)
NATIVE = (pytest.param(True, id="native"), pytest.param(False, id="prompt"))


class Marking(tools.BaseTool):  # type: ignore[misc, name-defined]
    """A tool that leaves a mark when it really runs."""

    name = "mark"
    description = "Leave a mark."
    parameters: ClassVar[dict[str, Any]] = {
        "type": "object",
        "properties": {"word": {"type": "string"}},
        "required": ["word"],
    }

    def __init__(self, world: World) -> None:
        super().__init__()
        self.world = world

    def call(self, params: str | dict[str, Any], **_: Any) -> Any:
        word = self._verify_json_format_args(params)["word"]
        self.world.marks.append(word)
        (self.world.root / word).write_text(word)
        return self.value(word)

    def value(self, word: str) -> Any:
        return f"marked {word}"


class Items(Marking):
    name = "items"

    def value(self, word: str) -> Any:
        return [schema.ContentItem(text=word), schema.ContentItem(text="second")]


class Plain(Marking):
    name = "plain"

    def value(self, word: str) -> Any:
        return {"word": word, "returncode": 3}


class Fail(Marking):
    name = "fail"

    def value(self, word: str) -> Any:
        raise KeyError(word)


class World:
    def __init__(self, base: Path, server: ScriptedModel, options: RunOptions, *, native: bool) -> None:
        self.server = server
        self.native = native
        self.attempts = Attempts(base=base, options=options)
        self.root = self.attempts.root
        self.marks: list[str] = []

    def agent(self, kind: Any = FnCallAgent, **given: Any) -> Any:
        llm = {
            "model": "scripted",
            "model_type": "oai",
            "model_server": self.server.base_url,
            "api_key": "none-needed",
            "generate_cfg": {"use_raw_api": self.native},
        }
        tools = [Marking(self), Items(self), Plain(self), Fail(self)]
        # the package makes folders for documents wherever it is
        with chdir(self.attempts.base):
            agent = kind(function_list=tools, llm=llm, system_message="You are a test.", **given)
        if self.native:
            adapter.name_results_as_openai(agent.llm)
        return agent

    def run(self, kind: Any = FnCallAgent, **given: Any) -> AgentOutcome:
        outcome = self.attempts.live(lambda layer: self.work(layer, kind, **given))
        assert isinstance(outcome, AgentOutcome)
        return outcome

    def work(self, layer: Layer, kind: Any = FnCallAgent, **given: Any) -> AgentOutcome:
        agent = self.agent(kind)
        adapter.attach(agent, layer)
        outcome: AgentOutcome = adapter.work_until_accepted(agent, layer, "do it", **given)
        return outcome

    def check_replay(self, kind: Any = FnCallAgent, **given: Any) -> None:
        """The run again, from the log only."""
        requests, marks = len(self.server.requests), list(self.marks)
        layer = self.attempts.replayed(lambda layer: self.work(layer, kind, **given))
        assert layer.remaining == 0
        assert layer.served > 0
        assert (len(self.server.requests), self.marks) == (requests, marks)

    @property
    def tools(self) -> list[ToolNode]:
        return [node for node in self.attempts.path if isinstance(node, ToolNode)]

    @property
    def told(self) -> list[str]:
        """The results of tools in the last request."""
        last = self.server.requests[-1]
        messages = (last if self.native else with_calls(last)).messages
        return [text_of(message) for message in messages if message["role"] == "tool"]


@contextmanager
def world(
    base: Path, policy: Policy, *, native: bool = True, rewinds: bool = True, check: str | None = None
) -> Iterator[World]:
    strategy = Strategy.REWIND if rewinds else Strategy.CONTINUE
    options = RunOptions(task="do it", strategy=strategy, check=check)
    with ScriptedModel(policy if native else in_tags(policy)) as server:
        yield World(base, server, options, native=native)


def call(say: str, *calls: tuple[str, str]) -> ScriptedAnswer:
    return ScriptedAnswer(f"say-{say}", [(name, {"word": word}) for name, word in calls])


def end(say: str = "end") -> ScriptedAnswer:
    return ScriptedAnswer(f"say-{say}")


def several(request: Any) -> ScriptedAnswer:
    calls: list[tuple[str, dict[str, str]]] = [
        ("mark", {"word": "before"}),
        commit(uid_of(request, "two"), "NOTE_A"),
        ("mark", {"word": "never"}),
    ]
    return ScriptedAnswer("say-several", calls)


@pytest.mark.parametrize("native", NATIVE)
@pytest.mark.parametrize("kind", AGENTS)
def test_going_back_twice_from_among_other_calls(tmp_path: Path, kind: Any, *, native: bool) -> None:
    policy = story(
        call("one", ("mark", "one")),
        call("two", ("mark", "left"), ("mark", "right")),
        look(),
        several,
        NOTE_A=[call("three", ("mark", "three")), look("l2"), back("three", "NOTE_B")],
        NOTE_B=[call("four", ("mark", "four")), end()],
    )
    with world(tmp_path, policy, native=native) as found:
        assert found.run(kind).state == "accepted"
        assert found.marks == ["one", "left", "right", "before", "three", "four"]
        assert sorted(path.name for path in found.root.iterdir()) == ["four", "one"]
        last = found.server.requests[-1].messages
        roles = [message["role"] for message in last]
        result = "tool" if native else "user"
        assert roles == ["system", "user", "assistant", result, "system", "assistant", result]
        assert "NOTE_A" in text_of(last[4])
        assert "NOTE_B" in text_of(last[4])
        assert "left" not in str(last)
        assert not [request.refusal for request in found.server.requests if request.refusal]
        assert bool(found.server.requests[0].tools) == native
        found.check_replay(kind)


@pytest.mark.parametrize("native", NATIVE)
@pytest.mark.parametrize("kind", AGENTS)
def test_a_rejected_answer_goes_back_into_the_same_loop(tmp_path: Path, kind: Any, *, native: bool) -> None:
    policy = story(call("one", ("mark", "one")), end("first"), call("two", ("mark", "ready")), end("second"))
    check = "test -e ready && exit 0; echo 'criterion: ready'; echo no file; exit 1"
    with world(tmp_path, policy, native=native, check=check) as found:
        assert found.run(kind).state == "accepted"
        assert "no file" in text_of(found.server.requests[-1].messages[5])
        assert len(found.attempts.run.timeline().submissions()) == 2
        found.check_replay(kind)


@pytest.mark.parametrize("native", NATIVE)
def test_results_of_every_form_come_back_on_replay(tmp_path: Path, *, native: bool) -> None:
    every: list[Step] = [call(name, (name, name)) for name in ("mark", "items", "plain", "fail", "unknown")]
    with world(tmp_path, story(*every, end()), native=native) as found:
        found.run()
        told = found.told
        assert told[0] == "marked mark"
        assert "second" in told[1]
        assert '"returncode": 3' in told[2]
        assert "KeyError" in told[3]
        assert "does not exist" in told[4]
        names = [node.tool_name for node in found.tools]
        assert names == ["mark", "items", "plain", "fail", "unknown"]
        output = found.tools[2].output
        assert isinstance(output, dict)
        assert output["exit_code"] == 3
        found.check_replay()


def test_nodes_carry_names_arguments_ids_and_their_answer(tmp_path: Path) -> None:
    with world(tmp_path, story(call("two", ("mark", "left"), ("mark", "right")), end())) as found:
        found.run()
        (parent, *_) = [node for node in found.attempts.path if isinstance(node, LlmNode)]
        assert [(node.tool_call_id, node.arguments, node.parent) for node in found.tools] == [
            ("call_1", {"word": "left"}, parent.record_uid),
            ("call_2", {"word": "right"}, parent.record_uid),
        ]


def test_arguments_that_are_no_json_are_recorded_as_they_came(tmp_path: Path) -> None:
    odd = ["{'word': 'loose',}", '{"word": "cut', "[" * 3000]
    steps: list[Step] = [ScriptedAnswer(f"say-{n}", [("mark", text)]) for n, text in enumerate(odd)]
    with world(tmp_path, story(*steps, end())) as found:
        assert found.run().state == "accepted"
        assert found.marks == ["loose"]
        assert [node.arguments for node in found.tools] == [{"word": "loose"}, *odd[1:]]
        found.check_replay()


def test_a_run_longer_than_the_packages_budget_is_no_submission(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agents.fncall_agent, "MAX_LLM_CALL_PER_RUN", 3)
    steps: list[Step] = [call(f"n{n}", ("mark", f"m{n}")) for n in range(7)]
    with world(tmp_path, story(*steps, end()), check="test -e m6") as found:
        assert found.run().state == "accepted"
        assert len(found.attempts.run.timeline().submissions()) == 1
        found.check_replay()
    with world(tmp_path / "short", story(*steps, end())) as found:
        assert found.run(max_calls=6).state == "stopped"
        assert len(found.server.requests) == 6


def test_a_model_that_says_nothing_stops_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agents.fncall_agent, "MAX_LLM_CALL_PER_RUN", 3)
    with world(tmp_path, lambda _: ScriptedAnswer("")) as found:
        assert found.run().state == "stopped"
        found.check_replay()


def test_five_times_the_same_failure_ends_the_run(tmp_path: Path) -> None:
    with world(tmp_path, story(*[end(str(n)) for n in range(9)]), check="echo no; exit 1") as found:
        assert found.run().state == "rejected"
        assert len(found.server.requests) == 5


def outcome_of(act: Callable[[], Any]) -> Any:
    try:
        return act()
    except Exception as error:  # noqa: BLE001 - whatever comes out is compared
        return type(error), str(error), getattr(error, "code", None)


EVERY: tuple[Step, ...] = (
    call("one", ("mark", "one")),
    call("two", ("items", "two"), ("unknown", "x")),
    call("three", ("plain", "three")),
    end("with a longer text, so that it comes in several pieces"),
)
BROKEN: tuple[Step, ...] = (
    call("one", ("mark", "one")),
    ScriptedAnswer(None, status=400, body={"error": {"message": "no"}}),
)


@pytest.mark.parametrize("steps", [EVERY, BROKEN], ids=["all", "400"])
@pytest.mark.parametrize("native", NATIVE)
@pytest.mark.parametrize("kind", AGENTS)
def test_bare_recorded_and_replayed_are_the_same(
    tmp_path: Path, kind: Any, steps: tuple[Step, ...], *, native: bool
) -> None:
    def said(found: World, layer: Layer | None = None) -> Any:
        agent = found.agent(kind)
        if layer is not None:
            adapter.attach(agent, layer)
        parts = []
        for part in agent.run([schema.Message(role="user", content="do it")]):
            parts.append([message.model_dump() for message in part])
        return parts

    def sent(found: World) -> Any:
        return [{**request.raw, "seed": None} for request in found.server.requests]

    with world(tmp_path / "bare", story(*steps), native=native, rewinds=False) as bare:
        expected = outcome_of(lambda: said(bare))
        requests = sent(bare)
    with world(tmp_path / "joined", story(*steps), native=native, rewinds=False) as joined:
        recorded = joined.attempts.live(lambda layer: outcome_of(lambda: said(joined, layer)))
        assert recorded == expected
        assert (sent(joined), joined.marks) == (requests, bare.marks)
        if steps is BROKEN:
            return  # a call that failed last is no node yet: a run that goes on makes it again
        replayed: list[Any] = []
        joined.attempts.replayed(lambda layer: replayed.append(said(joined, layer)[-1]))
        assert replayed == [expected[-1]]


def test_what_would_be_half_recorded_is_refused(tmp_path: Path) -> None:
    with world(tmp_path, story()) as found:

        def act(layer: Layer) -> str:
            agent = found.agent()
            adapter.attach(agent, layer)
            with pytest.raises(UsageError, match="joined to a layer already"):
                adapter.attach(agent, layer)
            with pytest.raises(UsageError, match="no FnCallAgent"):
                adapter.attach(object(), layer)
            elsewhere = found.agent()
            elsewhere.llm = object()
            with pytest.raises(UsageError, match="model_type 'oai'"):
                adapter.attach(elsewhere, layer)
            cached = found.agent()
            cached.llm.cache = {}
            with pytest.raises(UsageError, match="cache_dir"):
                adapter.attach(cached, layer)
            return "refused"

        assert found.attempts.live(act) == "refused"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"agent": "router"}, "one of fncall, assistant"),
        ({"tools": "both"}, "one of native, prompt"),
        ({"max_calls": "many"}, "is a int"),
        ({"config": ["tools"]}, "NAME=VALUE"),
        ({"config": ["stream=true"]}, "no setting 'stream'"),
    ],
)
def test_settings_that_make_no_sense_are_refused(
    tmp_path: Path, settings: dict[str, Any], message: str
) -> None:
    with world(tmp_path, story()) as found:

        def act(layer: Layer) -> Any:
            given = Assignment(task="x", model="openai/m", workspace=found.root, settings=settings)
            return adapter.QwenAgentAdapter().run(layer, given)

        with pytest.raises(UsageError, match=message):
            found.attempts.live(act)


def test_building_leaves_no_folder_in_the_workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    set_layer(None)
    given = Assignment(task="x", model="openai/m", workspace=tmp_path, settings={})
    agent = adapter.QwenAgentAdapter().build(given, {"agent": "assistant", "tools": "prompt"})
    assert list(tmp_path.iterdir()) == []
    assert agent.llm.model == "m"
    assert isinstance(agent, Assistant)
