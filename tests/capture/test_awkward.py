"""Answers of awkward kinds, as they came over the wire: the same bare, recorded and replayed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from harness_adapters.scripted import ScriptedAnswer, from_steps
from tests.capture.clients import KEY
from tests.capture.joined import Joined, run_of

pytestmark = pytest.mark.filterwarnings("ignore")  # the clients' own

SIGNATURE = "EqoBCkgIARABGAIiQ+/==\u2028 kept to the letter"
LONG = "0123456789abcdef" * 20_000


@pytest.fixture(scope="module", autouse=True)
def litellm() -> Iterator[Any]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LITELLM_LOCAL_MODEL_COST_MAP", "True")
        import litellm as package

        patch.setattr(package, "suppress_debug_info", True)
        yield package


def call(call_id: str, name: str = "bash", arguments: str = "{}") -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


MESSAGES: dict[str, dict[str, Any]] = {
    "arguments that are no JSON": {"content": None, "tool_calls": [call("c1", arguments="ls -l")]},
    "arguments that were cut off": {"content": None, "tool_calls": [call("c1", arguments='{"command": "ls')]},
    "no arguments": {"content": None, "tool_calls": [call("c1", arguments="")]},
    "an unknown tool": {"content": "", "tool_calls": [call("c1", name="no such tool ✗")]},
    "one id for several calls": {
        "content": None,
        "tool_calls": [call("c1"), call("c1", arguments='{"a": 1}')],
    },
    "nothing": {"content": ""},
    "nothing at all": {"content": None},
    "a refusal": {"content": None, "refusal": "I can't help with that."},
    "reasoning": {
        "content": "so",
        "reasoning_content": "first this\n",
        "thinking_blocks": [{"type": "thinking", "thinking": "first this\n", "signature": SIGNATURE}],
    },
    "a very long text": {"content": LONG},
    "half a character": {"content": "half \ud83d of one, \x00 and \x1b[31m"},
}


def completion(message: dict[str, Any], *, finish: str = "stop", **more: Any) -> dict[str, Any]:
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish}
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    body = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "m", "usage": usage}
    return {**body, "choices": [choice], **more}


def without_usage() -> dict[str, Any]:
    found = completion({"content": "free of charge"})
    del found["usage"]
    return found


CHATS = {
    **{kind: completion(message) for kind, message in MESSAGES.items()},
    "no usage": without_usage(),
    "usage that is null": completion({"content": "so"}, usage=None),
    "cut off by its length": completion({"content": "so far"}, finish="length"),
    "filtered": completion({"content": None}, finish="content_filter"),
    "fields that nobody knows": completion({"content": "so", "x_new": {"a": [1]}}, x_more="kept"),
}

RESPONSE = {
    "id": "resp_1",
    "object": "response",
    "created_at": 1,
    "model": "m",
    "status": "completed",
    "error": None,
    "incomplete_details": None,
    "instructions": None,
    "metadata": {},
    "tools": [],
    "parallel_tool_calls": True,
    "temperature": 1.0,
    "tool_choice": "auto",
    "top_p": 1.0,
}


def text(said: str) -> dict[str, Any]:
    part = {"type": "output_text", "text": said, "annotations": []}
    return {"id": "m1", "type": "message", "role": "assistant", "status": "completed", "content": [part]}


RESPONSES = {
    "nothing": {**RESPONSE, "output": []},
    "no usage": {**RESPONSE, "output": [text("so")]},
    "a refusal": {
        **RESPONSE,
        "output": [{**text(""), "content": [{"type": "refusal", "refusal": "I can't help with that."}]}],
    },
    "reasoning": {
        **RESPONSE,
        "output": [
            {"id": "r1", "type": "reasoning", "summary": [], "encrypted_content": SIGNATURE},
            text("so"),
        ],
    },
    "arguments that were cut off": {
        **RESPONSE,
        "status": "incomplete",
        "incomplete_details": {"reason": "max_output_tokens"},
        "output": [
            {
                "id": "f1",
                "type": "function_call",
                "status": "incomplete",
                "call_id": "c1",
                "name": "bash",
                "arguments": '{"command": "ls',
            }
        ],
    },
    "a very long text": {**RESPONSE, "output": [text(LONG)]},
}

TURN = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "stop_sequence": None}
COUNTED = {"input_tokens": 1, "output_tokens": 1}
TURNS = {
    "nothing": {**TURN, "content": [], "stop_reason": "end_turn", "usage": COUNTED},
    "a refusal": {**TURN, "content": [], "stop_reason": "refusal", "usage": COUNTED},
    "thinking": {
        **TURN,
        "content": [
            {"type": "thinking", "thinking": "first this", "signature": SIGNATURE},
            {"type": "redacted_thinking", "data": SIGNATURE},
            {"type": "text", "text": "so"},
        ],
        "stop_reason": "end_turn",
        "usage": COUNTED,
    },
    "one id for several calls": {
        **TURN,
        "content": [{"type": "tool_use", "id": "t1", "name": "bash", "input": {"n": n}} for n in range(2)],
        "stop_reason": "tool_use",
        "usage": COUNTED,
    },
    "a very long text": {
        **TURN,
        "content": [{"type": "text", "text": LONG}],
        "stop_reason": "max_tokens",
        "usage": COUNTED,
    },
}

Ask = Callable[[Joined], Any]


def by_litellm(run: Joined) -> Any:
    import litellm

    return litellm.completion(
        model="openai/m", messages=_MESSAGES, api_base=run.model.base_url, api_key=KEY, max_retries=0
    )


def by_litellm_responses(run: Joined) -> Any:
    import litellm

    return litellm.responses(model="openai/m", input="go", api_base=run.model.base_url, api_key=KEY)


_MESSAGES = [{"role": "user", "content": "go"}]


def _openai(run: Joined) -> Any:
    import openai

    return openai.OpenAI(base_url=run.model.base_url, api_key=KEY, max_retries=0)


def by_openai(run: Joined) -> Any:
    return _openai(run).chat.completions.create(model="m", messages=_MESSAGES)


def by_openai_responses(run: Joined) -> Any:
    return _openai(run).responses.create(model="m", input="go")


def by_anthropic(run: Joined) -> Any:
    anthropic: Any = pytest.importorskip("anthropic")
    url = run.model.base_url.removesuffix("/v1")
    client = anthropic.Anthropic(base_url=url, api_key=KEY, max_retries=0)
    return client.messages.create(model="m", max_tokens=9, messages=_MESSAGES)


CASES = [
    *((ask, kind, body) for ask in (by_litellm, by_openai) for kind, body in CHATS.items()),
    *((ask, k, body) for ask in (by_litellm_responses, by_openai_responses) for k, body in RESPONSES.items()),
    *((by_anthropic, kind, body) for kind, body in TURNS.items()),
]


@pytest.mark.parametrize(
    ("ask", "body"), [pytest.param(ask, body, id=f"{ask.__name__}-{kind}") for ask, kind, body in CASES]
)
def test_whatever_came_is_given_on_and_comes_back(tmp_path: Path, ask: Ask, body: dict[str, Any]) -> None:
    def harness(run: Joined) -> Callable[[], Any]:
        def code() -> Any:
            try:
                answer = ask(run)
            except Exception as error:  # noqa: BLE001 - what a client makes of it is the result
                return (type(error), str(error))
            return (type(answer), answer.model_dump(mode="json", warnings=False))

        return code

    with run_of(tmp_path, from_steps([ScriptedAnswer(body=body)])) as run:
        bare = run.bare(harness(run))
        live = run.live(harness(run))
        if ask is by_litellm_responses and isinstance(bare[1], dict):
            del bare[1]["id"], live[1]["id"]  # made of its own by litellm at every call
        replayed = run.replay(harness(run))
        if ask is by_litellm_responses and isinstance(replayed[1], dict):
            del replayed[1]["id"]
        assert live == bare
        assert replayed == live
        (node,) = run.nodes
        whole = json.dumps(node.output, ensure_ascii=False)
        if SIGNATURE in json.dumps(bare, ensure_ascii=False, default=str):
            assert SIGNATURE in whole
