"""Marks for a provider's cache move on with every request and are no part of a message."""

from __future__ import annotations

from typing import Any

import pytest
from minisweagent.models.utils.cache_control import set_cache_control

from agentrewind.identity import Conversations
from agentrewind.records import RecordUid

MESSAGES: list[dict[str, Any]] = [
    {"role": "system", "content": "You work."},
    {"role": "user", "content": "Do it."},
    {"role": "assistant", "content": None, "tool_calls": [{"id": "call_1", "type": "function"}]},
    {"role": "tool", "tool_call_id": "call_1", "content": "done"},
    {"role": "assistant", "content": "Well."},
    {"role": "user", "content": "More."},
]


@pytest.mark.parametrize("length", range(1, len(MESSAGES) + 1))
def test_a_marked_request_is_the_unmarked_one(length: int) -> None:
    plain = MESSAGES[:length]
    marked = set_cache_control(plain, mode="default_end")
    assert marked != plain
    one = Conversations().identify(model="m", messages=plain, tools=None)
    other = Conversations().identify(model="m", messages=marked, tools=None)
    assert (other.input_id, other.conversation) == (one.input_id, one.conversation)
    assert other.messages == one.messages == tuple(plain)


def test_a_conversation_stays_one_while_its_mark_moves() -> None:
    known = Conversations()
    names = set()
    for length in range(2, len(MESSAGES) + 1):
        marked = set_cache_control(MESSAGES[:length], mode="default_end")
        request = known.identify(model="m", messages=marked, tools=None)
        reference = known.by_reference(request)
        assert len(reference.append) == (1 if length > 2 else 2)
        known.remember(request, RecordUid(f"rec_{length:06d}"))
        names.add(request.conversation)
    assert len(names) == 1


def test_parts_that_no_mark_made_stay_parts() -> None:
    parts = [
        {"type": "text", "text": "a"},
        {"type": "text", "text": "b", "cache_control": {"type": "ephemeral"}},
    ]
    request = Conversations().identify(model="m", messages=[{"role": "user", "content": parts}], tools=None)
    assert request.messages[0]["content"] == [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    alone = [{"type": "text", "text": "a"}]
    request = Conversations().identify(model="m", messages=[{"role": "user", "content": alone}], tools=None)
    assert request.messages[0]["content"] == alone
