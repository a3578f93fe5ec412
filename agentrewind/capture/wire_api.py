"""What the gate must know of an HTTP API for language models: requests, answers, streams. Pure tables."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from agentrewind.capture.streams import Joiner
from agentrewind.records import JsonObject
from agentrewind.rewind.memory_forms import Place


@dataclass(frozen=True, slots=True, kw_only=True)
class WireApi:
    """One endpoint.

    Attributes:
        client: what records call it.
        compared: the conversation of a request body, as it is compared and recorded.
        sent: the same as it is sent, one for one.
        with_sent: the body with another conversation.
        place: puts the rewind memory into it.
        refusal: why a request cannot be recorded, or None.
        lift, lower: an answer's body as a record's output, and back.
        joiner: joins the stream that answers this request body.
        events: an answer as a stream that answers this request body.
        named: the stream's events have names; otherwise an end mark closes it.
    """

    client: str
    compared: Callable[[JsonObject], list[Any]]
    sent: Callable[[JsonObject], list[Any]]
    with_sent: Callable[[JsonObject, list[Any]], JsonObject]
    place: Place
    refusal: Callable[[JsonObject], str | None]
    lift: Callable[[JsonObject], JsonObject]
    lower: Callable[[JsonObject], JsonObject]
    joiner: Callable[[JsonObject], Joiner]
    events: Callable[[JsonObject, JsonObject], list[JsonObject]]
    named: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Sdk:
    """A client library made by the generator that openai and anthropic use.

    Attributes:
        apis: endpoints by the end of their path.
        refused: patterns of paths that run a model and cannot be recorded, with the reason.
        kept_headers: headers of an answer that are recorded.
    """

    name: str
    apis: Mapping[str, WireApi]
    refused: Mapping[str, str]
    kept_headers: tuple[str, ...]

    def api(self, method: str, url: str) -> WireApi | None:
        """The endpoint that such a request goes to, or None where it is none that answers with a model."""
        if method.lower() != "post":
            return None
        path = urlsplit(url).path.rstrip("/")
        return next((api for end, api in self.apis.items() if path.endswith(end)), None)

    def reason(self, method: str, url: str) -> str | None:
        """Why a request is refused, or None."""
        if method.lower() != "post":
            return None
        path = urlsplit(url).path.rstrip("/")
        return next((why for pattern, why in self.refused.items() if re.search(pattern, path)), None)
