"""litellm's streams of chat completions: genuine ones, live as from the log, and records that do not tell."""

from __future__ import annotations

import gc
import re
import time
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from agentrewind.errors import DivergenceError, UsageError
from agentrewind.rewind.signal import StopSignal
from harness_adapters.scripted import ScriptedAnswer, ScriptedRequest
from tests.capture.clients import ANSWER, KEY, MESSAGES, TOOLS, without_ids
from tests.capture.joined import Joined, joined, later, remember, run_of

pytestmark = pytest.mark.filterwarnings("ignore")  # litellm's own

PROVIDERS = ["openai", "hosted_vllm"]
"""One that litellm asks through the openai SDK, one that it asks through its own HTTP client."""


@pytest.fixture(scope="module")
def litellm() -> Iterator[Any]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LITELLM_LOCAL_MODEL_COST_MAP", "True")
        import litellm as package

        patch.setattr(package, "suppress_debug_info", True)
        yield package


def arguments(run: Joined, provider: str = "openai", **more: Any) -> dict[str, Any]:
    return {
        "model": f"{provider}/m",
        "messages": MESSAGES,
        "tools": TOOLS,
        "api_base": run.model.base_url,
        "api_key": KEY,
        **more,
    }


def added_up(litellm: Any, stream: Any, chunks: list[Any]) -> Any:
    whole = litellm.stream_chunk_builder(chunks, messages=MESSAGES)
    return (
        isinstance(stream, litellm.CustomStreamWrapper),
        type(stream).__name__,
        {type(chunk) for chunk in chunks},
        whole.model_dump(mode="json"),
    )


def streamed(litellm: Any, run: Joined, provider: str, **more: Any) -> Callable[[], Any]:
    def harness() -> Any:
        stream = litellm.completion(**arguments(run, provider, stream=True, **more))
        return added_up(litellm, stream, list(stream))

    return harness


def astreamed(litellm: Any, run: Joined, provider: str, **more: Any) -> Callable[[], Any]:
    async def harness() -> Any:
        stream = await litellm.acompletion(**arguments(run, provider, stream=True, **more))
        return added_up(litellm, stream, [chunk async for chunk in stream])

    return later(harness)


def without_times(seen: Any) -> str:
    """litellm says of a stream's chunks that they were made when they came."""
    return re.sub(r"'created': \d+", "'created': n", without_ids(seen))


@pytest.mark.parametrize("make", [streamed, astreamed])
@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("more", [{}, {"stream_options": {"include_usage": True}}])
def test_a_stream_is_the_same_thrice(
    litellm: Any, tmp_path: Path, make: Callable[..., Callable[[], Any]], provider: str, more: dict[str, Any]
) -> None:
    with run_of(tmp_path, lambda request: ANSWER) as run:
        harness = make(litellm, run, provider, **more)
        bare, live = run.bare(harness), run.live(harness)
        assert without_times(live) == without_times(bare)
        (node,) = run.nodes
        assert node.output is not None
        assert node.output["content"] == ANSWER.content
        assert (node.output["usage"] is None) is (not more)
        assert run.replay(harness) == live


def test_a_record_does_not_tell_whether_it_was_streamed(litellm: Any, tmp_path: Path) -> None:
    usage = {"stream_options": {"include_usage": True}}
    found: list[Any] = []
    for number in range(2):
        with run_of(tmp_path / str(number), lambda request: ANSWER) as run:
            whole = lambda run=run: litellm.completion(**arguments(run)).model_dump(mode="json")  # noqa: E731
            in_parts = streamed(litellm, run, "openai", **usage)
            run.live([whole, in_parts][number])
            run.replay([in_parts, whole][number])
            found.append(run.nodes[0])
    one, other = found
    assert (one.input_id, one.parameters) == (other.input_id, other.parameters)
    for name in ("content", "tool_calls"):
        assert one.output[name] == other.output[name]
    for name in ("prompt_tokens", "completion_tokens", "total_tokens"):
        assert one.output["usage"][name] == other.output["usage"][name]
    assert one.output["response"]["choices"][0]["finish_reason"] == "tool_calls"
    assert other.output["response"]["choices"][0]["finish_reason"] == "tool_calls"


def read_all(litellm: Any, run: Joined, **more: Any) -> Any:
    seen: list[Any] = []
    try:
        for chunk in litellm.completion(**arguments(run, stream=True, num_retries=0, **more)):
            seen.append(chunk.choices[0].delta.content)
    except Exception as error:  # noqa: BLE001 - the exception is the result
        return (seen, type(error), getattr(error, "status_code", None))
    return (seen, None, None)


def test_a_stream_that_breaks_is_an_attempt_and_breaks_again(litellm: Any, tmp_path: Path) -> None:
    def policy(request: ScriptedRequest) -> ScriptedAnswer:
        if request.told("after"):
            return ScriptedAnswer(content="fine")
        return ScriptedAnswer(content=ANSWER.content, cut_after=2)

    with run_of(tmp_path, policy) as run:

        def harness() -> Any:
            broken = read_all(litellm, run)
            after = [*MESSAGES, {"role": "user", "content": "after"}]
            return broken, "".join(text or "" for text in read_all(litellm, run, messages=after)[0])

        bare, live = run.bare(harness), run.live(harness)
        assert live == bare
        assert live[0][1] is not None
        assert live[1] == "fine"
        assert [node.error is None for node in run.nodes] == [False, True]
        assert run.replay(harness) == live


@pytest.mark.parametrize("how", ["close", "drop"])
def test_a_stream_that_is_left_is_an_attempt(litellm: Any, tmp_path: Path, how: str) -> None:
    def policy(request: ScriptedRequest) -> ScriptedAnswer:
        return ScriptedAnswer(content="fine" if request.told("after") else ANSWER.content)

    with run_of(tmp_path, policy) as run:

        def harness(chunks: int = 1) -> Any:
            stream = litellm.completion(**arguments(run, stream=True))
            first = [next(stream).choices[0].delta.content for _ in range(chunks)]
            if how == "close":
                stream.close()
            alive = weakref.ref(stream)
            del stream
            while how == "drop" and alive() is not None:  # litellm's bookkeeping lets go a moment later
                time.sleep(0.01)
                gc.collect()
            after = [*MESSAGES, {"role": "user", "content": "after"}]
            answer = litellm.completion(**arguments(run, messages=after))
            return first, answer.choices[0].message.content

        live = run.live(harness)
        assert len(run.attempts) == 1
        assert [node.error is None for node in run.nodes] == [False, True]
        assert run.replay(harness) == live
        layer = run.stage.replay()
        with joined(layer), pytest.raises(StopSignal):
            harness(2)
        assert isinstance(layer.latch.error, DivergenceError)


@pytest.mark.parametrize("status", [401, 429, 500])
def test_errors_before_a_stream_are_the_same_thrice(litellm: Any, tmp_path: Path, status: int) -> None:
    def policy(request: ScriptedRequest) -> ScriptedAnswer:
        return ScriptedAnswer(content="fine") if request.told("after") else ScriptedAnswer(status=status)

    with run_of(tmp_path, policy) as run:

        def harness() -> Any:
            failed = read_all(litellm, run, max_retries=0)
            after = [*MESSAGES, {"role": "user", "content": "after"}]
            return failed, "".join(text or "" for text in read_all(litellm, run, messages=after)[0])

        bare, live = run.bare(harness), run.live(harness)
        assert live == bare
        assert live[0][2] == status
        assert run.replay(harness) == live


def test_a_stream_carries_the_memory(litellm: Any, tmp_path: Path) -> None:
    with run_of(tmp_path, lambda request: ANSWER) as run:
        run.live(streamed(litellm, run, "openai"))
        conversation = run.nodes[0].conversation
    with run_of(tmp_path / "second", lambda request: ANSWER) as run:
        with run.stage.live() as layer, joined(layer):
            remember(layer, index=2, anchor=MESSAGES[1], conversation=conversation)
            streamed(litellm, run, "openai")()
        (request,) = run.model.requests
        assert [message["role"] for message in request.messages] == ["system", "user", "system"]


def test_what_cannot_be_recorded_is_refused(litellm: Any, tmp_path: Path) -> None:
    with run_of(tmp_path, lambda request: ANSWER) as run:
        with run.stage.live() as layer, joined(layer), pytest.raises(StopSignal):
            litellm.text_completion(model="openai/m", prompt="go", api_base=run.model.base_url, api_key=KEY)
        assert isinstance(layer.latch.error, UsageError)
        assert not run.model.requests
