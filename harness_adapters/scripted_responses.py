"""The Responses API for a scripted model: requests read as chat completions, answers in its form."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from harness_adapters.scripted_answer import (
    CREATED,
    Completion,
    named_event_stream,
    pieces,
    text_of_arguments,
)
from harness_adapters.scripted_request import JsonMap


def as_chat(raw: JsonMap) -> dict[str, Any]:
    """The request as one for a chat completion, so that the same policies answer it."""
    messages: list[dict[str, Any]] = []
    if raw.get("instructions"):
        messages.append({"role": "system", "content": raw["instructions"]})
    given = raw.get("input")
    for item in [{"role": "user", "content": given}] if isinstance(given, str) else given or []:
        _add(messages, item)
    tools = [
        {"type": "function", "function": {key: tool[key] for key in tool if key != "type"}}
        for tool in raw.get("tools") or []
    ]
    return {"model": raw.get("model"), "messages": messages, "tools": tools, "stream": raw.get("stream")}


def _add(messages: list[dict[str, Any]], item: JsonMap) -> None:
    match item.get("type", "message"):
        case "message":
            messages.append({"role": item.get("role"), "content": _text(item.get("content"))})
        case "function_call":
            function = {"name": item["name"], "arguments": item["arguments"]}
            call = {"id": item["call_id"], "type": "function", "function": function}
            if messages and messages[-1]["role"] == "assistant":
                messages[-1].setdefault("tool_calls", []).append(call)
            else:
                messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        case "function_call_output":
            messages.append(
                {"role": "tool", "tool_call_id": item["call_id"], "content": _text(item["output"])}
            )
        case _:
            return  # reasoning and the like tell a policy nothing


def _text(content: Any) -> Any:
    if isinstance(content, list):
        return "".join(str(part.get("text", "")) for part in content)
    return content


def whole(completion: Completion) -> dict[str, Any]:
    """The body of an answer that is not streamed."""
    return _response(completion, output=_items(completion), status="completed", usage=_usage(completion))


def stream(completion: Completion) -> tuple[bytes, ...]:
    """The same answer as events."""
    numbered = ({**event, "sequence_number": n} for n, event in enumerate(_events(completion)))
    return named_event_stream(numbered)


def _response(completion: Completion, **fields: Any) -> dict[str, Any]:
    return {
        "id": completion.completion_id.replace("chatcmpl-", "resp_"),
        "object": "response",
        "created_at": CREATED,
        "model": completion.model,
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "metadata": {},
        "parallel_tool_calls": True,
        "temperature": 1.0,
        "tool_choice": "auto",
        "tools": [],
        "top_p": 1.0,
        **fields,
    }


def _items(completion: Completion) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    if completion.answer.content:
        part = {"type": "output_text", "text": completion.answer.content, "annotations": [], "logprobs": []}
        items.append(
            {
                "id": completion.completion_id.replace("chatcmpl-", "msg_"),
                "type": "message",
                "role": "assistant",
                "status": "completed",
                "content": [part],
            }
        )
    for call_id, (name, arguments) in zip(completion.call_ids, completion.answer.tool_calls, strict=True):
        items.append(
            {
                "id": f"fc_{call_id}",
                "type": "function_call",
                "status": "completed",
                "call_id": call_id,
                "name": name,
                "arguments": text_of_arguments(arguments),
            }
        )
    return items


def _usage(completion: Completion) -> dict[str, Any]:
    counted = completion.usage()
    return {
        "input_tokens": counted["prompt_tokens"],
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": counted["completion_tokens"],
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": counted["total_tokens"],
    }


def _events(completion: Completion) -> Iterator[dict[str, Any]]:
    begun = _response(completion, output=[], status="in_progress", usage=None)
    yield {"type": "response.created", "response": begun}
    yield {"type": "response.in_progress", "response": begun}
    for place, item in enumerate(_items(completion)):
        at = {"output_index": place, "item_id": item["id"]}
        inner = _text_events(item) if item["type"] == "message" else _call_events(item)
        empty: dict[str, Any] = {"content": []} if item["type"] == "message" else {"arguments": ""}
        yield {
            "type": "response.output_item.added",
            "output_index": place,
            "item": {**item, **empty, "status": "in_progress"},
        }
        for event in inner:
            yield {**event, **at}
        yield {"type": "response.output_item.done", "output_index": place, "item": item}
    yield {"type": "response.completed", "response": whole(completion)}


def _text_events(item: dict[str, Any]) -> Iterator[dict[str, Any]]:
    part = item["content"][0]
    at = {"content_index": 0}
    yield {"type": "response.content_part.added", "part": {**part, "text": ""}, **at}
    for piece in pieces(part["text"]):
        yield {"type": "response.output_text.delta", "delta": piece, "logprobs": [], **at}
    yield {"type": "response.output_text.done", "text": part["text"], "logprobs": [], **at}
    yield {"type": "response.content_part.done", "part": part, **at}


def _call_events(item: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for piece in pieces(item["arguments"]):
        yield {"type": "response.function_call_arguments.delta", "delta": piece}
    yield {
        "type": "response.function_call_arguments.done",
        "arguments": item["arguments"],
        "name": item["name"],
    }
