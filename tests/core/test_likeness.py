"""A change of a message is seen whatever it is made of, and one that is unchanged is told cheaply."""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict, PrivateAttr, computed_field

from agentrewind.identity import Conversations
from agentrewind.likeness import likeness
from agentrewind.message_form import message_form
from agentrewind.records import Json, RecordUid

ROLE = {"role": "user"}


class Function(BaseModel):
    """A part of a client's message."""

    name: str = "bash"
    arguments: Any = "{}"


class Said(BaseModel):
    """A message as a client's answer has it."""

    model_config = ConfigDict(extra="allow")
    role: str = "assistant"
    content: Any = "Well."
    calls: list[Function] = []


class Noted(Said):
    """Holds what is no field."""

    _notes: list[str] = PrivateAttr(default_factory=list)

    def note(self) -> None:
        self._notes.append("more")


class Computed(Noted):
    """Says more than its fields hold."""

    @computed_field  # type: ignore[prop-decorator]
    @property
    def told(self) -> list[str]:
        return [*self._notes]


class Own(Noted):
    """Is written out in a way of its own."""

    def model_dump(self, **options: Any) -> dict[str, Any]:
        return {**super().model_dump(**options), "told": [*self._notes]}


class Level(IntEnum):
    """A number with a name."""

    ONE = 1


def said(**more: Any) -> Said:
    return Said.model_validate({"calls": [Function()], **more})


CHANGES: list[tuple[str, Any, Callable[[Any], object]]] = [
    ("a text", {**ROLE, "content": "a"}, lambda each: each.update(content="b")),
    ("a key more", {**ROLE, "content": "a"}, lambda each: each.update(name="b")),
    ("a part", {**ROLE, "content": [{"text": "a"}]}, lambda each: each["content"][0].update(text="b")),
    ("a number's type", {**ROLE, "ok": 1}, lambda each: each.update(ok=True)),
    ("a whole float", {**ROLE, "ok": 1}, lambda each: each.update(ok=1.0)),
    ("a float's sign", {**ROLE, "cost": [0.0]}, lambda each: each["cost"].append(each["cost"].pop() * -1)),
    ("a number with a name", {**ROLE, "ok": Level.ONE}, lambda each: each.update(ok=True)),
    ("a mark's text", {**ROLE, "content": "a", "cache_control": {}}, lambda each: each.update(content="b")),
    ("an element of a tuple", {**ROLE, "content": ({"a": "b"},)}, lambda each: each["content"][0].clear()),
    ("a field", said(), lambda each: setattr(each, "content", "b")),
    ("a field's type", said(content=1), lambda each: setattr(each, "content", True)),
    ("a field that is taken away", said(), lambda each: delattr(each, "content")),
    ("a field of a part", said(), lambda each: setattr(each.calls[0], "arguments", "[]")),
    ("a part more", said(), lambda each: each.calls.append(Function())),
    ("what there is no field for", said(index=1), lambda each: setattr(each, "index", 2)),
    ("a field that is computed", Computed(), lambda each: each.note()),
    ("what its own method adds", Own(), lambda each: each.note()),
    ("an object in a field", said(content=Level.ONE), lambda each: setattr(each, "content", True)),
]


@pytest.mark.parametrize(
    ("message", "change"), [each[1:] for each in CHANGES], ids=[each[0] for each in CHANGES]
)
def test_a_change_in_place_is_seen(message: Any, change: Callable[[Any], object]) -> None:
    conversations = Conversations()
    messages = [message, {"role": "user", "content": "Go on."}]
    before = conversations.identify(model="m", messages=messages, tools=None)
    conversations.remember(before, RecordUid("rec_000001"))
    unchanged = conversations.identify(model="m", messages=messages, tools=None)
    assert unchanged.input_id == before.input_id
    change(message)
    after = conversations.identify(model="m", messages=messages, tools=None)
    fresh = Conversations().identify(model="m", messages=messages, tools=None)
    assert after.input_id == fresh.input_id != before.input_id


@pytest.mark.parametrize(
    "message",
    [
        {**ROLE, "content": "a", "ok": 1, "cost": [0.0, float("nan")]},
        {**ROLE, "content": [{"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}}]},
        said(index=1, content=None),
        Computed(),
        Own(),
    ],
    ids=["numbers", "a mark", "an object", "an object that computes", "an object of its own kind"],
)
def test_a_message_that_is_unchanged_keeps_its_form(message: Any) -> None:
    conversations = Conversations()
    before = conversations.identify(model="m", messages=[message], tools=None)
    conversations.remember(before, RecordUid("rec_000001"))
    after = conversations.identify(model="m", messages=[message, message], tools=None)
    assert after.messages[0] is before.messages[0]


def test_a_client_s_object_is_not_written_out_to_be_compared() -> None:
    message = said(index=1)
    form: Json = message_form(message)

    def never(value: object) -> Json:
        raise AssertionError("it was written out again")

    assert likeness(message, form, to_form=never) == message
    assert likeness(message, form, to_form=never) != said(index=2)
