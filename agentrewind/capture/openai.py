"""Joins the openai SDK to the gate: chat completions and responses, through whichever method they are asked.

`create`, `parse`, `stream`, their raw and streaming variants, sync and async, and a plain `client.post` all
make one request below; that is where the gate stands. openai is never imported from here.
"""

from __future__ import annotations

import functools
from types import ModuleType
from typing import Any

from agentrewind.capture import chat_form, responses_form
from agentrewind.capture.hook import when_imported
from agentrewind.capture.wire import CurrentGate, install_sdk, refuse_methods
from agentrewind.capture.wire_api import Sdk, WireApi
from agentrewind.records import JsonObject
from agentrewind.rewind.memory_forms import place_items, place_messages


def _messages(body: JsonObject) -> list[Any]:
    messages = body.get("messages")
    return list(messages) if isinstance(messages, list) else []


def _usage_asked(body: JsonObject) -> bool:
    options = body.get("stream_options")
    return isinstance(options, dict) and bool(options.get("include_usage"))


def _choices(body: JsonObject) -> int:
    number = body.get("n")
    return number if isinstance(number, int) else 1


CHAT = WireApi(
    client="openai.chat.completions",
    compared=_messages,
    sent=_messages,
    with_sent=lambda body, sent: {**body, "messages": sent},
    place=place_messages,
    refusal=lambda body: None,
    lift=chat_form.lift,
    lower=chat_form.lower,
    joiner=lambda body: chat_form.ChatJoiner(choices=_choices(body), usage=_usage_asked(body)),
    events=lambda answer, body: chat_form.chunks(answer, usage=_usage_asked(body)),
    named=False,
)

RESPONSES = WireApi(
    client="openai.responses",
    compared=responses_form.items,
    sent=responses_form.items,
    with_sent=responses_form.with_items,
    place=place_items,
    refusal=responses_form.refusal,
    lift=responses_form.lift,
    lower=responses_form.lower,
    joiner=lambda body: responses_form.ResponsesJoiner(),
    events=lambda answer, body: responses_form.events(answer),
    named=True,
)

OPENAI = Sdk(
    name="openai",
    apis={"/chat/completions": CHAT, "/responses": RESPONSES, "/responses/compact": RESPONSES},
    refused={
        r"(?<!chat)/completions$": "a bare prompt is no conversation; use chat.completions",
        r"/threads/(.+/)?runs(/.*)?$": "assistants keep the conversation with the provider; use responses",
    },
    kept_headers=("x-request-id",),
)

_SOCKETS = {
    "openai.resources.responses.responses": ("Responses", "AsyncResponses"),
    "openai.resources.beta.responses.responses": ("Responses", "AsyncResponses"),
    "openai.resources.realtime.realtime": ("Realtime", "AsyncRealtime"),
    "openai.resources.beta.realtime.realtime": ("Realtime", "AsyncRealtime"),
}


def install(current_gate: CurrentGate) -> None:
    """Stand in the way of the openai SDK, now or when it is imported. Installing twice changes nothing."""
    install_sdk(OPENAI, current_gate)
    for name, classes in _SOCKETS.items():
        when_imported(name, functools.partial(_refuse_sockets, classes=classes, current_gate=current_gate))


def _refuse_sockets(module: ModuleType, *, classes: tuple[str, ...], current_gate: CurrentGate) -> None:
    refuse_methods(
        [getattr(module, name) for name in classes if hasattr(module, name)],
        method="connect",
        reason=f"{module.__name__}.connect talks over a socket that cannot be recorded; use responses.create",
        current_gate=current_gate,
    )
