"""What makes two requests the same: canonical input ids, and a cache that makes them cheap.

Pure. An LLM request is its model, its messages and its tools; seeds, timeouts, keys, headers and stream
switches are no part of it. Message lists are hashed as a chain, so that a list grown by two messages costs
two hashes however long it is.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import orjson

from agentrewind.jsonform import to_json, to_plain
from agentrewind.records import InputId, Json, JsonObject, MessageList, RecordUid

_MARK = "cache_control"
_LEADING = frozenset({"system", "developer"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """An LLM request as it is compared and recorded.

    Attributes:
        messages: the harness's own list, normalised to JSON.
        chain: for each message the hash of the list up to and with it.
        conversation: hash of the leading system messages and the first message after them, as they were
            when the conversation began; a list whose beginning was cut off stays in its conversation.
    """

    model: str
    messages: tuple[JsonObject, ...]
    tools: Json
    chain: tuple[bytes, ...]
    conversation: str
    input_id: InputId


def tool_input_id(name: str, arguments: Json) -> InputId:
    """The input id of a tool call: its name and its arguments."""
    return _hashed({"tool_name": name, "arguments": arguments})


def canonical_bytes(value: Json) -> bytes:
    """The one serialisation of a value: its JSON form with sorted keys and no blanks."""
    return orjson.dumps(to_plain(value), option=orjson.OPT_SORT_KEYS)


def _hashed(value: Json) -> InputId:
    return InputId("sha256:" + hashlib.sha256(canonical_bytes(value)).hexdigest())


@dataclass(slots=True)
class _Known:
    messages: tuple[JsonObject, ...]
    chain: tuple[bytes, ...]
    record_uid: RecordUid | None
    numbered: frozenset[int]


class Conversations:
    """The last request of each conversation, so that the next one costs what is new in it.

    Not safe for threads by itself: the caller holds a lock. What is `unread` (`model`, `system` for the
    leading system messages, `tools`) makes no two requests different.
    """

    def __init__(self, *, unread: frozenset[str] = frozenset()) -> None:
        self._unread = unread
        self._known: dict[str, _Known] = {}
        self._names: dict[str, str] = {}

    def identify(self, *, model: str, messages: Sequence[object], tools: object) -> Request:
        """Normalise and hash a request. Raises UsageError for what JSON cannot hold."""
        plain_tools = to_json(tools)
        conversation = self._conversation(messages)
        known = self._known.get(conversation)
        kept = _kept(known, messages) if known is not None else 0
        normal: list[JsonObject] = list(known.messages[:kept]) if known is not None else []
        chain: list[bytes] = list(known.chain[:kept]) if known is not None else []
        for message in messages[kept:]:
            plain = _object(message)
            normal.append(plain)
            if "system" in self._unread and all(each.get("role") in _LEADING for each in normal):
                chain.append(b"")
                continue
            previous = chain[-1] if chain else b""
            chain.append(hashlib.sha256(previous + canonical_bytes(plain)).digest())
        input_id = _hashed(
            {
                "model": None if "model" in self._unread else model,
                "messages": (chain[-1] if chain else b"").hex(),
                "tools": None if "tools" in self._unread else plain_tools,
            }
        )
        return Request(
            model=model,
            messages=tuple(normal),
            tools=plain_tools,
            chain=tuple(chain),
            conversation=conversation,
            input_id=input_id,
        )

    def _conversation(self, messages: Sequence[object]) -> str:
        leading, first = _opening(messages)
        name = _hashed([*(() if "system" in self._unread else leading), *first])[7:23]
        if name not in self._names:
            self._names[name] = self._continued(leading, messages) or name
        return self._names[name]

    def _continued(self, leading: list[JsonObject], messages: Sequence[object]) -> str | None:
        """The conversation with these system messages that has heard one of these answers before."""
        answers = [each for each in map(_object, messages) if each.get("role") == "assistant"]
        for name, known in self._known.items():
            if [*known.messages[: len(leading)]] == leading and any(
                answer in known.messages for answer in reversed(answers)
            ):
                return name
        return None

    def by_reference(self, request: Request) -> MessageList:
        """The request's messages as a reference to the conversation's last recorded request."""
        known = self._known.get(request.conversation)
        if known is None or known.record_uid is None:
            return MessageList(base=None, keep=0, append=request.messages)
        keep = _common(known.chain, request.chain)
        return MessageList(base=known.record_uid, keep=keep, append=request.messages[keep:])

    def remember(self, request: Request, record_uid: RecordUid | None) -> None:
        """From now on the conversation's next request refers to this one (None: it cannot be referred to)."""
        known = self._known.get(request.conversation)
        keep = _common(known.chain, request.chain) if known else 0
        numbered = {place for place in known.numbered if place < keep} if known else set()
        numbered.update(
            place for place in range(keep, len(request.messages)) if _has_number(request.messages[place])
        )
        self._known[request.conversation] = _Known(
            request.messages, request.chain, record_uid, frozenset(numbered)
        )


def _kept(known: _Known, messages: Sequence[object]) -> int:
    """How many messages at the beginning are those that are known."""
    kept = min(len(known.messages), len(messages))
    # as a whole first: one by one, a long list would cost more at every call than all that is new in it
    if known.messages[:kept] != tuple(messages[:kept]):
        pairs = zip(known.messages, messages, strict=False)
        kept = next((place for place, (old, now) in enumerate(pairs) if old != now), 0)
    # 1, True and 1.0 are equal to Python and three different texts in JSON
    for place in sorted(place for place in known.numbered if place < kept):
        if canonical_bytes(_object(messages[place])) != canonical_bytes(known.messages[place]):
            return place
    return kept


def _has_number(value: Json) -> bool:
    match value:
        case dict():
            return any(map(_has_number, value.values()))
        case list():
            return any(map(_has_number, value))
        case _:
            return isinstance(value, bool | int | float)


def _opening(messages: Sequence[object]) -> tuple[list[JsonObject], list[JsonObject]]:
    """The leading system messages, and the first message after them if there is one."""
    leading: list[JsonObject] = []
    for message in messages:
        plain = _object(message)
        if plain.get("role") not in _LEADING:
            return leading, [plain]
        leading.append(plain)
    return leading, []


def _object(message: object) -> JsonObject:
    dump = getattr(message, "model_dump", None)  # clients take their own message objects as well
    plain = to_json(dump(mode="json") if dump is not None else message)
    return _unmarked(plain) if isinstance(plain, dict) else {"content": plain}


def _unmarked(message: JsonObject) -> JsonObject:
    """The message without marks for a provider's cache, which move on with every request.

    A harness that sets one turns the text that it stands on into a list of one part; that is undone too.
    """
    content = message.get("content")
    parts = content if isinstance(content, list) else []
    marked = [part for part in parts if isinstance(part, dict) and _MARK in part]
    if _MARK not in message and not marked:
        return message
    plain = {name: value for name, value in message.items() if name != _MARK}
    if parts:
        bare: list[Json] = [_without_mark(part) for part in parts]
        only = bare[0]
        alone = len(bare) == 1 and isinstance(only, dict) and only.keys() == {"type", "text"}
        plain["content"] = only["text"] if alone and isinstance(only, dict) else bare
    return plain


def _without_mark(part: Json) -> Json:
    if not isinstance(part, dict):
        return part
    return {name: value for name, value in part.items() if name != _MARK}


def _common(left: Sequence[bytes], right: Sequence[bytes]) -> int:
    """Length of the common prefix; a chain hash covers all before it, so halving finds the end."""
    low, high = 0, min(len(left), len(right))
    while low < high:
        middle = (low + high + 1) // 2
        if left[middle - 1] == right[middle - 1]:
            low = middle
        else:
            high = middle - 1
    return low
