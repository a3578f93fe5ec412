"""What belongs to one conversation, and that a request costs what is new in it."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from agentrewind.errors import UsageError
from agentrewind.identity import Conversations, Request
from agentrewind.records import JsonObject, RecordUid

SYSTEM: JsonObject = {"role": "system", "content": "You work in a shell."}
TASK: JsonObject = {"role": "user", "content": "Mend the build."}


def turn(number: int) -> list[JsonObject]:
    call: JsonObject = {
        "id": f"call_{number}",
        "type": "function",
        "function": {"name": "bash", "arguments": "{}"},
    }
    return [
        {"role": "assistant", "content": f"Step {number}.", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": f"call_{number}", "content": f"result {number}"},
    ]


def history(turns: int) -> list[JsonObject]:
    return [SYSTEM, TASK, *(message for number in range(turns) for message in turn(number))]


def remembered(conversations: Conversations, messages: list[JsonObject], uid: int = 1) -> Request:
    request = conversations.identify(model="m", messages=messages, tools=None)
    conversations.remember(request, RecordUid(f"rec_{uid:06d}"))
    return request


def test_only_new_messages_are_normalised_again() -> None:
    conversations = Conversations()
    before = remembered(conversations, history(50))
    after = conversations.identify(model="m", messages=history(51), tools=None)
    assert all(old is new for old, new in zip(before.messages, after.messages, strict=False))
    assert after.chain.startswith(before.chain)


def test_a_number_in_a_message_does_not_end_the_sharing() -> None:
    conversations = Conversations()
    numbered = [SYSTEM, {**TASK, "priority": 1}, *history(20)[2:]]
    before = remembered(conversations, numbered)
    after = conversations.identify(model="m", messages=[*numbered, *turn(20)], tools=None)
    assert all(old is new for old, new in zip(before.messages, after.messages, strict=False))


def test_a_list_grown_by_two_is_recorded_as_two() -> None:
    conversations = Conversations()
    remembered(conversations, history(50), uid=7)
    request = conversations.identify(model="m", messages=history(51), tools=None)
    reference = conversations.by_reference(request)
    assert (reference.base, reference.keep) == ("rec_000007", 102)
    assert reference.append == tuple(turn(50))


def test_a_request_that_was_matched_by_position_is_no_base() -> None:
    conversations = Conversations()
    request = conversations.identify(model="m", messages=history(2), tools=None)
    conversations.remember(request, None)
    reference = conversations.by_reference(conversations.identify(model="m", messages=history(3), tools=None))
    assert (reference.base, reference.keep, len(reference.append)) == (None, 0, 8)


def test_another_system_message_is_recorded_where_it_makes_no_request_different() -> None:
    conversations = Conversations(unread=frozenset({"system"}))
    before = remembered(conversations, history(2))
    changed = [{**SYSTEM, "content": "You review."}, *history(3)[1:]]
    request = remembered(conversations, changed)
    assert request.chain.startswith(before.chain)
    remembered(conversations, history(2))
    reference = conversations.by_reference(request)
    assert (reference.keep, reference.append) == (0, request.messages)
    remembered(conversations, changed, uid=2)
    reference = conversations.by_reference(request)
    assert (reference.base, reference.keep) == ("rec_000002", len(changed))


def test_another_opening_is_another_conversation() -> None:
    conversations = Conversations()
    main = remembered(conversations, history(3))
    other = remembered(conversations, [{**SYSTEM, "content": "You review."}, TASK])
    task = remembered(conversations, [SYSTEM, {**TASK, "content": "Something else."}])
    assert len({main.conversation, other.conversation, task.conversation}) == 3
    assert (
        conversations.identify(model="m", messages=history(4), tools=None).conversation == main.conversation
    )


def test_a_list_whose_beginning_was_cut_off_stays_in_its_conversation() -> None:
    conversations = Conversations()
    main = remembered(conversations, history(5))
    window = [SYSTEM, *history(6)[6:]]
    assert remembered(conversations, window).conversation == main.conversation
    later = [SYSTEM, *history(7)[10:]]
    assert remembered(conversations, later).conversation == main.conversation


def test_a_reviewer_who_reads_the_same_answers_is_another_conversation() -> None:
    conversations = Conversations()
    main = remembered(conversations, history(5))
    reviewer = [{**SYSTEM, "content": "You review."}, *history(5)[2:]]
    assert remembered(conversations, reviewer).conversation != main.conversation


@dataclass
class Message:
    """A message object as clients have them."""

    content: str

    def model_dump(self, *, mode: str) -> dict[str, str]:
        return {"role": "user", "content": self.content, "mode": mode}


def test_message_objects_are_dumped_as_json() -> None:
    request = Conversations().identify(model="m", messages=[Message("hello")], tools=None)
    assert request.messages == ({"role": "user", "content": "hello", "mode": "json"},)


def test_what_json_cannot_hold_is_refused_with_its_place() -> None:
    with pytest.raises(UsageError, match="content"):
        Conversations().identify(model="m", messages=[{"role": "user", "content": {1, 2}}], tools=None)
    with pytest.raises(UsageError):
        Conversations().identify(model="m", messages=[], tools=[object()])
