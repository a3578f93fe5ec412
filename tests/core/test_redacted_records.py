"""Whatever a record holds, nothing with the shape of a credential is left of it for others to see."""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from typing import Any

import pytest
from hypothesis import given, settings

from agentrewind.records import Json, Record, WorkspaceSpan
from agentrewind.redacted_records import redacted_header, redacted_record, redacted_value
from tests import records

SECRET = "sk-" + "Zq9x" * 6
KEPT = {
    # names and places, by which records find each other; and what is chosen from a list
    "record_uid", "input_id", "conversation", "tool_call_id", "parent", "at", "created_at", "base", "target",
    "asked_by", "after", "by", "state", "topic", "run_id", "before_commit", "after_commit", "commit",
    "status", "path", "partial", "left_out", "workspaces", "forked_from", "versions", "node_kind",
}  # fmt: skip


TELLING = (
    "api_key",
    "API-Key",
    "x-api-key",
    "Authorization",
    "password",
    "passwd",
    "client_secret",
    "access_token",
    "auth_token",
    "refreshToken",
    "cookie",
    "set-cookie",
    "token",
    "credentials",
    "private_key",
)


def planted(value: Any) -> Any:
    """The same with a credential at the end of every text."""
    if isinstance(value, str):
        return f"{value} {SECRET}"
    if isinstance(value, bytes):
        return value + b" " + SECRET.encode()
    if isinstance(value, list | tuple):
        return type(value)(planted(each) for each in value)
    if isinstance(value, dict):
        return {name: planted(each) for name, each in value.items()}
    if is_dataclass(value) and not isinstance(value, type | WorkspaceSpan):
        new = {
            each.name: planted(getattr(value, each.name)) for each in fields(value) if each.name not in KEPT
        }
        return replace(value, **new)
    return value


@settings(max_examples=300)
@given(records.records)
def test_no_text_keeps_a_credential(record: Record) -> None:
    full = planted(record)
    clean = redacted_header(full) if isinstance(full, type(records.header())) else redacted_record(full)
    assert SECRET not in repr(clean)
    assert type(clean) is type(record)


@given(records.values)
def test_values_without_one_stay_as_they_are_but_for_what_looks_like_one(value: Json) -> None:
    clean = redacted_value(value)
    assert redacted_value(clean) == clean or repr(redacted_value(clean)) == repr(clean)


@pytest.mark.parametrize(
    "name",
    TELLING,
)
def test_what_stands_under_a_telling_name_is_replaced(name: str) -> None:
    assert redacted_value({name: "whatever it is"}) == {name: "[redacted]"}


@pytest.mark.parametrize("name", ["prompt_tokens", "tokens", "key", "keyboard", "tokenizer", "secretary"])
def test_other_names_say_nothing(name: str) -> None:
    assert redacted_value({name: "plain"}) == {name: "plain"}
