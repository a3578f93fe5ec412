"""The gate: what goes live, what is served, what stops the process, and what the provider is sent."""

from __future__ import annotations

import asyncio
import resource
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from agentrewind.capture.nesting import inside, is_inside
from agentrewind.errors import DamagedError, DivergenceError, StorageError, UsageError
from agentrewind.layer import Layer
from agentrewind.options import RunOptions
from agentrewind.records import AttemptFailed, JsonObject, LlmNode, Note, Started
from agentrewind.replayer import OnDivergence
from agentrewind.rewind.signal import EndReason, LayerSignal, RewindSignal, StopSignal
from tests.capture.plain import START, SYSTEM, TASK, Provider, ask, call_of, grown, says
from tests.core.stage import Stage


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage.create(tmp_path)


class FlakyError(Exception):
    """What a provider raises."""


def nodes(stage: Stage) -> list[LlmNode]:
    return [node for node in stage.timeline.path() if isinstance(node, LlmNode)]


def test_an_answer_is_given_through_and_served_again_without_a_call(stage: Stage) -> None:
    provider = Provider([says("one"), says("two")])
    with stage.live() as layer:
        first = ask(layer, provider, START)
        second = ask(layer, provider, grown(START, first))
    assert (first, second) == (says("one"), says("two"))
    replay = stage.replay()
    again = ask(replay, provider, START)
    assert again == first
    assert ask(replay, provider, grown(START, again)) == second
    assert len(provider.received) == 2
    assert (replay.served, replay.remaining) == (2, 0)


def test_equal_requests_get_their_answers_in_order(stage: Stage) -> None:
    provider = Provider()
    with stage.live() as layer:
        live = [ask(layer, provider, START) for _ in range(3)]
    replay = stage.replay()
    assert [ask(replay, provider, START) for _ in range(3)] == live
    assert len({str(answer) for answer in live}) == 3


def test_the_provider_gets_the_harness_own_messages(stage: Stage) -> None:
    class Message(dict[str, object]):
        """A harness's own kind of message."""

    mine = [Message(SYSTEM), Message(TASK)]
    seen: list[object] = []
    with stage.live() as layer:
        layer.gate.run(call_of(mine), lambda messages: seen.extend(messages) or says("one"))  # type: ignore[func-returns-value]
    assert [type(each) for each in seen] == [Message, Message]
    assert all(one is other for one, other in zip(seen, mine, strict=True))


def test_the_intent_is_on_disk_before_the_call_is_made(stage: Stage) -> None:
    def perform(_messages: object) -> JsonObject:
        (started,) = [each for each in stage.records if isinstance(each, Started)]
        assert started.attempt == 1
        assert not nodes(stage)
        return says("one")

    with stage.live() as layer:
        layer.gate.run(call_of(START), perform)
    assert len(nodes(stage)) == 1


def test_attempts_of_one_request_are_one_node(stage: Stage) -> None:
    provider = Provider([FlakyError("overloaded"), FlakyError("overloaded again"), says("one")])
    with stage.live() as layer:
        for text in ("overloaded", "overloaded again"):
            with pytest.raises(FlakyError, match=text):
                ask(layer, provider, START)
        assert ask(layer, provider, START) == says("one")
    (node,) = nodes(stage)
    assert node.metadata.attempts == 3
    assert node.error is None
    failed = [each for each in stage.records if isinstance(each, AttemptFailed)]
    assert [(each.record_uid, each.attempt, each.error.message) for each in failed] == [
        (node.record_uid, 1, "overloaded"),
        (node.record_uid, 2, "overloaded again"),
    ]
    assert ask(stage.replay(), provider, START) == says("one")


def test_a_request_that_is_given_up_is_a_node_that_fails_again(stage: Stage) -> None:
    provider = Provider([FlakyError("too long"), FlakyError("too long"), says("short")])
    with stage.live() as layer:
        for _ in range(2):
            with pytest.raises(FlakyError):
                ask(layer, provider, START)
        ask(layer, provider, [TASK])
    failed, answered = nodes(stage)
    assert failed.error is not None
    assert (failed.metadata.attempts, answered.metadata.attempts) == (2, 1)
    replay = stage.replay()
    for _ in range(2):
        with pytest.raises(FlakyError, match="too long"):
            ask(replay, provider, START)
    assert ask(replay, provider, [TASK]) == says("short")
    assert len(provider.received) == 3


def test_a_recorded_error_that_cannot_be_built_stops_the_replay(stage: Stage) -> None:
    class LocalError(Exception):
        pass

    provider = Provider([LocalError("x"), says("other")])
    with stage.live() as layer:
        with pytest.raises(LocalError):
            ask(layer, provider, START)
        ask(layer, provider, [TASK])
    replay = stage.replay()
    with pytest.raises(StopSignal):
        ask(replay, provider, START)
    assert isinstance(replay.latch.error, DamagedError)


def test_a_changed_request_stops_the_process_and_every_later_call(stage: Stage) -> None:
    provider = Provider()
    with stage.live() as layer:
        ask(layer, provider, START)
    with stage.live() as layer:
        for _ in range(2):
            with pytest.raises(StopSignal):
                ask(layer, provider, [SYSTEM, {**TASK, "content": "Mend the tests."}])
        error = layer.latch.error
        assert isinstance(error, DivergenceError)
        assert error.record_uid == "rec_000001"
        assert "recorded 'Mend the build.', asked 'Mend the tests.'" in error.difference
        # a harness that swallows the signal gets nowhere: not with the right request, not with a tool
        with pytest.raises(StopSignal):
            ask(layer, provider, START)
        with pytest.raises(StopSignal):
            layer.run_tool("bash", {}, lambda: pytest.fail("ran"))
    assert len(provider.received) == 1


def test_by_position_the_run_goes_on_with_a_warning_in_the_log(stage: Stage) -> None:
    provider = Provider()
    with stage.live() as layer:
        first = ask(layer, provider, [SYSTEM, {**TASK, "content": "It is 10:31."}])
    with stage.live(on_divergence=OnDivergence.POSITION) as layer:
        late: list[JsonObject] = [SYSTEM, {**TASK, "content": "It is 11:02."}]
        assert ask(layer, provider, late) == first
        second = ask(layer, provider, grown(late, first))
    assert len(stage.warnings) == 1
    assert "10:31" in stage.warnings[0]
    assert [each.topic for each in stage.records if isinstance(each, Note)] == ["position"]
    # the new node stays in its conversation, and its messages are whole
    one, two = nodes(stage)
    assert one.conversation == two.conversation
    assert stage.timeline.messages(two.record_uid) == tuple(grown(late, first))
    assert second == says("answer 2")


def test_nothing_goes_live_in_a_replay(stage: Stage) -> None:
    provider = Provider()
    with stage.live() as layer:
        ask(layer, provider, START)
    replay = stage.replay()
    ask(replay, provider, START)
    with pytest.raises(StopSignal):
        ask(replay, provider, [TASK])
    assert len(provider.received) == 1
    assert isinstance(replay.latch.error, DivergenceError)


def test_of_nested_calls_the_outermost_is_the_recorded_one(stage: Stage) -> None:
    provider = Provider()
    with stage.live() as layer:

        def perform(messages: object) -> JsonObject:
            assert is_inside()
            return says("outer")

        assert not is_inside()
        layer.gate.run(call_of(START), perform)
        assert not is_inside()
        result = layer.run_tool("bash", {}, lambda: is_inside())
    assert result.value is True
    assert len(nodes(stage)) == 1
    assert provider.received == []


def test_inside_ends_with_an_exception_too() -> None:
    with pytest.raises(ValueError, match="x"), inside():
        raise ValueError("x")
    assert not is_inside()


def test_a_signal_from_within_a_call_is_no_attempt(stage: Stage) -> None:
    with stage.live() as layer:
        with pytest.raises(RewindSignal):
            layer.gate.run(call_of(START), lambda messages: raise_(layer.latch.rewind()))
        with pytest.raises(RewindSignal):
            ask(layer, Provider(), START)
    assert not [each for each in stage.records if isinstance(each, AttemptFailed)]


def raise_(error: BaseException) -> JsonObject:
    raise error


@pytest.mark.parametrize("error", [KeyboardInterrupt(), asyncio.CancelledError(), SystemExit(1)])
def test_what_ends_a_process_passes_through_and_is_noted(stage: Stage, error: BaseException) -> None:
    with stage.live() as layer, pytest.raises(type(error)):
        ask(layer, Provider([error]), START)
    (failed,) = [each for each in stage.records if isinstance(each, AttemptFailed)]
    assert failed.error.type.endswith(type(error).__name__)
    # nothing tells that the call was given up: the next process makes it again
    with stage.live() as layer:
        assert ask(layer, Provider(), START) == says("answer 1")


def test_messages_that_cannot_be_recorded_stop_the_process_before_the_call(stage: Stage) -> None:
    provider = Provider()
    with stage.live() as layer:
        with pytest.raises(StopSignal):
            ask(layer, provider, [{"role": "user", "content": object()}])
        assert isinstance(layer.latch.error, UsageError)
    assert provider.received == []


@pytest.mark.parametrize(
    "parameters",
    [
        {"api_key": "wholly-unlike-a-key"},
        {"extra_headers": {"X-Pass": "wholly-unlike-a-key"}},
        {"headers": {"Authorization": "Basic wholly-unlike-a-key"}},
        {"aws_secret_access_key": "wholly-unlike-a-key"},
        {"extra_body": {"auth": {"token": "wholly-unlike-a-key"}}},
    ],
    ids=lambda parameters: str(*parameters),
)
def test_what_the_caller_authenticates_with_is_nowhere_in_the_run(
    stage: Stage, parameters: dict[str, object]
) -> None:
    provider = Provider([FlakyError("no such key: wholly-unlike-a-key"), says("one")])
    with stage.live(secrets=["from-the-environment"]) as layer:
        with pytest.raises(FlakyError):
            ask(layer, provider, START, temperature=0.5, **parameters)
        provider.script.insert(0, FlakyError("from-the-environment is not allowed"))
        with pytest.raises(FlakyError):
            ask(layer, provider, START, temperature=0.5, **parameters)
        ask(layer, provider, START, temperature=0.5, **parameters)
    assert b"wholly-unlike-a-key" not in stage.bytes_on_disk
    assert b"from-the-environment" not in stage.bytes_on_disk
    (node,) = nodes(stage)
    assert node.parameters == {"temperature": 0.5}


def test_a_log_that_cannot_be_written_stops_before_the_next_effect(stage: Stage) -> None:
    provider = Provider()
    with stage.live() as layer:
        ask(layer, provider, START)
        with full_disk(stage):
            with pytest.raises(StopSignal):
                ask(layer, provider, [TASK])
            assert isinstance(layer.latch.error, StorageError)
        # there is room again, but the process is done for
        with pytest.raises(StopSignal):
            layer.run_tool("bash", {}, lambda: pytest.fail("ran"))
    assert len(provider.received) == 1
    assert len(nodes(stage)) == 1
    with stage.live() as layer:
        assert ask(layer, provider, START) == says("answer 1")
        assert ask(layer, provider, [TASK]) == says("answer 2")


class full_disk:  # noqa: N801 - reads as what it makes
    """No file of this process can grow while this lasts."""

    def __init__(self, stage: Stage) -> None:
        self._size = stage.run.segment_path(stage.timeline.head).stat().st_size

    def __enter__(self) -> None:
        self._limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (self._size, self._limits[1]))

    def __exit__(self, *_: object) -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, self._limits)


def test_awaited_calls_pass_the_same_gate(stage: Stage) -> None:
    provider = Provider([FlakyError("once"), says("one")])

    async def harness(layer: Layer) -> JsonObject:
        async def perform(messages: Sequence[object]) -> JsonObject:
            await asyncio.sleep(0)
            assert is_inside()
            return provider(messages)

        return await layer.gate.arun(call_of(START), perform)

    with stage.live() as layer:
        with pytest.raises(FlakyError):
            asyncio.run(harness(layer))
        assert asyncio.run(harness(layer)) == says("one")
        assert not is_inside()
    (node,) = nodes(stage)
    assert node.metadata.attempts == 2
    assert asyncio.run(harness(stage.replay())) == says("one")
    assert len(provider.received) == 2


def test_conversations_side_by_side_keep_their_lists_apart(stage: Stage) -> None:
    provider = Provider()
    other: list[JsonObject] = [{**SYSTEM, "content": "You review."}, TASK]
    with stage.live() as layer:
        lists = [START, other]
        for _ in range(3):
            lists = [grown(each, ask(layer, provider, each)) for each in lists]
    timeline = stage.timeline
    for node in nodes(stage):
        messages = timeline.messages(node.record_uid)
        assert list(messages) in [each[: len(messages)] for each in lists], (
            "a list by reference was put together from another conversation"
        )
    assert [len(node.messages.append) for node in nodes(stage)] == [2, 2, 1, 1, 1, 1]


# --- the memory ---


def rewound(stage: Stage, provider: Provider, note: str) -> list[JsonObject]:
    """A run that went on for two answers and came back to the second; returns its list there."""
    provider.script = [
        says("first", ("call_1", "bash", "{}")),
        says("abandoned words", ("call_2", "bash", "{}")),
        says("back", ("call_3", "backtrack_commit", "{}")),
    ]
    with stage.live() as layer:
        first = ask(layer, provider, START)
        layer.run_tool("bash", {"command": "one"}, lambda: "ok", tool_call_id="call_1")
        at_target = grown(START, first, "ok")
        second = ask(layer, provider, at_target)
        layer.run_tool("bash", {"command": "abandoned"}, lambda: "ok", tool_call_id="call_2")
        ask(layer, provider, grown(at_target, second, "ok"))
        with pytest.raises(RewindSignal):
            layer.run_tool(
                "backtrack_commit",
                {"record_uid": "rec_000003", "memory_summary": note},
                lambda: pytest.fail("the layer carries it out"),
                tool_call_id="call_3",
            )
    stage.rewind()
    provider.received.clear()
    return at_target


def memory_places(sent: list[object], note: str) -> list[int]:
    return [place for place, message in enumerate(sent) if note in str(message)]


def resumed(stage: Stage, provider: Provider, at_target: list[JsonObject], layer: Layer) -> JsonObject:
    first = ask(layer, provider, START)
    layer.run_tool("bash", {"command": "one"}, lambda: pytest.fail("ran twice"), tool_call_id="call_1")
    assert grown(START, first, "ok") == at_target
    return ask(layer, provider, at_target)


def test_after_a_rewind_one_call_is_live_with_the_memory_behind_the_recorded_list(stage: Stage) -> None:
    provider = Provider()
    at_target = rewound(stage, provider, "lesson learnt")
    with stage.live() as layer:
        answer = resumed(stage, provider, at_target, layer)
        assert len(provider.received) == 1
        (sent,) = provider.received
        assert sent[:-1] == at_target
        assert memory_places(sent, "lesson learnt") == [len(at_target)]
        assert isinstance(sent[-1], dict)
        assert sent[-1]["role"] == "system"
        # every later request carries it once, in the same place; records never hold it
        messages = at_target
        for _ in range(3):
            messages = grown(messages, answer)
            answer = ask(layer, provider, messages)
            assert memory_places(provider.received[-1], "lesson learnt") == [len(at_target)]
            assert "abandoned" not in str(provider.received[-1])
    for node in stage.timeline.own_nodes():
        assert "lesson learnt" not in str(stage.timeline.messages(node.record_uid))


def test_the_memory_is_in_no_other_conversation(stage: Stage) -> None:
    provider = Provider()
    at_target = rewound(stage, provider, "lesson learnt")
    with stage.live() as layer:
        resumed(stage, provider, at_target, layer)
        ask(layer, provider, [{**SYSTEM, "content": "You review."}, TASK])
        ask(layer, provider, [TASK])
    assert [memory_places(sent, "lesson learnt") for sent in provider.received] == [[len(at_target)], [], []]


def test_where_old_messages_are_cut_off_the_memory_follows_the_system_message(stage: Stage) -> None:
    provider = Provider()
    at_target = rewound(stage, provider, "lesson learnt")
    with stage.live() as layer:
        messages = at_target
        for _ in range(3):
            answer = (
                resumed(stage, provider, at_target, layer)
                if messages is at_target
                else ask(layer, provider, messages)
            )
            messages = grown(messages, answer)
        ask(layer, provider, [SYSTEM, *messages[-2:]])
    assert memory_places(provider.received[-1], "lesson learnt") == [1]


def test_a_later_process_puts_the_memory_in_the_same_place(stage: Stage) -> None:
    provider = Provider()
    at_target = rewound(stage, provider, "lesson learnt")
    with stage.live() as layer:
        messages = grown(at_target, resumed(stage, provider, at_target, layer))
    with stage.live() as layer:
        assert len(provider.received) == 1
        resumed(stage, provider, at_target, layer)
        assert len(provider.received) == 1
        ask(layer, provider, messages)
    assert memory_places(provider.received[-1], "lesson learnt") == [len(at_target)]


def test_by_position_the_memory_survives_a_prompt_that_changes_with_every_process(stage: Stage) -> None:
    provider = Provider()
    at_target = rewound(stage, provider, "lesson learnt")

    def at(time: str, messages: list[JsonObject]) -> list[JsonObject]:
        return [SYSTEM, {**TASK, "content": f"It is {time}."}, *messages[2:]]

    def go(layer: Layer, time: str, upto: list[JsonObject]) -> JsonObject:
        ask(layer, provider, at(time, START))
        layer.run_tool("bash", {"command": "one"}, lambda: pytest.fail("ran"), tool_call_id="call_1")
        return ask(layer, provider, at(time, upto))

    with stage.live(on_divergence=OnDivergence.POSITION) as layer:
        messages = grown(at_target, go(layer, "10:31", at_target))
    with stage.live(on_divergence=OnDivergence.POSITION) as layer:
        go(layer, "11:02", at_target)
        ask(layer, provider, at("11:02", messages))
    assert [memory_places(sent, "lesson learnt") for sent in provider.received] == [[len(at_target)]] * 2


def test_the_role_of_the_memory_is_that_of_the_run(tmp_path: Path) -> None:
    stage = Stage.create(tmp_path, options=RunOptions(task="mend", memory_role="user"))
    provider = Provider()
    at_target = rewound(stage, provider, "lesson learnt")
    with stage.live() as layer:
        resumed(stage, provider, at_target, layer)
    assert isinstance(provider.received[0][-1], dict)
    assert provider.received[0][-1]["role"] == "user"


def test_the_files_are_put_right_once_more_before_the_live_call(stage: Stage) -> None:
    (stage.root / "a").write_text("as it was")
    provider = Provider()
    at_target = rewound(stage, provider, "lesson learnt")
    with stage.live() as layer:
        (stage.root / "a").write_text("touched by a harness that starts")
        resumed(stage, provider, at_target, layer)
    assert (stage.root / "a").read_text() == "as it was"
    assert [each.topic for each in stage.records if isinstance(each, Note)] == ["startup"]


@pytest.mark.parametrize("swallow", [lambda: None, lambda: "text"])
def test_a_rewind_that_the_harness_swallows_is_raised_again(
    stage: Stage, swallow: Callable[[], object]
) -> None:
    provider = Provider([says("first"), says("back", ("call_1", "backtrack_commit", "{}"))])
    with stage.live() as layer:
        first = ask(layer, provider, START)
        ask(layer, provider, grown(START, first))
        try:
            layer.run_tool(
                "backtrack_commit",
                {"record_uid": "rec_000001", "memory_summary": "x"},
                swallow,
                tool_call_id="call_1",
            )
        except LayerSignal:
            swallow()
        assert layer.latch.reason is EndReason.REWIND
        for _ in range(2):
            with pytest.raises(RewindSignal):
                ask(layer, provider, START)
            with pytest.raises(RewindSignal):
                layer.run_tool("bash", {}, lambda: pytest.fail("ran"), tool_call_id="call_2")
            with pytest.raises(RewindSignal):
                layer.submit_last()
    assert len(provider.received) == 2


def test_system_text_that_a_fork_declares_changed_is_recorded_as_it_was_sent(tmp_path: Path) -> None:
    stage = Stage.create(tmp_path, options=RunOptions(task="mend", declared=frozenset({"system"})))
    provider = Provider()
    with stage.live() as layer:
        first = ask(layer, provider, START)
    changed: list[JsonObject] = [{"role": "system", "content": "You review."}, TASK]
    with stage.live() as layer:
        assert ask(layer, provider, changed) == first
        ask(layer, provider, grown(changed, first))
    assert len(provider.received) == 2
    assert list(stage.timeline.messages(nodes(stage)[-1].record_uid)) == grown(changed, first)
