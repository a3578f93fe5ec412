"""The Responses API: a request's items, an answer as a record, as events, and joined from those. Pure."""

from __future__ import annotations

import copy
from collections.abc import Iterator

from agentrewind.capture.chat_form import body_of
from agentrewind.records import Json, JsonObject

ENDS = frozenset({"response.completed", "response.incomplete", "response.failed"})
"""Events that carry the whole answer."""

_SERVER_STATE = {
    "previous_response_id": "the conversation before it",
    "conversation": "the conversation",
    "background": "the running answer",
}


def refusal(request: JsonObject) -> str | None:
    """Why such a request cannot be recorded, or None: what the provider keeps cannot be rewound."""
    for name, kept in _SERVER_STATE.items():
        if request.get(name):
            return f"`{name}` leaves {kept} with the provider; send the whole input instead, without it"
    return None


def items(request: JsonObject) -> list[Json]:
    """The conversation that a request carries: its instructions as a system item, then its input."""
    given = request.get("input")
    if isinstance(given, str):
        given = [{"role": "user", "content": given}]
    lead: list[Json] = []
    if request.get("instructions") is not None:
        lead.append({"role": "system", "content": request["instructions"]})
    return [*lead, *(given if isinstance(given, list) else [])]


def with_items(request: JsonObject, sent: list[Json]) -> JsonObject:
    """The request with another list of items; instructions stay where they are."""
    first = 0 if request.get("instructions") is None else 1
    return {**request, "input": sent[first:]}


def lift(answer: JsonObject) -> JsonObject:
    """A response with its text, its calls in the form of tool calls, and its usage at the top."""
    texts: list[str] = []
    calls: list[Json] = []
    for item in _objects(answer.get("output")):
        texts += [str(part["text"]) for part in _parts(item) if isinstance(part.get("text"), str)]
        if item.get("type") in ("function_call", "custom_tool_call"):
            function: JsonObject = {
                "name": item.get("name"),
                "arguments": item.get("arguments", item.get("input")),
            }
            calls.append({"id": item.get("call_id"), "type": "function", "function": function})
    body = copy.deepcopy(answer)
    return {
        "content": "".join(texts) if texts else None,
        "tool_calls": calls,
        "usage": body.get("usage"),
        "response": body,
    }


def lower(output: JsonObject) -> JsonObject:
    """The inverse of `lift`."""
    return body_of(output)


def events(answer: JsonObject) -> list[JsonObject]:
    """The response as the events of a stream, each text in one piece."""
    begun: JsonObject = {**answer, "output": [], "usage": None, "status": "in_progress"}
    if "completed_at" in answer:
        begun["completed_at"] = None
    found: list[JsonObject] = [
        {"type": "response.created", "response": begun},
        {"type": "response.in_progress", "response": begun},
    ]
    for place, item in enumerate(_objects(answer.get("output"))):
        found += ({**event, "output_index": place} for event in _item_events(item))
    name = "response." + str(answer.get("status"))
    found.append({"type": name if name in ENDS else "response.completed", "response": answer})
    return [{**copy.deepcopy(event), "sequence_number": number} for number, event in enumerate(found)]


def _item_events(item: JsonObject) -> Iterator[JsonObject]:
    yield {"type": "response.output_item.added", "item": _begun(item)}
    for event in _inner_events(item):
        yield {**event, "item_id": item.get("id")}
    yield {"type": "response.output_item.done", "item": item}


def _begun(item: JsonObject) -> JsonObject:
    """The item as it stands before its first piece."""
    empty: dict[str, JsonObject] = {
        "message": {"content": []},
        "function_call": {"arguments": ""},
        "custom_tool_call": {"input": ""},
        "reasoning": {"summary": [], **({"content": []} if item.get("content") else {})},
    }
    blank = empty.get(str(item.get("type")))
    if blank is None:
        return item
    return {**item, **blank, **({"status": "in_progress"} if item.get("status") else {})}


def _inner_events(item: JsonObject) -> Iterator[JsonObject]:
    match item.get("type"):
        case "message":
            for place, part in enumerate(_parts(item)):
                yield from _part_events(part, place)
        case "function_call":
            said = item.get("arguments")
            yield {"type": "response.function_call_arguments.delta", "delta": said}
            yield {
                "type": "response.function_call_arguments.done",
                "arguments": said,
                "name": item.get("name"),
            }
        case "custom_tool_call":
            yield {"type": "response.custom_tool_call_input.delta", "delta": item.get("input")}
            yield {"type": "response.custom_tool_call_input.done", "input": item.get("input")}
        case "reasoning":
            for place, part in enumerate(_objects(item.get("summary"))):
                yield from _summary_events(part, place)
            for place, part in enumerate(_parts(item)):
                text = part.get("text")
                yield {"type": "response.reasoning_text.delta", "content_index": place, "delta": text}
                yield {"type": "response.reasoning_text.done", "content_index": place, "text": text}
        case _:
            return


def _part_events(part: JsonObject, place: int) -> Iterator[JsonObject]:
    name, key = ("refusal", "refusal") if part.get("type") == "refusal" else ("output_text", "text")
    said = part.get(key)
    empty: JsonObject = {**part, key: ""}
    if key == "text":
        empty["annotations"] = []
    more: JsonObject = {"logprobs": part.get("logprobs") or []} if key == "text" else {}
    at: JsonObject = {"content_index": place}
    yield {"type": "response.content_part.added", "part": empty, **at}
    yield {"type": f"response.{name}.delta", "delta": said, **more, **at}
    yield {"type": f"response.{name}.done", key: said, **more, **at}
    yield {"type": "response.content_part.done", "part": part, **at}


def _summary_events(part: JsonObject, place: int) -> Iterator[JsonObject]:
    at: JsonObject = {"summary_index": place}
    yield {"type": "response.reasoning_summary_part.added", "part": {**part, "text": ""}, **at}
    yield {"type": "response.reasoning_summary_text.delta", "delta": part.get("text"), **at}
    yield {"type": "response.reasoning_summary_text.done", "text": part.get("text"), **at}
    yield {"type": "response.reasoning_summary_part.done", "part": part, **at}


class ResponsesJoiner:
    """Joins the events of one response: its last event carries it whole."""

    def __init__(self) -> None:
        self._answer: JsonObject | None = None
        self._done: list[Json] = []

    def add(self, event: JsonObject) -> None:
        """Take one event in."""
        if event.get("type") == "response.output_item.done":
            self._done.append(copy.deepcopy(event.get("item")))
        response = event.get("response")
        if event.get("type") in ENDS and isinstance(response, dict):
            self._answer = copy.deepcopy(response)
            if not self._answer.get("output"):
                self._answer["output"] = self._done

    @property
    def whole(self) -> bool:
        """The last event came."""
        return self._answer is not None

    @property
    def complete(self) -> bool:
        """The last event came."""
        return self.whole

    def answer(self) -> JsonObject:
        """The response as it would have come in one piece."""
        assert self._answer is not None
        return self._answer


def _parts(item: JsonObject) -> list[JsonObject]:
    return _objects(item.get("content"))


def _objects(value: Json) -> list[JsonObject]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []
