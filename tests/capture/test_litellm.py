"""The real litellm over real HTTP under the gate: recorded, served again, and no different with the layer."""

from __future__ import annotations

import asyncio
import gc
import json
import sys
import types
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from agentrewind.capture import litellm as capture
from agentrewind.capture.gate import Gate
from agentrewind.capture.hook import replace_everywhere
from agentrewind.errors import DivergenceError, StorageError
from agentrewind.layer import Layer
from agentrewind.records import AttemptFailed, LlmNode
from agentrewind.rewind.signal import RewindSignal, StopSignal
from harness_adapters.scripted import ScriptedAnswer, ScriptedModel, ScriptedRequest
from tests.capture.test_gate import full_disk
from tests.core.stage import Stage

MESSAGES = [{"role": "system", "content": "You work."}, {"role": "user", "content": "Mend."}]
TOOLS = [
    {"type": "function", "function": {"name": "bash", "parameters": {"type": "object", "properties": {}}}}
]
CALLING = ScriptedAnswer(
    content="I look.", tool_calls=[("bash", {"command": "ls"}), ("bash", {"command": "cat é"})]
)
EARLY = "agentrewind_test_early_bound"

pytestmark = pytest.mark.filterwarnings("ignore")  # litellm's own


class Current:
    """The gate that litellm's wrappers ask for; none between tests."""

    gate: Gate | None = None


@pytest.fixture(scope="module")
def litellm() -> Iterator[Any]:
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        patch.setenv("LITELLM_LOCAL_MODEL_COST_MAP", "True")
        import litellm as package

        found = {name: getattr(package, name) for name in capture.WRAPPED if hasattr(package, name)}
        # where another module's tests have joined litellm to a gate of theirs, it is let go meanwhile
        for wrapped in found.values():
            replace_everywhere(wrapped, getattr(wrapped, "__agentrewind__", wrapped))
        early = types.ModuleType(EARLY)
        vars(early)["complete"] = package.completion
        sys.modules[EARLY] = early
        capture.install(lambda: Current.gate)
        yield package
        del sys.modules[EARLY]
        for name, wrapped in found.items():
            replace_everywhere(getattr(package, name), wrapped)
        # litellm leaves sockets and a loop to the collector, whose warnings would be errors
        asyncio.set_event_loop(None)
        gc.collect()


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage.create(tmp_path)


class Script:
    """Answers in turn, the last one for ever."""

    def __init__(self, *answers: ScriptedAnswer) -> None:
        self._answers = list(answers)

    def __call__(self, _request: ScriptedRequest) -> ScriptedAnswer:
        return self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]


def serving(*answers: ScriptedAnswer) -> ScriptedModel:
    return ScriptedModel(Script(*answers))


def arguments(model: ScriptedModel | None, **more: Any) -> dict[str, Any]:
    base_url = model.base_url if model else "http://127.0.0.1:9/v1"
    return {
        "model": "openai/m",
        "messages": MESSAGES,
        "api_key": "sk-test-0123456789",
        "base_url": base_url,
        **more,
    }


def under(layer: Layer | None, action: Callable[[], Any]) -> Any:
    """Run the harness's code with its process joined to the layer."""
    Current.gate = layer.gate if layer else None
    try:
        return action()
    finally:
        Current.gate = None


def dumped(response: Any) -> Any:
    return response.model_dump(mode="json")


def parts(response: Any) -> list[Any]:
    choices = list(response.choices)
    messages = [choice.message for choice in choices]
    calls = [call for message in messages for call in message.tool_calls or []]
    return [response, response.usage, *choices, *messages, *calls]


def llm_nodes(stage: Stage) -> list[LlmNode]:
    return [node for node in stage.timeline.path() if isinstance(node, LlmNode)]


@pytest.mark.parametrize("answer", [CALLING, ScriptedAnswer(content="Done."), ScriptedAnswer(content=None)])
def test_a_replayed_answer_equals_the_live_one(litellm: Any, stage: Stage, answer: ScriptedAnswer) -> None:
    with serving(answer) as model, stage.live() as layer:
        live = under(layer, lambda: litellm.completion(**arguments(model, tools=TOOLS)))
        assert len(model.requests) == 1
    again = under(stage.replay(), lambda: litellm.completion(**arguments(None, tools=TOOLS)))
    assert type(again) is type(live)
    assert dumped(again) == dumped(live)
    # a harness may dump a part by itself, which shows more of it than within the whole
    assert [part.model_dump() for part in parts(again)] == [part.model_dump() for part in parts(live)]
    assert again.choices[0].message.content == live.choices[0].message.content
    assert again.choices[0].message.tool_calls == live.choices[0].message.tool_calls
    (node,) = llm_nodes(stage)
    assert node.client == "litellm.completion"
    assert node.output is not None
    assert node.output["content"] == answer.content


def test_several_choices_come_back_whole() -> None:
    dump: dict[str, Any] = {
        "id": "x",
        "choices": [{"message": {"content": text}} for text in "ab"],
        "usage": {"n": 1},
    }

    class Response:
        def model_dump(self, *, mode: str) -> dict[str, Any]:
            return {**dump, "mode": mode}

    assert capture.decode_answer(capture.encode_answer(Response())) == {**dump, "mode": "json"}


WAYS: dict[str, Callable[[Any], Any]] = {
    "the client's object": lambda message: message,
    "a dictionary around the client's objects": lambda message: {
        "role": "assistant", "content": message.content, "tool_calls": message.tool_calls
    },
    "a dictionary of tuples": lambda message: {
        "role": "assistant", "content": message.content, "tool_calls": tuple(message.tool_calls)
    },
    "its dump": lambda message: message.model_dump(),
}  # fmt: skip


@pytest.mark.parametrize("way", WAYS)
def test_it_makes_no_difference_to_answers_and_requests(litellm: Any, stage: Stage, way: str) -> None:
    """Whatever the harness makes of an answer before it sends it on."""
    with serving(CALLING) as model:
        bare = litellm.completion(**arguments(model, tools=TOOLS))
        history = [*MESSAGES, WAYS[way](bare.choices[0].message)]
        history += [{"role": "tool", "tool_call_id": f"call_{n}", "content": "ok"} for n in (1, 2)]
        plain = litellm.completion(**arguments(model, messages=history, tools=TOOLS, temperature=0.0))
        with stage.live() as layer:
            joined = under(
                layer,
                lambda: litellm.completion(
                    **arguments(model, messages=history, tools=TOOLS, temperature=0.0)
                ),
            )
        first, second = model.requests[-2:]
    assert first.raw == second.raw
    assert without_ids(dumped(plain)) == without_ids(dumped(joined))
    assert type(plain) is type(joined)


def without_ids(dump: dict[str, Any]) -> str:
    dump["id"] = ""
    for choice in dump["choices"]:
        for call in choice["message"]["tool_calls"] or ():
            call["id"] = ""
    return json.dumps(dump)


def test_names_that_were_bound_before_are_joined_too(litellm: Any, stage: Stage) -> None:
    from litellm import completion

    early = sys.modules[EARLY]
    assert completion is litellm.completion is vars(early)["complete"]
    with serving(ScriptedAnswer(content="one")) as model, stage.live() as layer:
        under(layer, lambda: vars(early)["complete"](**arguments(model)))
        under(layer, lambda: completion(**arguments(model)))
    assert len(llm_nodes(stage)) == 2


def test_installing_again_changes_nothing(litellm: Any) -> None:
    before = litellm.completion, litellm.acompletion
    capture.install(lambda: None)
    assert (litellm.completion, litellm.acompletion) == before
    assert asyncio.iscoroutinefunction(litellm.acompletion)
    assert litellm.completion.__name__ == "completion"


def test_awaited_calls_are_recorded_once(litellm: Any, stage: Stage) -> None:
    with serving(CALLING) as model, stage.live() as layer:
        live = under(layer, lambda: asyncio.run(litellm.acompletion(**arguments(model, tools=TOOLS))))
        assert len(model.requests) == 1
    again = under(stage.replay(), lambda: asyncio.run(litellm.acompletion(**arguments(None, tools=TOOLS))))
    assert dumped(again) == dumped(live)
    (node,) = llm_nodes(stage)
    assert node.client == "litellm.acompletion"


def test_calls_side_by_side_each_get_their_own_answer(litellm: Any, stage: Stage) -> None:
    def echo(request: ScriptedRequest) -> ScriptedAnswer:
        return ScriptedAnswer(content=str(request.messages[-1]["content"]), delay=0.02)

    async def all_of(model: ScriptedModel | None) -> list[str]:
        asked = [[{"role": "user", "content": f"prompt {number}"}] for number in range(5)]
        answers = await asyncio.gather(
            *(litellm.acompletion(**arguments(model, messages=messages)) for messages in asked)
        )
        return [answer.choices[0].message.content for answer in answers]

    with ScriptedModel(echo) as model, stage.live() as layer:
        live = under(layer, lambda: asyncio.run(all_of(model)))
    assert live == [f"prompt {number}" for number in range(5)]
    assert under(stage.replay(), lambda: asyncio.run(all_of(None))) == live
    assert len({node.record_uid for node in llm_nodes(stage)}) == 5


def test_arguments_by_position_mean_what_they_mean_to_litellm(litellm: Any, stage: Stage) -> None:
    with serving(ScriptedAnswer(content="one")) as model, stage.live() as layer:
        more = {"api_key": "sk-test-0123456789", "base_url": model.base_url}
        under(layer, lambda: litellm.completion("openai/m", MESSAGES, 30.0, 0.5, **more))
        assert model.requests[0].raw["temperature"] == 0.5
    (node,) = llm_nodes(stage)
    assert node.parameters == {"timeout": 30.0, "temperature": 0.5}
    assert node.model == "openai/m"


def test_what_is_no_part_of_a_request_may_differ(litellm: Any, stage: Stage) -> None:
    with serving(ScriptedAnswer(content="one")) as model, stage.live() as layer:
        under(layer, lambda: litellm.completion(**arguments(model, seed=1, timeout=20, metadata={"a": "b"})))
    replay = stage.replay()
    under(replay, lambda: litellm.completion(**arguments(None, seed=2, num_retries=0)))
    assert replay.remaining == 0


# --- failures ---


def failure(status: int, text: str) -> ScriptedAnswer:
    return ScriptedAnswer(status=status, body={"error": {"message": text, "type": "x", "code": None}})


def raised(action: Callable[[], Any]) -> Any:
    with pytest.raises(Exception) as caught:  # noqa: PT011 - any kind is meant
        action()
    return caught.value


CONTEXT = "This model's maximum context length is 10 tokens; reduce the length of the messages."


@pytest.mark.parametrize(
    ("answer", "name", "status"),
    [
        (failure(429, "slow down"), "RateLimitError", 429),
        (failure(401, "no such key"), "AuthenticationError", 401),
        (failure(400, CONTEXT), "ContextWindowExceededError", 400),
        (failure(400, "bad tools"), "BadRequestError", 400),
        (failure(404, "no such model"), "NotFoundError", 404),
        (failure(500, "broken"), "InternalServerError", 500),
        (failure(503, "busy"), "ServiceUnavailableError", 503),
    ],
)
def test_a_failure_is_the_same_without_the_layer_with_it_and_on_replay(
    litellm: Any, stage: Stage, answer: ScriptedAnswer, name: str, status: int
) -> None:
    with serving(answer) as model:
        bare = raised(lambda: litellm.completion(**arguments(model, max_retries=0)))
        with stage.live() as layer:
            live = raised(lambda: under(layer, lambda: litellm.completion(**arguments(model, max_retries=0))))
            # something else follows, so the call was given up
            raised(
                lambda: under(
                    layer, lambda: litellm.completion(**arguments(model, max_retries=0, tools=TOOLS))
                )
            )
            raised(lambda: under(layer, lambda: litellm.completion(**arguments(model, max_retries=0))))
    assert len(llm_nodes(stage)) == 2
    again = raised(lambda: under(stage.replay(), lambda: litellm.completion(**arguments(None))))
    kind = getattr(litellm.exceptions, name)
    for error in (bare, live, again):
        assert type(error) is kind
        assert error.status_code == status
        assert (error.llm_provider, error.model) == (bare.llm_provider, bare.model)
        assert str(error) == str(bare)
        assert error.message == bare.message


def test_retries_of_litellm_are_one_call_and_one_node(litellm: Any, stage: Stage) -> None:
    answers = failure(500, "broken"), failure(500, "broken"), ScriptedAnswer(content="at last")
    with serving(*answers) as model, stage.live() as layer:
        under(layer, lambda: litellm.completion(**arguments(model, max_retries=2)))
        assert len(model.requests) == 3
    (node,) = llm_nodes(stage)
    assert node.metadata.attempts == 1
    again = under(stage.replay(), lambda: litellm.completion(**arguments(None)))
    assert again.choices[0].message.content == "at last"


def test_retries_of_the_harness_are_attempts_of_one_node(litellm: Any, stage: Stage) -> None:
    answers = failure(429, "slow down"), failure(500, "broken"), ScriptedAnswer(content="at last")
    with serving(*answers) as model, stage.live() as layer:
        for _ in range(2):
            raised(lambda: under(layer, lambda: litellm.completion(**arguments(model, max_retries=0))))
        under(layer, lambda: litellm.completion(**arguments(model, max_retries=0)))
    (node,) = llm_nodes(stage)
    assert node.metadata.attempts == 3
    failed = [each.error.type for each in stage.records if isinstance(each, AttemptFailed)]
    assert failed == ["litellm.exceptions:RateLimitError", "litellm.exceptions:InternalServerError"]


def test_a_provider_that_is_down_is_an_attempt_and_the_run_can_go_on(litellm: Any, stage: Stage) -> None:
    with stage.live() as layer:
        down = raised(lambda: under(layer, lambda: litellm.completion(**arguments(None, max_retries=0))))
    assert type(down).__module__.startswith("litellm")
    assert llm_nodes(stage) == []
    with serving(ScriptedAnswer(content="up")) as model, stage.live() as layer:
        up = under(layer, lambda: litellm.completion(**arguments(model)))
    assert up.choices[0].message.content == "up"


def test_credentials_are_nowhere_in_the_run(litellm: Any, stage: Stage) -> None:
    secrets = ["sk-live-abcdefghijklmnop", "plain-words-as-a-key", "header-value-123", "Basic dXNlcjpwYXNz"]
    echoes = [failure(401, " and ".join([key, *secrets[2:], "are not allowed"])) for key in secrets[:2]]
    more: dict[str, Any] = {
        "extra_headers": {"X-Other": secrets[2], "Authorization": secrets[3]},
        "max_retries": 0,
    }
    with (
        serving(*echoes, ScriptedAnswer(content="one")) as model,
        stage.live(secrets=secrets[:1]) as layer,
    ):
        for secret in secrets[:2]:
            asked = arguments(model, **more) | {"api_key": secret}
            raised(partial(under, layer, partial(litellm.completion, **asked)))
        under(layer, lambda: litellm.completion(**(arguments(model, **more) | {"api_key": secrets[1]})))
    kept = stage.bytes_on_disk
    assert b"are not allowed" in kept
    for secret in [*secrets, "dXNlcjpwYXNz", "sk-test-0123456789"]:
        assert secret.encode() not in kept


# --- what stops ---


def test_a_stream_is_refused_or_comes_back_whole(litellm: Any, stage: Stage) -> None:
    with serving(ScriptedAnswer(content="one")) as model, stage.live() as layer:
        try:
            chunks = under(layer, lambda: list(litellm.completion(**arguments(model, stream=True))))
        except StopSignal:
            assert "stream" in str(layer.latch.error)
            assert model.requests == ()
        else:
            assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == "one"


def test_a_swallowed_signal_is_raised_by_the_next_call(litellm: Any, stage: Stage) -> None:
    with serving(ScriptedAnswer(content="one")) as model, stage.live() as layer:
        layer.latch.rewind()
        for _ in range(2):
            with pytest.raises(RewindSignal):
                under(layer, lambda: litellm.completion(**arguments(model)))
        with pytest.raises(RewindSignal):
            under(layer, lambda: asyncio.run(litellm.acompletion(**arguments(model))))
        assert model.requests == ()


def test_a_full_disk_stops_before_the_request_leaves(litellm: Any, stage: Stage) -> None:
    with serving(ScriptedAnswer(content="one")) as model, stage.live() as layer:
        with full_disk(stage), pytest.raises(StopSignal):
            under(layer, lambda: litellm.completion(**arguments(model)))
        assert isinstance(layer.latch.error, StorageError)
        assert model.requests == ()


def test_a_changed_prompt_stops_a_replay_with_the_difference(litellm: Any, stage: Stage) -> None:
    with serving(ScriptedAnswer(content="one")) as model, stage.live() as layer:
        under(layer, lambda: litellm.completion(**arguments(model)))
        replay = stage.replay()
        changed = [MESSAGES[0], {"role": "user", "content": "Mend it."}]
        with pytest.raises(StopSignal):
            under(replay, lambda: litellm.completion(**arguments(model, messages=changed)))
        assert len(model.requests) == 1
    assert isinstance(replay.latch.error, DivergenceError)
    assert "recorded 'Mend.', asked 'Mend it.'" in replay.latch.error.difference


def test_calls_within_a_tool_pass_through_unrecorded(litellm: Any, stage: Stage) -> None:
    with serving(ScriptedAnswer(content="one")) as model, stage.live() as layer:
        under(layer, lambda: litellm.completion(**arguments(model)))

        def sub_agent() -> str:
            answer = under(layer, lambda: litellm.completion(**arguments(model, messages=MESSAGES[1:])))
            return str(answer.choices[0].message.content)

        assert layer.run_tool("sub", {}, sub_agent).value == "one"
        assert len(model.requests) == 2
    assert len(llm_nodes(stage)) == 1


def test_without_a_layer_nothing_is_recorded(litellm: Any, stage: Stage) -> None:
    with serving(ScriptedAnswer(content="one")) as model, stage.live():
        assert litellm.completion(**arguments(model)).choices[0].message.content == "one"
    assert llm_nodes(stage) == []
