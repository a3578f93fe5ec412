"""Two agents in one process, one of which goes back: the other may be faster on replay; nothing is lost."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from agentrewind.errors import DivergenceError
from agentrewind.layer import CUT, Layer
from agentrewind.options import RunOptions
from agentrewind.records import LlmNode, ToolNode
from agentrewind.rewind.signal import LayerSignal
from harness_adapters.scripted import ScriptedAnswer, ScriptedModel, ScriptedRequest
from tests.adapters.attempts import Attempts
from tests.e2e.steps import CANDIDATES, COMMIT, back, look, story

openai = pytest.importorskip("openai")

pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

LEFT = story(
    ScriptedAnswer("say-one", [("mark", {"word": "one"})]),
    ScriptedAnswer("say-two", [("mark", {"word": "two"})]),
    look(),
    back("two", "NOTE_A"),
    NOTE_A=[ScriptedAnswer("say-three", [("mark", {"word": "three"})]), ScriptedAnswer("end")],
)
RIGHT = story(
    *(ScriptedAnswer(f"right-{n}", [("mark", {"word": f"r{n}"})]) for n in range(5)), ScriptedAnswer("end")
)


def policy(request: ScriptedRequest) -> ScriptedAnswer:
    return (LEFT if request.told("You are left.") else RIGHT)(request)


class Pair:
    """The two agents. `pace(name, step)` is called before each call that one of them makes."""

    def __init__(self, base: Path, server: ScriptedModel) -> None:
        self.server = server
        self.attempts = Attempts(base=base, options=RunOptions(task="do it"))
        self.root = self.attempts.root
        self.pace: Callable[[str, int], None] = lambda name, step: None
        self.tool: Callable[[str], None] = lambda word: None
        self.round = 0
        self.told: dict[str, list[str]] = {}

    def client(self, kind: Any) -> Any:
        return kind(base_url=self.server.base_url, api_key="none-needed", max_retries=0)

    def messages(self, name: str) -> list[dict[str, Any]]:
        return [{"role": "system", "content": f"You are {name}."}, {"role": "user", "content": "go"}]

    def mark(self, word: str) -> str:
        self.tool(word)
        (self.root / word).write_text(word)
        return f"marked {word}"

    def call(self, layer: Layer, name: str, call: Any) -> str:
        asked = json.loads(call.function.arguments)

        def perform() -> str:
            assert call.function.name not in (CANDIDATES, COMMIT)
            return self.mark(asked["word"])

        result = layer.run_tool(call.function.name, asked, perform, tool_call_id=call.id)
        self.told[name].append(str(result.value))
        return str(result.value)

    def work(self, layer: Layer, name: str) -> None:
        client, messages, step = self.client(openai.OpenAI), self.messages(name), 0
        with client:
            while True:
                self.pace(name, step)
                said = client.chat.completions.create(model="m", messages=messages).choices[0].message
                messages.append(said.model_dump(exclude_none=True))
                if not said.tool_calls:
                    return
                for call in said.tool_calls:
                    told = self.call(layer, name, call)
                    messages.append({"role": "tool", "tool_call_id": call.id, "content": told})
                step += 1

    async def awork(self, layer: Layer, name: str) -> None:
        messages = self.messages(name)
        async with self.client(openai.AsyncOpenAI) as client:
            while True:
                if name == "left" and self.round > 1:
                    await asyncio.sleep(0.05)
                answer = await client.chat.completions.create(model="m", messages=messages)
                said = answer.choices[0].message
                messages.append(said.model_dump(exclude_none=True))
                if not said.tool_calls:
                    return
                for call in said.tool_calls:
                    asked = json.loads(call.function.arguments)

                    async def perform(asked: Any = asked) -> str:
                        return self.mark(asked["word"])

                    told = await layer.arun_tool(call.function.name, asked, perform, tool_call_id=call.id)
                    messages.append({"role": "tool", "tool_call_id": call.id, "content": str(told.value)})

    def side_by_side(self, layer: Layer) -> None:
        self.round += 1
        self.told = {"left": [], "right": []}
        with ThreadPoolExecutor(2) as pool:
            running = [pool.submit(self.work, layer, name) for name in ("left", "right")]
        for each in running:
            if isinstance(each.exception(), LayerSignal):
                raise each.exception() or AssertionError
            each.result()

    def in_tasks(self, layer: Layer) -> None:
        self.round += 1
        self.told = {"left": [], "right": []}

        async def both() -> None:
            await asyncio.gather(self.awork(layer, "left"), self.awork(layer, "right"))

        asyncio.run(both())

    @property
    def path(self) -> list[Any]:
        return list(self.attempts.path)


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Pair]:
    with ScriptedModel(policy) as server:
        yield Pair(tmp_path, server)


def check(pair: Pair, act: Callable[[Layer], None]) -> None:
    """What must hold after the rewind, and again after a replay."""
    assert pair.round == 2
    assert sorted(path.name for path in pair.root.iterdir()) == [
        *("one", "r0", "r1", "r2", "r3", "r4", "three")
    ]
    talks: dict[str, list[str]] = {}
    for node in pair.path:
        if isinstance(node, LlmNode):
            assert node.output is not None
            talks.setdefault(node.conversation, []).append(str(node.output["content"]))
    assert sorted(talks.values()) == [
        [*(f"right-{n}" for n in range(5)), "end"],
        ["say-one", "say-three", "end"],
    ]
    tools = [node.tool_call_id for node in pair.path if isinstance(node, ToolNode)]
    assert len(tools) == len(set(tools)) == 7
    requests = len(pair.server.requests)
    assert [
        request.told("NOTE_A") for request in pair.server.requests if request.told("You are right.")
    ].count(True) == 0
    pair.pace = lambda name, step: None
    layer = pair.attempts.replayed(act)
    assert (layer.remaining, len(pair.server.requests)) == (0, requests)


@pytest.mark.parametrize("ahead", range(1, 6))
def test_one_that_is_ahead_on_replay_waits_and_then_goes_on(pair: Pair, ahead: int) -> None:
    """The right agent does `ahead` steps before the left one goes back, and is the faster one afterwards."""
    done = threading.Event()

    def pace(name: str, step: int) -> None:
        if name == "right" and step == ahead and pair.round == 1:
            done.set()
            threading.Event().wait(0.3)  # meanwhile the left one goes back
        if name == "left" and step == 1 and pair.round == 1:
            assert done.wait(10)
        if name == "left" and pair.round == 2:
            threading.Event().wait(0.05)

    pair.pace = pace
    pair.attempts.live(pair.side_by_side)
    check(pair, pair.side_by_side)


def test_one_that_began_only_after_the_checkpoint_waits_as_well(pair: Pair) -> None:
    asked = threading.Event()

    def pace(name: str, step: int) -> None:
        if name == "left" and step == 2 and pair.round == 1:
            asked.set()
            threading.Event().wait(0.5)
        if name == "right" and step == 0 and pair.round == 1:
            assert asked.wait(10)
        if name == "left" and pair.round == 2:
            threading.Event().wait(0.1)

    pair.pace = pace
    pair.attempts.live(pair.side_by_side)
    check(pair, pair.side_by_side)


def test_tasks_of_one_loop_wait_without_holding_it_up(pair: Pair) -> None:
    pair.attempts.live(pair.in_tasks)
    check(pair, pair.in_tasks)


def test_a_tool_that_ran_while_the_checkpoint_was_taken_is_told_as_interrupted(pair: Pair) -> None:
    """Its outcome is recorded, but the files are those of the middle of it."""
    half, answered = threading.Event(), threading.Event()

    def tool(word: str) -> None:
        if word == "r0" and pair.round == 1:
            (pair.root / "r0").write_text("half")
            half.set()
            assert answered.wait(10)

    def pace(name: str, step: int) -> None:
        if name == "left" and step == 1 and pair.round == 1:
            assert half.wait(10)
        if name == "left" and step == 2:
            answered.set()
            threading.Event().wait(0.2)  # the tool ends, and is recorded as ended

    pair.pace, pair.tool = pace, tool
    pair.attempts.live(pair.side_by_side)
    assert (pair.root / "r0").read_text() == "half"
    assert pair.told["right"][0] == CUT
    assert pair.told["right"][1:] == [f"marked r{n}" for n in range(1, 5)]
    requests = len(pair.server.requests)
    pair.pace = lambda name, step: None
    layer = pair.attempts.replayed(pair.side_by_side)
    assert (layer.remaining, len(pair.server.requests)) == (0, requests)
    assert pair.told["right"][0] == CUT


def test_a_request_that_differs_is_refused_at_once_for_all_that_others_still_wait(pair: Pair) -> None:
    pair.attempts.live(pair.side_by_side)
    original = pair.messages

    def other(name: str) -> list[dict[str, Any]]:
        found = original(name)
        return [found[0], {"role": "user", "content": "come"}] if name == "left" else found

    pair.messages = other  # type: ignore[method-assign]
    with pytest.raises(DivergenceError) as refused:
        pair.attempts.replayed(pair.side_by_side)
    assert "come" in str(refused.value)
