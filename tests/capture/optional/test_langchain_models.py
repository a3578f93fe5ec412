"""LangChain's chat models under the layer: each call is recorded once, where it is known best."""

from __future__ import annotations

import functools
import itertools
import json
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from harness_adapters.scripted import ScriptedAnswer, ScriptedRequest
from tests.capture.clients import ANSWER, KEY, TOOLS, without_ids
from tests.capture.joined import Joined, attempt, joined, later, remember, run_of

pytest.importorskip("langchain_openai")

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
    convert_to_openai_messages,
)
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_openai import ChatOpenAI

pytestmark = pytest.mark.filterwarnings("ignore")  # of the clients that it keeps

TIMEOUTS = itertools.count(30)
MESSAGES: list[Any] = [SystemMessage("You work."), HumanMessage("go")]


class Own(BaseChatModel):  # type: ignore[misc]
    """A model that asks by itself, through a client that nobody knows."""

    url: str

    @property
    def _llm_type(self) -> str:
        return "own"

    def _ask(self, messages: list[BaseMessage], kwargs: Any) -> dict[str, Any]:
        body = {
            "model": "own",
            "messages": convert_to_openai_messages(messages),
            "tools": kwargs.get("tools"),
        }
        request = urllib.request.Request(
            f"{self.url}/chat/completions", data=json.dumps(body).encode(), method="POST"
        )
        try:
            with urllib.request.urlopen(request) as response:
                found: dict[str, Any] = json.load(response)
        except urllib.error.HTTPError as error:
            with error:
                raise ConnectionError(f"the model says {error.code}") from None
        return found

    def _generate(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> ChatResult:
        found = self._ask(messages, kwargs)
        message = found["choices"][0]["message"]
        calls = [
            {
                "name": call["function"]["name"],
                "args": json.loads(call["function"]["arguments"]),
                "id": call["id"],
            }
            for call in message.get("tool_calls") or ()
        ]
        usage = found["usage"]
        answer = AIMessage(
            content=message["content"],
            tool_calls=calls,
            response_metadata={"finish": "yes"},
            usage_metadata={
                "input_tokens": usage["prompt_tokens"],
                "output_tokens": usage["completion_tokens"],
                "total_tokens": usage["total_tokens"],
            },
        )
        return ChatResult(generations=[ChatGeneration(message=answer)], llm_output={"id": found["id"]})


class OwnStreaming(Own):
    """The same, which can also talk in pieces, and break in the middle."""

    breaks: bool = False

    def _stream(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> Iterator[ChatGenerationChunk]:
        message = self._ask(messages, kwargs)["choices"][0]["message"]
        for number, word in enumerate(message["content"].split(" ")):
            if self.breaks and number == 2 and "after" not in str(messages):
                raise ConnectionResetError("the line is dead")
            yield ChatGenerationChunk(message=AIMessageChunk(content=f"{word} "))
        for index, call in enumerate(message.get("tool_calls") or ()):
            function = call["function"]
            piece = {
                "name": function["name"],
                "args": function["arguments"],
                "id": call["id"],
                "index": index,
            }
            yield ChatGenerationChunk(message=AIMessageChunk(content="", tool_call_chunks=[piece]))

    async def _astream(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> AsyncIterator[ChatGenerationChunk]:
        for chunk in self._stream(messages, stop, run_manager, **kwargs):
            yield chunk


def seen(message: Any) -> Any:
    """What a harness sees of an answer; LangChain numbers its runs at random."""
    return (
        type(message).__name__,
        message.content,
        [(call["name"], call["args"], call["id"]) for call in message.tool_calls],
        message.usage_metadata,
    )


def invoke(model: Any) -> Any:
    return seen(model.bind_tools(TOOLS).invoke(MESSAGES) if isinstance(model, ChatOpenAI) else call(model))


def call(model: Any) -> Any:
    return model.invoke(MESSAGES, tools=TOOLS)


def stream(model: Any) -> Any:
    return seen(added(list(model.stream(MESSAGES, tools=TOOLS))))


def ainvoke(model: Any) -> Any:
    async def go() -> Any:
        return seen(await model.ainvoke(MESSAGES, tools=TOOLS))

    return later(go)()


def astream(model: Any) -> Any:
    async def go() -> Any:
        return seen(added([chunk async for chunk in model.astream(MESSAGES, tools=TOOLS)]))

    return later(go)()


def added(chunks: list[Any]) -> Any:
    total = chunks[0]
    for chunk in chunks[1:]:
        total += chunk
    return total


MODES = [invoke, stream, ainvoke, astream]


def made(kind: Any, run: Joined) -> Any:
    if kind is ChatOpenAI:
        # LangChain keeps HTTP clients by their settings, beyond the event loop that they belong to
        return ChatOpenAI(
            model="m", base_url=run.model.base_url, api_key=KEY, max_retries=0, timeout=next(TIMEOUTS)
        )
    return kind(url=run.model.base_url)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", [Own, OwnStreaming, ChatOpenAI])
def test_every_way_to_ask_is_the_same_thrice(tmp_path: Path, kind: Any, mode: Callable[[Any], Any]) -> None:
    with run_of(tmp_path, lambda request: ANSWER) as run:
        run.live(lambda: None)  # so that the layer is in place before the model is made

    with run_of(tmp_path / "second", lambda request: ANSWER) as run:
        bare = mode(made(kind, run))
        live = run.live(lambda: mode(made(kind, run)))
        assert without_ids(live) == without_ids(bare)
        (node,) = run.nodes
        assert node.client == (
            "openai.chat.completions" if kind is ChatOpenAI else f"langchain.{kind.__name__}"
        )
        assert node.output is not None
        calls = node.output["tool_calls"]
        assert isinstance(calls, list)
        assert len(calls) == 2
        assert run.replay(lambda: mode(made(kind, run))) == live


def test_a_record_answers_both(tmp_path: Path) -> None:
    for number, (one, other) in enumerate([(invoke, stream), (stream, invoke), (astream, ainvoke)]):
        with run_of(tmp_path / str(number), lambda request: ANSWER) as run:
            live = run.live(functools.partial(one, made(OwnStreaming, run)))
            replayed = run.replay(functools.partial(other, made(OwnStreaming, run)))
            assert (replayed[1], replayed[2]) == (live[1], live[2])


def test_failures_are_the_same_thrice(tmp_path: Path) -> None:
    def policy(request: ScriptedRequest) -> ScriptedAnswer:
        return ScriptedAnswer(content="fine") if request.told("after") else ScriptedAnswer(status=500)

    with run_of(tmp_path, policy) as run:

        def code() -> Any:
            failed = attempt(lambda: made(Own, run).invoke(MESSAGES))
            after = made(Own, run).invoke([*MESSAGES, HumanMessage("after")])
            return type(failed), str(failed), after.content

        bare, live = code(), run.live(code)
        assert live == bare
        assert run.replay(code) == live


def test_a_stream_that_breaks_is_an_attempt_and_breaks_again(tmp_path: Path) -> None:
    with run_of(tmp_path, lambda request: ANSWER) as run:

        def code() -> Any:
            pieces: list[Any] = []
            error: Any = None
            model = OwnStreaming(url=run.model.base_url, breaks=True)
            try:
                for chunk in model.stream(MESSAGES):
                    pieces.append(chunk.content)
            except ConnectionResetError as broken:
                error = str(broken)
            after = added(list(model.stream([*MESSAGES, HumanMessage("after")])))
            return pieces, error, after.content

        live = run.live(code)
        assert live[1] == "the line is dead"
        assert [node.error is None for node in run.nodes] == [False, True]
        assert run.replay(code) == live


def test_a_loop_is_replayed_and_remembers(tmp_path: Path) -> None:
    def policy(request: ScriptedRequest) -> ScriptedAnswer:
        return ScriptedAnswer(content="done") if request.turn else ANSWER

    def loop(run: Joined) -> Any:
        messages = list(MESSAGES)
        model = made(Own, run)
        while True:
            answer = model.invoke(messages, tools=TOOLS)
            messages.append(answer)
            if not answer.tool_calls:
                return answer.content
            messages += [ToolMessage("a file", tool_call_id=use["id"]) for use in answer.tool_calls]

    with run_of(tmp_path, policy) as run:
        assert run.live(lambda: loop(run)) == "done"
        assert run.replay(lambda: loop(run)) == "done"
        conversation = run.nodes[0].conversation
    with run_of(tmp_path / "second", policy) as run:
        with run.stage.live() as layer, joined(layer):
            remember(layer, index=2, anchor={"role": "user", "content": "go"}, conversation=conversation)
            assert loop(run) == "done"
        roles = [[message["role"] for message in request.messages] for request in run.model.requests]
        assert roles == [
            ["system", "user", "system"],
            ["system", "user", "system", "assistant", "tool", "tool"],
        ]
