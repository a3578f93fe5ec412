"""The APIs that a scripted model speaks, by the path at which it is asked."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from harness_adapters import scripted_messages, scripted_responses
from harness_adapters.scripted_answer import Completion, event_stream
from harness_adapters.scripted_request import ScriptedRequest, read_request

COMPLETIONS = "/v1/chat/completions"
RESPONSES = "/v1/responses"
MESSAGES = "/v1/messages"


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """An API that is spoken here: its requests as chat completions, an answer as its body or its events."""

    as_chat: Callable[[Mapping[str, Any]], Mapping[str, Any]]
    whole: Callable[[Completion], dict[str, Any]]
    stream: Callable[[Completion, Mapping[str, Any]], tuple[bytes, ...]]


def _chat_stream(completion: Completion, raw: Mapping[str, Any]) -> tuple[bytes, ...]:
    options = raw.get("stream_options")
    include_usage = isinstance(options, dict) and bool(options.get("include_usage"))
    return event_stream(completion.chunks(include_usage=include_usage))


DIALECTS = {
    COMPLETIONS: Dialect(as_chat=lambda raw: raw, whole=Completion.whole, stream=_chat_stream),
    RESPONSES: Dialect(
        as_chat=scripted_responses.as_chat,
        whole=scripted_responses.whole,
        stream=lambda completion, _raw: scripted_responses.stream(completion),
    ),
    MESSAGES: Dialect(
        as_chat=scripted_messages.as_chat,
        whole=scripted_messages.whole,
        stream=lambda completion, _raw: scripted_messages.stream(completion),
    ),
}


def read(body: bytes, dialect: Dialect, *, number: int) -> ScriptedRequest:
    """The request in the form of chat completions; what no translation takes is judged as it came."""
    try:
        raw = json.loads(body)
        translated = json.dumps(dialect.as_chat(raw)).encode()
    except (ValueError, RecursionError, AttributeError, KeyError, TypeError):
        return read_request(body, number=number)
    request = read_request(translated, number=number)
    return replace(request, raw=raw) if isinstance(raw, dict) else request
