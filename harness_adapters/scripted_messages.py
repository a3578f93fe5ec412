"""Anthropic's Messages API for a scripted model: requests read as chat completions, answers in its form."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from harness_adapters.scripted_answer import Completion, named_event_stream, pieces
from harness_adapters.scripted_request import JsonMap


def as_chat(raw: JsonMap) -> dict[str, Any]:
    """The request as one for a chat completion, so that the same policies answer it.

    Two turns in a row of one role come out as an unknown role, which is refused.
    """
    messages: list[dict[str, Any]] = []
    if raw.get("system"):
        messages.append({"role": "system", "content": _text(raw["system"])})
    before = "assistant"
    for turn in raw.get("messages") or []:
        role = turn.get("role")
        messages += _turn(turn) if role != before else [{"role": f"a second {role} in a row", "content": ""}]
        before = role
    tools = [
        {"type": "function", "function": {"name": tool.get("name"), "parameters": tool.get("input_schema")}}
        for tool in raw.get("tools") or []
    ]
    return {"model": raw.get("model"), "messages": messages, "tools": tools, "stream": raw.get("stream")}


def _turn(turn: JsonMap) -> Iterator[dict[str, Any]]:
    content = turn.get("content")
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content or []
    for block in blocks:
        if block["type"] == "tool_result":
            text = _text(block.get("content") or "")
            yield {"role": "tool", "tool_call_id": block["tool_use_id"], "content": text}
    calls = [
        {
            "id": block["id"],
            "type": "function",
            "function": {"name": block["name"], "arguments": json.dumps(block["input"])},
        }
        for block in blocks
        if block["type"] == "tool_use"
    ]
    text = "".join(block["text"] for block in blocks if block["type"] == "text")
    if calls:
        yield {"role": turn.get("role"), "content": text or None, "tool_calls": calls}
    elif text:
        yield {"role": turn.get("role"), "content": text}


def _text(content: Any) -> Any:
    if isinstance(content, list):
        return "".join(str(block.get("text", "")) for block in content)
    return content


def whole(completion: Completion) -> dict[str, Any]:
    """The body of an answer that is not streamed."""
    counted = completion.usage()
    return {
        "id": completion.completion_id.replace("chatcmpl-", "msg_"),
        "type": "message",
        "role": "assistant",
        "model": completion.model,
        "content": _blocks(completion),
        "stop_reason": "tool_use" if completion.answer.tool_calls else "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": counted["prompt_tokens"], "output_tokens": counted["completion_tokens"]},
    }


def stream(completion: Completion) -> tuple[bytes, ...]:
    """The same answer as events."""
    return named_event_stream(_events(completion))


def _blocks(completion: Completion) -> list[dict[str, Any]]:
    answer = completion.answer
    blocks: list[dict[str, Any]] = [{"type": "text", "text": answer.content}] if answer.content else []
    for call_id, (name, arguments) in zip(completion.call_ids, answer.tool_calls, strict=True):
        value = json.loads(arguments) if isinstance(arguments, str) else dict(arguments)
        blocks.append({"type": "tool_use", "id": call_id, "name": name, "input": value})
    return blocks


def _events(completion: Completion) -> Iterator[dict[str, Any]]:
    message = whole(completion)
    usage = message["usage"]
    begun = {**message, "content": [], "stop_reason": None, "usage": {**usage, "output_tokens": 1}}
    yield {"type": "message_start", "message": begun}
    yield {"type": "ping"}
    for index, block in enumerate(message["content"]):
        is_text = block["type"] == "text"
        empty = {**block, "text": ""} if is_text else {**block, "input": {}}
        yield {"type": "content_block_start", "index": index, "content_block": empty}
        for piece in pieces(block["text"] if is_text else json.dumps(block["input"])):
            delta = (
                {"type": "text_delta", "text": piece}
                if is_text
                else {"type": "input_json_delta", "partial_json": piece}
            )
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    end = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    yield {
        "type": "message_delta",
        "delta": end,
        "usage": {"output_tokens": usage["output_tokens"]},
    }
    yield {"type": "message_stop"}
