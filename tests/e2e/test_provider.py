"""Stories of a provider that fails: attempts of one call, a run that is kept, and going on with it."""

from __future__ import annotations

import socket

import pytest

from agentrewind.records import AttemptFailed, LlmNode
from agentrewind.replaying import replay_run
from harness_adapters.scripted import ScriptedAnswer, ScriptedRequest
from tests.e2e.laws import check_laws
from tests.e2e.stage import KEY, Stage
from tests.e2e.steps import back, commit, look, story, submit, uid_of, work

pytestmark = pytest.mark.slow

AT_ONCE = {"config": ["model.model_kwargs.max_retries=0"]}


def test_a_failure_and_a_success_are_two_attempts_of_one_call(stage: Stage) -> None:
    def flaky(request: ScriptedRequest) -> ScriptedAnswer:
        if request.number in (2, 7):
            return ScriptedAnswer(status=500)
        return steps(request)

    steps = story(
        work("a"),
        work("b"),
        look(),
        back("b", "NOTE_A"),
        NOTE_A=[work("c"), submit()],
    )
    stage.policy = flaky
    stage.extra["MSWEA_MODEL_RETRY_STOP_AFTER_ATTEMPT"] = "2"
    ended = stage.start(settings=AT_ONCE)
    assert (ended.code, ended.result["rewinds"]) == (0, 1), ended.result
    attempts = [each.metadata.attempts for each in stage.timeline.nodes.values() if isinstance(each, LlmNode)]
    assert attempts == [1, 2, 1, 1, 1, 2]
    check_laws(stage, live_calls=8)


def test_a_provider_that_is_away_refuses_or_fails_leaves_a_run_that_goes_on(stage: Stage) -> None:
    trouble: list[int] = []

    def unreliable(request: ScriptedRequest) -> ScriptedAnswer:
        return ScriptedAnswer(status=trouble[0]) if trouble else steps(request)

    def then_fail(_request: ScriptedRequest) -> ScriptedAnswer:
        trouble.append(503)
        return work("b", "echo b > b")

    def then_lock_out(request: ScriptedRequest) -> ScriptedAnswer:
        trouble.append(401)
        return ScriptedAnswer("say-go", [commit(uid_of(request, "b"), "NOTE_A")])

    steps = story(
        work("a", "echo a > a"),
        then_fail,
        look(),
        then_lock_out,
        NOTE_A=[work("c", "echo c > c"), submit()],
    )
    stage.policy = unreliable
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        away = f"http://127.0.0.1:{closed.getsockname()[1]}/v1"
    first = stage.start(
        settings=AT_ONCE, agent_environment={"OPENAI_BASE_URL": away, "OPENAI_API_BASE": away}
    )
    assert (first.code, first.result["state"]) == (1, "error")
    assert "Connection" in first.result["detail"]
    assert stage.arrivals == []

    second = stage.resume()
    assert (second.code, second.result["state"]) == (1, "error")
    assert stage.marks == ["a", "b"]
    trouble.clear()

    third = stage.resume()
    assert (third.code, third.result["state"]) == (1, "error"), third.result
    assert "Authentication" in third.result["detail"]
    assert KEY not in str(third.said)
    assert third.result["rewinds"] == 1
    trouble.clear()

    last = stage.resume()
    assert (last.code, last.result["state"]) == (0, "accepted"), last.result
    assert stage.marks == ["a", "b", "c"]
    assert sorted(path.name for path in stage.root.iterdir()) == ["a", "c"]
    assert sum(isinstance(event, AttemptFailed) for event in stage.timeline.events(0)) == 2
    check_laws(stage, live_calls=8)


def test_a_run_that_ended_with_its_provider_is_replayed_up_to_that_failure(stage: Stage) -> None:
    refused = ScriptedAnswer(None, status=400, body={"error": {"message": "the provider says no"}})
    stage.policy = story(work("a", "echo a > a"), refused)
    ended = stage.start(settings=AT_ONCE)
    assert (ended.code, ended.result["state"]) == (1, "error")
    requests = len(stage.server.requests)
    found = replay_run(stage.run, home=stage.home, environment=stage.environment)
    assert (found.divergence, found.remaining, found.served) == (None, 0, 2)
    assert found.error is not None
    assert found.error in ended.result["detail"]
    assert "the provider says no" in found.error
    assert len(stage.server.requests) == requests
