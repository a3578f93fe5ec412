"""The scripted model over real HTTP: its answers, its streams, its refusals and its record."""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentrewind.errors import UsageError
from harness_adapters.scripted import (
    ScriptedAnswer,
    ScriptedModel,
    ScriptedRequest,
    Step,
    from_steps,
    load_policy,
)
from harness_adapters.scripted_answer import Completion
from harness_adapters.scripted_request import read_request

USER = {"role": "user", "content": "go"}


@dataclass(frozen=True)
class Reply:
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def message(self) -> Any:
        return self.json["choices"][0]["message"]


def send(
    base_url: str, body: bytes, *, method: str = "POST", path: str = "/chat/completions", **headers: str
) -> Reply:
    address = urlsplit(base_url)
    connection = http.client.HTTPConnection(address.hostname or "", address.port or 0, timeout=10)
    try:
        connection.request(method, address.path + path, body=body, headers=headers)
        response = connection.getresponse()
        return Reply(response.status, dict(response.getheaders()), response.read())
    finally:
        connection.close()


def ask(model: ScriptedModel, *messages: Mapping[str, Any], **more: Any) -> Reply:
    request = {"model": "scripted-test", "messages": list(messages) or [USER], **more}
    return send(model.base_url, json.dumps(request).encode())


def call(call_id: str, name: str = "bash") -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": "{}"}}


def asks(*call_ids: str) -> dict[str, Any]:
    return {"role": "assistant", "content": None, "tool_calls": [call(call_id) for call_id in call_ids]}


def result(call_id: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": "done"}


def always(answer: ScriptedAnswer) -> Any:
    return lambda request: answer


def test_answers_with_content_and_tool_calls_under_counted_ids() -> None:
    answer = ScriptedAnswer("look", tool_calls=[("bash", {"command": "ls"}), ("bash", "{broken")])
    with ScriptedModel(always(answer)) as model:
        first, second = ask(model), ask(model)
    assert first.json["id"] == "chatcmpl-1"
    assert second.json["id"] == "chatcmpl-2"
    assert first.headers["Content-Length"] == str(len(first.body))
    assert first.message["content"] == "look"
    assert [c["id"] for c in first.message["tool_calls"]] == ["call_1", "call_2"]
    assert [c["id"] for c in second.message["tool_calls"]] == ["call_3", "call_4"]
    assert [c["function"]["arguments"] for c in first.message["tool_calls"]] == [
        '{"command": "ls"}',
        "{broken",
    ]
    assert first.json["choices"][0]["finish_reason"] == "tool_calls"
    usage = first.json["usage"]
    assert usage["prompt_tokens"] + usage["completion_tokens"] == usage["total_tokens"] > 0


def test_a_new_server_does_not_reuse_call_ids_of_the_conversation() -> None:
    with ScriptedModel(always(ScriptedAnswer(tool_calls=[("bash", {})]))) as model:
        reply = ask(model, USER, asks("call_7"), result("call_7"))
    assert reply.message["tool_calls"][0]["id"] == "call_8"


def test_given_usage_is_passed_on() -> None:
    usage = {"prompt_tokens": 5, "completion_tokens": 6, "total_tokens": 11}
    with ScriptedModel(always(ScriptedAnswer("x", usage=usage))) as model:
        assert ask(model).json["usage"] == usage


def joined(chunks: list[dict[str, Any]]) -> dict[str, Any]:
    """What a client puts together from the deltas of one answer."""
    content: str | None = None
    calls: dict[int, dict[str, str]] = {}
    for chunk in chunks:
        for choice in chunk["choices"]:
            delta = choice["delta"]
            if delta.get("content") is not None:
                content = (content or "") + delta["content"]
            for piece in delta.get("tool_calls", []):
                known = calls.setdefault(piece["index"], {"id": "", "name": "", "arguments": ""})
                known["id"] += piece.get("id", "")
                known["name"] += piece["function"].get("name", "")
                known["arguments"] += piece["function"]["arguments"]
    return {"content": content, "calls": [calls[index] for index in sorted(calls)]}


answers = st.builds(
    ScriptedAnswer,
    st.none() | st.text(),
    tool_calls=st.lists(st.tuples(st.text(min_size=1), st.dictionaries(st.text(), st.text()) | st.text())),
)


@given(answers)
def test_a_stream_says_what_the_whole_body_says(answer: ScriptedAnswer) -> None:
    completion = Completion(
        completion_id="chatcmpl-1",
        model="m",
        answer=answer,
        call_ids=tuple(f"call_{n}" for n in range(len(answer.tool_calls))),
        prompt_characters=9,
    )
    whole, chunks = completion.whole(), list(completion.chunks(include_usage=True))
    message = whole["choices"][0]["message"]
    calls = [{"id": c["id"], **c["function"]} for c in message.get("tool_calls", [])]
    assert joined(chunks) == {"content": message["content"], "calls": calls}
    assert chunks[-1]["choices"] == []
    assert chunks[-1]["usage"] == whole["usage"]
    assert chunks[-2]["choices"][0]["finish_reason"] == whole["choices"][0]["finish_reason"]


@pytest.mark.parametrize("include_usage", [True, False])
def test_streams_events_over_http(include_usage: bool) -> None:
    answer = ScriptedAnswer("a long enough sentence for two pieces", tool_calls=[("bash", {"command": "ls"})])
    with ScriptedModel(always(answer)) as model:
        reply = ask(model, stream=True, stream_options={"include_usage": include_usage})
    assert reply.headers["Content-Type"] == "text/event-stream"
    events = [line.removeprefix("data: ") for line in reply.body.decode().split("\n\n") if line]
    assert events[-1] == "[DONE]"
    chunks = [json.loads(event) for event in events[:-1]]
    assert joined(chunks)["content"] == answer.content
    assert any("usage" in chunk for chunk in chunks) is include_usage


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (b"{", "no JSON"),
        (b"\xff", "no JSON"),
        (b"[" * 100_000, "no JSON"),
        (b"[]", "must be a JSON object, not an array"),
        (b"{}", "`model`"),
        (b'{"model": "m"}', "`messages`"),
        (b'{"model": "m", "messages": []}', "`messages`"),
        (b'{"model": "m", "messages": [3]}', "messages[0] must be an object, not a number"),
        (b'{"model": "m", "messages": [{"role": "robot", "content": ""}]}', "'robot'"),
        (b'{"model": "m", "messages": [{"role": "user"}]}', "messages[0].content"),
        (b'{"model": "m", "messages": [{"role": "assistant"}]}', "neither content nor tool_calls"),
        (b'{"model": "m", "messages": [{"role": "assistant", "tool_calls": []}]}', "non-empty array"),
        (
            b'{"model": "m", "messages": [{"role": "assistant", "tool_calls": [{"id": "a"}]}]}',
            "tool_calls[0]",
        ),
        (b'{"model": "m", "messages": [{"role": "tool", "content": ""}]}', "tool_call_id"),
        (b'{"model": "m", "messages": [{"role": "user", "content": ""}], "tools": {}}', "`tools`"),
        (b'{"model": "m", "messages": [{"role": "user", "content": ""}], "tools": [{}]}', "tools[0]"),
    ],
)
def test_malformed_requests_are_refused_by_name(body: bytes, says: str) -> None:
    with ScriptedModel(always(ScriptedAnswer())) as model:
        reply = send(model.base_url, body)
        assert reply.status == 400
        assert says in reply.json["error"]["message"]
        assert reply.json["error"]["type"] == "invalid_request_error"
        (request,) = model.requests
    assert request.refusal is not None


@pytest.mark.parametrize(
    ("messages", "says"),
    [
        ([USER, asks("a")], "no tool result for 'a' before the end"),
        ([USER, asks("a", "b"), result("a")], "no tool result for 'b'"),
        ([USER, asks("a"), USER, result("a")], "no tool result for 'a' before messages[2]"),
        ([USER, asks("a"), result("a"), result("a")], "second result for tool call 'a'"),
        ([USER, result("a")], "result for 'a'"),
        ([USER, asks("a"), result("a"), USER, result("a")], "result for 'a'"),
        ([USER, asks("a", "a"), result("a")], "one id twice"),
    ],
)
def test_unpaired_tool_calls_are_refused(messages: list[dict[str, Any]], says: str) -> None:
    with ScriptedModel(always(ScriptedAnswer())) as model:
        reply = ask(model, *messages)
    assert reply.status == 400
    assert says in reply.json["error"]["message"]


@st.composite
def conversations(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Well-paired conversations, results in any order, ids reused by later answers."""
    messages: list[dict[str, Any]] = [dict(USER)]
    for _ in range(draw(st.integers(1, 5))):
        ids = draw(st.lists(st.sampled_from("abcd"), unique=True, min_size=1))
        messages += [asks(*ids), *(result(call_id) for call_id in draw(st.permutations(ids)))]
        messages += draw(st.lists(st.just(dict(USER)), max_size=1))
    return messages


def fault(messages: list[dict[str, Any]]) -> object:
    return read_request(json.dumps({"model": "m", "messages": messages}).encode(), number=1).refusal


@given(conversations(), st.data())
def test_one_result_per_call_right_behind_it_is_all_that_passes(
    messages: list[dict[str, Any]], data: st.DataObject
) -> None:
    assert fault(messages) is None
    places = [index for index, message in enumerate(messages) if message["role"] == "tool"]
    at = data.draw(st.sampled_from(places))
    assert fault(messages[:at] + messages[at + 1 :]) is not None
    assert fault([*messages[: at + 1], *messages[at:]]) is not None
    assert fault([*messages[:at], {"role": "system", "content": "memory"}, *messages[at:]]) is not None


def test_unknown_paths_methods_and_models_are_told_what_is_there() -> None:
    with ScriptedModel(always(ScriptedAnswer()), models=["scripted-a", "scripted-b"]) as model:
        listed = send(model.base_url, b"", method="GET", path="/models")
        assert [entry["id"] for entry in listed.json["data"]] == ["scripted-a", "scripted-b"]
        lost = send(model.base_url, b"{}", path="/embeddings")
        assert lost.status == 404
        assert "POST /v1/chat/completions" in lost.json["error"]["message"]
        assert send(model.base_url, b"", method="GET", path="/nothing").status == 404
        assert send(model.base_url, b"", **{"Content-Length": "²"}).status == 411
        assert ask(model).status == 404
        assert "scripted-a, scripted-b" in ask(model).json["error"]["message"]


def test_scripted_errors_have_the_given_status_and_body() -> None:
    steps = [
        ScriptedAnswer(status=429),
        ScriptedAnswer(status=503, body="busy"),
        ScriptedAnswer(status=401, body={}),
    ]
    with ScriptedModel(lambda request: steps[request.number - 1]) as model:
        replies = [ask(model) for _ in steps]
    assert [reply.status for reply in replies] == [429, 503, 401]
    assert "error" in replies[0].json
    assert replies[1].body == b"busy"
    assert replies[2].json == {}


def test_a_failing_policy_is_an_error_of_the_server_and_a_missing_answer_is_none() -> None:
    def broken(request: ScriptedRequest) -> ScriptedAnswer:
        raise ZeroDivisionError("no luck")

    with ScriptedModel(broken) as model:
        reply = ask(model)
        assert reply.status == 500
        assert "ZeroDivisionError: no luck" in reply.json["error"]["message"]
    with ScriptedModel(always(ScriptedAnswer(tool_calls=[("bash", {"command": b"bytes"})]))) as model:
        assert ask(model).status == 500
    with ScriptedModel(from_steps([])) as model:
        assert ask(model).status == 404


def test_a_delay_holds_the_answer_and_ends_with_the_server() -> None:
    with ScriptedModel(always(ScriptedAnswer("late", delay=0.2))) as model:
        began = time.monotonic()
        assert ask(model).message["content"] == "late"
        assert time.monotonic() - began >= 0.2
    with ScriptedModel(always(ScriptedAnswer("never", delay=60))) as model:
        connection = http.client.HTTPConnection("127.0.0.1", urlsplit(model.base_url).port or 0)
        connection.request("POST", "/v1/chat/completions", json.dumps({"model": "m", "messages": [USER]}))
        while not model.requests:
            time.sleep(0.01)
        began = time.monotonic()
    assert time.monotonic() - began < 5
    connection.close()


def test_a_client_that_leaves_does_no_harm() -> None:
    with ScriptedModel(always(ScriptedAnswer("x" * 1_000_000, delay=0.05))) as model:
        for _ in range(3):
            connection = http.client.HTTPConnection("127.0.0.1", urlsplit(model.base_url).port or 0)
            connection.request("POST", "/v1/chat/completions", json.dumps({"model": "m", "messages": [USER]}))
            connection.close()
        assert ask(model).status == 200


def test_the_record_holds_every_request_and_no_key(tmp_path: Path) -> None:
    log = tmp_path / "requests.jsonl"
    with ScriptedModel(always(ScriptedAnswer("hi")), log=log) as model:
        ask(model, USER, tools=[{"type": "function", "function": {"name": "bash"}}])
        ask(model, USER, asks("a"))
        send(model.base_url, b"nonsense", Authorization="Bearer sk-secret")
        first, second, third = model.requests
    assert (first.number, second.number, third.number) == (1, 2, 3)
    assert first.messages == (USER,)
    assert first.tool_names == ("bash",)
    assert [bool(request.refusal) for request in (first, second, third)] == [False, True, True]
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert [line["number"] for line in lines] == [1, 2, 3]
    assert [line["status"] for line in lines] == [200, 400, 400]
    assert lines[0]["request"]["messages"] == [USER]
    assert "sk-secret" not in log.read_text()


def numbered(name: str, count: int) -> list[ScriptedAnswer]:
    return [ScriptedAnswer(f"{name} {number}") for number in range(count)]


def said(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


def test_steps_follow_the_conversation_and_not_a_counter() -> None:
    steps: list[Step] = [*numbered("step", 2), lambda request: ScriptedAnswer(f"turn {request.turn}")]
    with ScriptedModel(from_steps(steps)) as model:
        longer = [USER, said("step 0"), USER, said("step 1")]
        assert ask(model, *longer).message["content"] == "turn 2"
        assert ask(model, *longer[:2]).message["content"] == "step 1"
        assert ask(model, *longer[:2]).message["content"] == "step 1"
        assert ask(model, *longer, said("turn 2")).status == 404


def test_a_told_text_opens_its_own_steps() -> None:
    policy = from_steps(numbered("step", 9), when={"one": numbered("first", 9), "two": numbered("second", 9)})
    memory = {"role": "system", "content": [{"type": "text", "text": "lessons: one, two"}]}
    with ScriptedModel(policy) as model:
        assert ask(model, USER, said("one")).message["content"] == "step 1"
        assert ask(model, USER, said("a"), memory).message["content"] == "second 0"
        assert ask(model, USER, said("a"), memory, said("b")).message["content"] == "second 1"


def test_a_request_tells_what_was_asked_and_what_came_back() -> None:
    with ScriptedModel(always(ScriptedAnswer())) as model:
        ask(model, {"role": "user", "content": "a  note\nof two lines"}, asks("a"), result("a"))
        (request,) = model.requests
    assert request.told("note of two")
    assert not request.told("done")
    assert [c.name for c in request.calls] == ["bash"]
    assert request.calls[0].parsed() == {}
    assert request.result("a") == "done"
    assert request.result("b") is None


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("nonsense", "package.module:factory"),
        ("no_such_module:factory", "cannot be imported"),
        ("json:nothing", "no callable 'nothing'"),
        ("builtins:dict", "returned dict"),
    ],
)
def test_a_policy_that_cannot_be_loaded_is_named(path: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        load_policy(path)


POLICY = """
from harness_adapters.scripted import ScriptedAnswer, from_steps

def policy():
    return from_steps([ScriptedAnswer("one"), ScriptedAnswer("two")])
"""


def serve(directory: Path, *options: str) -> subprocess.Popen[str]:
    (directory / "spoken_script.py").write_text(POLICY)
    return subprocess.Popen(
        [sys.executable, "-m", "harness_adapters.scripted", *options],
        env={**os.environ, "PYTHONPATH": str(directory)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_serves_as_a_process_of_its_own_until_it_is_told_to_end(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    with serve(tmp_path, "--policy", "spoken_script:policy", "--log", str(log)) as process:
        assert process.stdout is not None
        base_url = process.stdout.readline().strip()
        messages: list[dict[str, Any]] = [USER, said("one")]
        body = json.dumps({"model": "m", "messages": messages}).encode()
        assert send(base_url, body).message["content"] == "two"
        assert len(log.read_text().splitlines()) == 1
        assert (
            send(base_url, json.dumps({"model": "m", "messages": [*messages, said("two")]}).encode()).status
            == 404
        )
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=10) == 0


@pytest.mark.parametrize(
    ("options", "code", "says"),
    [
        (["--policy", "spoken_script:other"], 2, "no callable 'other'"),
        (["--policy", "spoken_script:policy", "--port", "99999"], 2, "--port"),
        (["--policy", "spoken_script:policy", "--log", "/dev/null/x"], 1, "cannot serve"),
    ],
)
def test_a_process_that_cannot_serve_says_why(
    options: list[str], code: int, says: str, tmp_path: Path
) -> None:
    with serve(tmp_path, *options) as process:
        output, errors = process.communicate(timeout=20)
    assert process.returncode == code
    assert output == ""
    assert says in errors
