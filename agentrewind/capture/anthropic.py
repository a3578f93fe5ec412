"""Joins the anthropic SDK to the gate: `messages.create`, `parse` and `stream`, beta or not, sync and async.

All of them make one request below; that is where the gate stands. anthropic is never imported from here.
"""

from __future__ import annotations

from agentrewind.capture import messages_form
from agentrewind.capture.wire import CurrentGate, install_sdk
from agentrewind.capture.wire_api import Sdk, WireApi
from agentrewind.records import JsonObject
from agentrewind.rewind.memory_forms import place_turns

_SERVER_STATE = ("thread", "thread_id", "container")


def _refusal(body: JsonObject) -> str | None:
    for name in _SERVER_STATE:
        if body.get(name):
            return f"`{name}` leaves state with the provider, which cannot be rewound; send it whole instead"
    return None


MESSAGES = WireApi(
    client="anthropic.messages",
    compared=messages_form.turns,
    sent=messages_form.sent_turns,
    with_sent=messages_form.with_turns,
    place=place_turns,
    refusal=_refusal,
    lift=messages_form.lift,
    lower=messages_form.lower,
    joiner=lambda body: messages_form.MessagesJoiner(),
    events=lambda answer, body: messages_form.events(answer),
    named=True,
)

ANTHROPIC = Sdk(
    name="anthropic",
    apis={"/v1/messages": MESSAGES},
    refused={
        r"/v1/messages/batches$": "a batch is answered later and elsewhere; use messages.create",
        r"/v1/complete$": "a bare prompt is no conversation; use messages.create",
    },
    kept_headers=("request-id", "anthropic-workspace-id"),
)


def install(current_gate: CurrentGate) -> None:
    """Stand in the way of the anthropic SDK, now or when it is imported. Twice changes nothing."""
    install_sdk(ANTHROPIC, current_gate)
