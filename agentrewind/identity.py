"""What makes two requests the same: canonical input ids, and a cache that makes them cheap.

Pure. An LLM request is its model, its messages and its tools; seeds, timeouts, keys, headers and stream
switches are no part of it. Message lists are hashed as a chain, so that a list grown by two messages costs
two hashes however long it is.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile

import orjson

from agentrewind.jsonform import to_plain
from agentrewind.likeness import likeness
from agentrewind.message_form import message_form, request_form
from agentrewind.records import InputId, Json, JsonObject, MessageList, RecordUid

_LEADING = frozenset({"system", "developer"})
_LINK = hashlib.sha256().digest_size
_UNREAD = bytes(_LINK)
"""Stands in a chain for a message that makes no request different."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """An LLM request as it is compared and recorded.

    Attributes:
        messages: the harness's own list, normalised to JSON.
        likenesses: for each message of the harness an object that equals it while it is unchanged.
        chain: for each message the hash of the list up to and with it, 32 bytes each in one piece.
        conversation: hash of the leading system messages and the first message after them, as they were
            when the conversation began; a list whose beginning was cut off stays in its conversation.
        opening: how many messages those are; 0 where no message follows the system messages.
    """

    model: str
    messages: tuple[JsonObject, ...]
    likenesses: tuple[object, ...]
    tools: Json
    chain: bytes
    conversation: str
    opening: int
    input_id: InputId


def tool_input_id(name: str, arguments: Json) -> InputId:
    """The input id of a tool call: its name and its arguments."""
    return _hashed(canonical_bytes({"tool_name": name, "arguments": arguments}))


def canonical_bytes(value: Json) -> bytes:
    """The one serialisation of a value: its JSON form with sorted keys and no blanks."""
    return orjson.dumps(to_plain(value), option=orjson.OPT_SORT_KEYS)


def _hashed(canonical: bytes) -> InputId:
    return InputId("sha256:" + hashlib.sha256(canonical).hexdigest())


@dataclass(slots=True)
class _Known:
    request: Request
    record_uid: RecordUid | None


@dataclass(slots=True)
class _Tools:
    """The tools of a request, as they came last."""

    likeness: object
    plain: Json
    canonical: bytes


class Conversations:
    """The last request of each conversation, so that the next one costs what is new in it.

    Not safe for threads by itself: the caller holds a lock. What is `unread` (`model`, `system` for the
    leading system messages, `tools`) makes no two requests different.
    """

    def __init__(self, *, unread: frozenset[str] = frozenset()) -> None:
        self._unread = unread
        self._known: dict[str, _Known] = {}
        self._names: dict[str, str] = {}
        self._latest: Request | None = None
        self._tools = _Tools(None, None, b"null")

    @property
    def reads_system(self) -> bool:
        """Whether requests that are the same have the same system messages."""
        return "system" not in self._unread

    def identify(self, *, model: str, messages: Sequence[object], tools: object) -> Request:
        """Normalise and hash a request. Raises UsageError for what JSON cannot hold."""
        offered = self._offered(tools)
        conversation, opening = self._conversation(messages)
        known = self._known.get(conversation)
        kept = _kept(known.request, messages) if known is not None else 0
        normal, likenesses, chain = _beginning(known.request, kept) if known is not None else ((), (), b"")
        added = [message_form(message) for message in messages[kept:]]
        leading = not self.reads_system and all(each.get("role") in _LEADING for each in normal)
        links = [chain]
        last = b"" if leading else chain[-_LINK:]
        for plain in added:
            leading = leading and plain.get("role") in _LEADING
            if leading:
                links.append(_UNREAD)
                continue
            last = hashlib.sha256(last + canonical_bytes(plain)).digest()
            links.append(last)
        return Request(
            model=model,
            messages=(*normal, *added),
            likenesses=(
                *likenesses,
                *(
                    likeness(message, plain, to_form=message_form)
                    for message, plain in zip(messages[kept:], added, strict=True)
                ),
            ),
            tools=offered.plain,
            chain=b"".join(links),
            conversation=conversation,
            opening=opening,
            input_id=self._input_id(model, last, offered),
        )

    def _input_id(self, model: str, last: bytes, offered: _Tools) -> InputId:
        said = canonical_bytes(None if "model" in self._unread else model)
        tools = b"null" if "tools" in self._unread else offered.canonical
        # the canonical bytes of an object with these three, whose names stand in their order
        return _hashed(b'{"messages":"%b","model":%b,"tools":%b}' % (last.hex().encode(), said, tools))

    def _offered(self, tools: object) -> _Tools:
        if self._tools.likeness != tools:
            plain = request_form(tools)
            self._tools = _Tools(likeness(tools, plain, to_form=request_form), plain, canonical_bytes(plain))
        return self._tools

    def _conversation(self, messages: Sequence[object]) -> tuple[str, int]:
        """The name of the conversation, and how many messages its opening has."""
        latest = self._latest
        count = latest.opening if latest is not None else 0
        if latest is not None and count and latest.likenesses[:count] == tuple(messages[:count]):
            return latest.conversation, count
        leading, first = _opening(messages)
        name = _hashed(canonical_bytes([*(leading if self.reads_system else ()), *first]))[7:23]
        if name not in self._names:
            self._names[name] = self._continued(leading, messages) or name
        return self._names[name], len(leading) + 1 if first else 0

    def _continued(self, leading: list[JsonObject], messages: Sequence[object]) -> str | None:
        """The conversation with these system messages that has heard one of these answers before."""
        answers = [each for each in map(message_form, messages) if each.get("role") == "assistant"]
        for name, known in self._known.items():
            heard = known.request.messages
            if [*heard[: len(leading)]] == leading and any(answer in heard for answer in reversed(answers)):
                return name
        return None

    def by_reference(self, request: Request) -> MessageList:
        """The request's messages as a reference to the conversation's last recorded request."""
        known = self._known.get(request.conversation)
        if known is None or known.record_uid is None:
            return MessageList(base=None, keep=0, append=request.messages)
        keep = _common(known.request.chain, request.chain)
        if not self.reads_system and _leading(known.request.messages) != _leading(request.messages):
            keep = 0  # no difference to a match, but what is recorded is what was said
        return MessageList(base=known.record_uid, keep=keep, append=request.messages[keep:])

    def remember(self, request: Request, record_uid: RecordUid | None) -> None:
        """From now on the conversation's next request refers to this one (None: it cannot be referred to)."""
        self._known[request.conversation] = _Known(request, record_uid)
        self._latest = request


def _kept(known: Request, messages: Sequence[object]) -> int:
    """How many messages at the beginning are those that are known."""
    kept = min(len(known.likenesses), len(messages))
    # as a whole first: one by one, a long list would cost more at every call than all that is new in it
    if known.likenesses[:kept] == tuple(messages[:kept]):
        return kept
    pairs = zip(known.likenesses, messages, strict=False)
    return next((place for place, (old, now) in enumerate(pairs) if old != now), 0)


def _beginning(known: Request, kept: int) -> tuple[tuple[JsonObject, ...], tuple[object, ...], bytes]:
    """The first messages of a request with what is known of them."""
    return known.messages[:kept], known.likenesses[:kept], known.chain[: kept * _LINK]


def _opening(messages: Sequence[object]) -> tuple[list[JsonObject], list[JsonObject]]:
    """The leading system messages, and the first message after them if there is one."""
    leading: list[JsonObject] = []
    for message in messages:
        plain = message_form(message)
        if plain.get("role") not in _LEADING:
            return leading, [plain]
        leading.append(plain)
    return leading, []


def _leading(messages: Sequence[JsonObject]) -> bytes:
    return canonical_bytes([*takewhile(lambda message: message.get("role") in _LEADING, messages)])


def _common(left: bytes, right: bytes) -> int:
    """How many messages two chains have in common; a link covers all before it, so halving finds the end."""
    low, high = 0, min(len(left), len(right)) // _LINK
    while low < high:
        middle = (low + high + 1) // 2
        place = slice((middle - 1) * _LINK, middle * _LINK)
        if left[place] == right[place]:
            low = middle
        else:
            high = middle - 1
    return low
