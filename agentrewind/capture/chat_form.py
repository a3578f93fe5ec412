"""Chat completions: an answer as a record, as a stream of chunks, and joined from one. Pure.

A record is the same whether the answer was streamed or not.
"""

from __future__ import annotations

import copy

from agentrewind.capture.merging import merge, merge_items
from agentrewind.errors import DamagedError
from agentrewind.records import Json, JsonObject

_ENVELOPE = ("choices", "usage", "object")
_LIFTED = ("content", "tool_calls")
_SAID_FIRST = ("role", "content", "tool_calls")


def lift(answer: JsonObject) -> JsonObject:
    """A chat completion with content, tool calls and usage of its only choice at the top.

    Where they stood there is a null: what the provider did not say at all stays unsaid.
    """
    body = copy.deepcopy(answer)
    message = _only_message(body) or {}
    output: JsonObject = {
        "content": message.get("content"),
        "tool_calls": message.get("tool_calls", []),
        "usage": body.get("usage"),
        "response": body,
    }
    for place, names in ((message, _LIFTED), (body, ("usage",))):
        place.update({name: None for name in names if name in place})
    return output


def lower(output: JsonObject) -> JsonObject:
    """The inverse of `lift`. Raises DamagedError where the record holds no answer."""
    body = body_of(output)
    message = _only_message(body)
    _put_back(body, output, ("usage",))
    if message is not None:
        _put_back(message, output, _LIFTED)
    return body


def _put_back(place: JsonObject, output: JsonObject, names: tuple[str, ...]) -> None:
    for name in names:
        if name in place or output.get(name) not in (None, []):
            place[name] = copy.deepcopy(output.get(name))


def body_of(output: JsonObject) -> JsonObject:
    """A copy of the provider's own answer in a record. Raises DamagedError where there is none."""
    body = copy.deepcopy(output.get("response"))
    if not isinstance(body, dict):
        raise DamagedError("a recorded answer has no response object")
    return body


def chunks(answer: JsonObject, *, usage: bool) -> list[JsonObject]:
    """The answer as a stream of chunks, the last one with the usage if that is asked for."""
    envelope: JsonObject = {key: value for key, value in answer.items() if key not in _ENVELOPE}
    envelope["object"] = "chat.completion.chunk"
    found: list[JsonObject] = []
    for choice in _objects(answer.get("choices")):
        found += [{**envelope, "choices": [each]} for each in _choice_chunks(choice)]
    if usage and answer.get("usage") is not None:
        found.append({**envelope, "choices": [], "usage": answer["usage"]})
    return copy.deepcopy(found)


def _choice_chunks(choice: JsonObject) -> list[JsonObject]:
    index = choice.get("index", 0)
    message = choice.get("message")
    message = message if isinstance(message, dict) else {}
    content = message.get("content")
    deltas: list[JsonObject] = [
        {
            "role": message.get("role", "assistant"),
            "content": "" if isinstance(content, str) else content,
        }
    ]
    extras: JsonObject = {
        key: value for key, value in message.items() if key not in _SAID_FIRST and value not in (None, [], {})
    }
    if extras:
        deltas.append(extras)
    if isinstance(content, str) and content:
        deltas.append({"content": content})
    for place, call in enumerate(_objects(message.get("tool_calls"))):
        deltas.append({"tool_calls": [{"index": place, **call}]})
    end: JsonObject = {
        key: value for key, value in choice.items() if key not in ("message", "index", "finish_reason")
    }
    said: list[JsonObject] = [{"index": index, "delta": delta, "finish_reason": None} for delta in deltas]
    return [*said, {"index": index, "delta": {}, "finish_reason": choice.get("finish_reason"), **end}]


class ChatJoiner:
    """Joins the chunks of one answer.

    Args:
        choices: how many choices were asked for.
        usage: the usage was asked for, and comes after the last choice.
    """

    def __init__(self, *, choices: int = 1, usage: bool = False) -> None:
        self._expected = choices
        self._usage_expected = usage
        self._envelope: JsonObject = {}
        self._choices: dict[int, JsonObject] = {}
        self._usage: Json = None
        self._failed = False

    def add(self, chunk: JsonObject) -> None:
        """Take one chunk in; one that reports an error instead makes the answer a broken one."""
        if chunk.get("error"):
            self._failed = True
            return
        for key, value in chunk.items():
            if key not in _ENVELOPE and value is not None:
                self._envelope[key] = value
        if chunk.get("usage") is not None:
            self._usage = copy.deepcopy(chunk["usage"])
        for choice in _objects(chunk.get("choices")):
            self._add_choice(choice)

    @property
    def whole(self) -> bool:
        """Nothing is missing but perhaps the usage."""
        ended = [each for each in self._choices.values() if each.get("finish_reason") is not None]
        return not self._failed and len(ended) >= max(self._expected, len(self._choices))

    @property
    def complete(self) -> bool:
        """Nothing is missing."""
        return self.whole and (self._usage is not None or not self._usage_expected)

    def answer(self) -> JsonObject:
        """The chat completion as it would have come in one piece."""
        found: JsonObject = {**self._envelope, "object": "chat.completion"}
        found["choices"] = [_tidied(self._choices[index]) for index in sorted(self._choices)]
        if self._usage is not None:
            found["usage"] = self._usage
        return found

    def _add_choice(self, piece: JsonObject) -> None:
        index = piece.get("index")
        index = index if isinstance(index, int) else 0
        choice = self._choices.setdefault(
            index,
            {"index": index, "message": {"role": "assistant", "content": None}, "finish_reason": None},
        )
        message = choice["message"]
        assert isinstance(message, dict)
        delta = piece.get("delta")
        if isinstance(delta, dict):
            calls = delta.get("tool_calls")
            merge(message, {key: value for key, value in delta.items() if key != "tool_calls"})
            for call in _objects(calls):
                known = message.get("tool_calls")
                known = known if isinstance(known, list) else []
                _add_call(known, call)
                message["tool_calls"] = known
        if piece.get("finish_reason") is not None:
            choice["finish_reason"] = piece["finish_reason"]
        rest = {key: value for key, value in piece.items() if key not in ("index", "delta", "finish_reason")}
        merge(choice, rest)


def _add_call(calls: list[Json], piece: JsonObject) -> None:
    """A piece names its call by index; some servers leave that out, and only name a new call's id."""
    piece = copy.deepcopy(piece)
    if piece.get("index") is None:
        ids = [call.get("id") for call in calls if isinstance(call, dict)]
        named = piece.get("id")
        new = not calls or (bool(named) and named not in ids)
        piece["index"] = len(calls) if new else ids.index(named) if named in ids else len(calls) - 1
    function = piece.get("function")
    known = next((c for c in calls if isinstance(c, dict) and c.get("index") == piece["index"]), None)
    known_function = known.get("function") if known is not None else None
    if isinstance(function, dict) and isinstance(known_function, dict):
        if known_function.get("name") == function.get("name"):
            function.pop("name", None)  # said again with every piece
        if known is not None and not piece.get("id"):
            piece.pop("id", None)
    merge_items(calls, [piece])


def _tidied(choice: JsonObject) -> JsonObject:
    choice = copy.deepcopy(choice)
    choice.setdefault("logprobs", None)
    message = choice["message"]
    assert isinstance(message, dict)
    for call in _objects(message.get("tool_calls")):
        call.pop("index", None)
    return choice


def _only_message(body: JsonObject) -> JsonObject | None:
    choices = body.get("choices")
    if not isinstance(choices, list) or len(choices) != 1 or not isinstance(choices[0], dict):
        return None
    message = choices[0].get("message")
    return message if isinstance(message, dict) else None


def _objects(value: Json) -> list[JsonObject]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []
