"""The Messages API of Anthropic: a request's turns, an answer as record and events, and joined. Pure."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator

from agentrewind.capture.chat_form import body_of
from agentrewind.capture.merging import merge
from agentrewind.records import Json, JsonObject

_PIECES = {"text": "text_delta", "thinking": "thinking_delta"}
_CUT = "partial_json"
"""Key of a tool call's input whose text, cut off by a limit, is no JSON."""


def turns(request: JsonObject) -> list[Json]:
    """The conversation as it is compared: the system text in front, no marks for the provider's cache."""
    found: list[Json] = []
    if request.get("system"):
        found.append({"role": "system", "content": _unmarked(request["system"])})
    given = request.get("messages")
    for turn in given if isinstance(given, list) else ():
        content = turn.get("content") if isinstance(turn, dict) else None
        plain = _unmarked(content)
        found.append(turn if plain is content or not isinstance(turn, dict) else {**turn, "content": plain})
    return found


def sent_turns(request: JsonObject) -> list[Json]:
    """The same conversation as it is sent, one for one."""
    given = request.get("messages")
    lead: list[Json] = [None] if request.get("system") else []
    return [*lead, *(given if isinstance(given, list) else [])]


def with_turns(request: JsonObject, sent: list[Json]) -> JsonObject:
    """The request with other turns; the system text stays where it is."""
    return {**request, "messages": sent[1:] if request.get("system") else sent}


def _unmarked(content: Json) -> Json:
    """Content blocks without cache marks; the same object where there are none, which is cheap to compare.

    Harnesses move these marks along, so that requests that say the same would differ.
    """
    if not isinstance(content, list):
        return content
    plain = [_unmarked_block(block) for block in content]
    return content if all(one is other for one, other in zip(plain, content, strict=True)) else plain


def _unmarked_block(block: Json) -> Json:
    if not isinstance(block, dict):
        return block
    inner = _unmarked(block.get("content"))
    if "cache_control" not in block and inner is block.get("content"):
        return block
    kept = {key: value for key, value in block.items() if key != "cache_control"}
    return {**kept, "content": inner} if "content" in block else kept


def lift(answer: JsonObject) -> JsonObject:
    """A message with its text, its tool uses in the form of tool calls, and its usage at the top."""
    texts: list[str] = []
    calls: list[Json] = []
    for block in _objects(answer.get("content")):
        if block.get("type") == "text":
            texts.append(str(block.get("text")))
        elif block.get("type") == "tool_use":
            function: JsonObject = {"name": block.get("name"), "arguments": _input_text(block)}
            calls.append({"id": block.get("id"), "type": "function", "function": function})
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
    """The message as the events of a stream, each text in one piece."""
    usage = answer.get("usage")
    begun: JsonObject = {**answer, "content": [], "stop_reason": None, "stop_sequence": None}
    found: list[JsonObject] = [{"type": "message_start", "message": begun}]
    for place, block in enumerate(_objects(answer.get("content"))):
        found += ({**event, "index": place} for event in _block_events(block))
    end: JsonObject = {
        key: answer[key]
        for key in ("stop_reason", "stop_sequence", "stop_details", "container")
        if key in answer
    }
    found.append({"type": "message_delta", "delta": end, "usage": usage if usage is not None else {}})
    found.append({"type": "message_stop"})
    return copy.deepcopy(found)


def _block_events(block: JsonObject) -> Iterator[JsonObject]:
    begun, deltas = _taken_apart(block)
    yield {"type": "content_block_start", "content_block": begun}
    for delta in deltas:
        yield {"type": "content_block_delta", "delta": delta}
    yield {"type": "content_block_stop"}


def _taken_apart(block: JsonObject) -> tuple[JsonObject, list[JsonObject]]:
    """A block as it begins, and what is added to it."""
    kind = str(block.get("type"))
    if kind in _PIECES:
        deltas: list[JsonObject] = [{"type": _PIECES[kind], kind: block.get(kind)}]
        begun: JsonObject = {**block, kind: ""}
        if block.get("citations"):
            begun["citations"] = []
            deltas += ({"type": "citations_delta", "citation": each} for each in _objects(block["citations"]))
        if block.get("signature"):
            begun["signature"] = ""
            deltas.append({"type": "signature_delta", "signature": block["signature"]})
        return begun, deltas
    if isinstance(block.get("input"), dict):
        begun = {key: value for key, value in block.items() if key != _CUT}
        delta: JsonObject = {"type": "input_json_delta", "partial_json": _input_text(block)}
        return {**begun, "input": {}}, [delta]
    return block, []


class MessagesJoiner:
    """Joins the events of one message."""

    def __init__(self) -> None:
        self._message: JsonObject | None = None
        self._blocks: dict[Json, JsonObject] = {}
        self._inputs: dict[Json, str] = {}
        self._stopped = False

    def add(self, event: JsonObject) -> None:
        """Take one event in."""
        match event.get("type"):
            case "message_start":
                self._message = _object(event.get("message"))
            case "content_block_start":
                self._blocks[event.get("index")] = _object(event.get("content_block"))
            case "content_block_delta":
                self._add_delta(event.get("index"), _object(event.get("delta")))
            case "message_delta":
                self._end(event)
            case "message_stop":
                self._stopped = True
            case _:
                return

    @property
    def whole(self) -> bool:
        """The last event came."""
        return self._stopped and self._message is not None

    @property
    def complete(self) -> bool:
        """The last event came."""
        return self.whole

    def answer(self) -> JsonObject:
        """The message as it would have come in one piece."""
        assert self._message is not None
        for index, text in self._inputs.items():
            self._blocks[index].update(_input(text))
        return {**self._message, "content": list(self._blocks.values())}

    def _add_delta(self, index: Json, delta: JsonObject) -> None:
        block = self._blocks.setdefault(index, {})
        match delta.get("type"):
            case "input_json_delta":
                self._inputs[index] = self._inputs.get(index, "") + str(delta.get("partial_json") or "")
            case "citations_delta":
                known = block.get("citations")
                block["citations"] = [*(known if isinstance(known, list) else []), delta.get("citation")]
            case "signature_delta":
                block["signature"] = delta.get("signature")
            case _:
                merge(block, {key: value for key, value in delta.items() if key != "type"})

    def _end(self, event: JsonObject) -> None:
        message = self._message
        if message is None:
            return
        message.update(_object(event.get("delta")))
        known, told = _object(message.get("usage")), _object(event.get("usage"))
        # totals, not pieces: what is told last holds, what is not told stays
        message["usage"] = {
            **known,
            **{key: value for key, value in told.items() if value is not None or key not in known},
        }
        message.update({key: value for key, value in event.items() if key not in ("type", "delta", "usage")})


def _input(text: str) -> JsonObject:
    if not text:
        return {}
    try:
        return {"input": json.loads(text)}
    except ValueError:
        return {"input": {}, _CUT: text}


def _input_text(block: JsonObject) -> str:
    cut = block.get(_CUT)
    return cut if isinstance(cut, str) else json.dumps(block.get("input"))


def _object(value: Json) -> JsonObject:
    return copy.deepcopy(value) if isinstance(value, dict) else {}


def _objects(value: Json) -> list[JsonObject]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []
