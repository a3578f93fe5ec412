"""What a harness's form has to give: a call read from its document, and answers as it takes them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from hashlib import sha256
from pathlib import Path
from typing import Protocol

import orjson

from agentrewind.backup.values import ToolCall
from agentrewind.errors import UsageError
from agentrewind.records import Json

TAG = "[BACKUP NEEDED]"
"""What an agent writes into a call's own description to ask for a backup."""

_TAGGED_IN = ("description", "reason", "justification", "explanation")


class DocumentError(UsageError):
    """The document on standard input is none that this harness would send; the message says what is wrong."""


class When(StrEnum):
    """Where a call stands."""

    BEFORE = "before"
    AFTER = "after"


@dataclass(frozen=True, slots=True, kw_only=True)
class HostCall:
    """A tool call as a harness tells of it.

    Attributes:
        cwd: its working directory, empty where the harness names none.
        key: the same before and after the call, unique in the session as far as the harness allows.
    """

    when: When
    call: ToolCall
    cwd: str
    key: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What the hook writes, and the code that it ends with."""

    stdout: str = ""
    stderr: str = ""
    code: int = 0


class Host(Protocol):
    """The form of one harness. Stateless."""

    def read(self, document: Mapping[str, Json]) -> HostCall | None:
        """The call of a document, None for an event that is no tool call. Raises DocumentError."""
        ...

    def passes(self, note: str) -> Reply:
        """Let the call go its usual way, permissions included; `note` is for people, mostly empty."""
        ...

    def blocks(self, reason: str) -> Reply:
        """Stop the call and tell the agent why."""
        ...


def text(document: Mapping[str, Json], *names: str) -> str:
    """The first of these fields that is text, else an empty one."""
    for name in names:
        value = document.get(name)
        if isinstance(value, str):
            return value
    return ""


def when_of(
    document: Mapping[str, Json], events: Mapping[str, When], *fields: str, tool: str = "tool_name"
) -> When | None:
    """Where the call of a document stands, None for an event that is known to be none of a tool.

    Raises DocumentError where no event is named, or an unknown one speaks of a tool: it may run.
    """
    named = text(document, *fields)
    if not named:
        raise DocumentError(f"the document has no {fields[0]}")
    when = events.get(named)
    if when is None and tool in document:
        raise DocumentError(f"{fields[0]} is {named!r}, which is no event of a tool call that is known here")
    return when


def call_of(
    document: Mapping[str, Json],
    *,
    name: str,
    arguments: str,
    call_id: str,
    session: str,
    cwd: str,
    when: When,
) -> HostCall:
    """A call from the fields of these names.

    Raises DocumentError where name or arguments are missing, or the directory is given from elsewhere.
    """
    tool = text(document, name)
    given = document.get(arguments)
    if not tool:
        raise DocumentError(f"the document has no {name}")
    if isinstance(given, str):
        given = _parsed(given)
    if not isinstance(given, dict):
        raise DocumentError(f"{arguments} of {tool} is no object")
    place = text(document, cwd)
    if place and not Path(place).is_absolute():
        raise DocumentError(f"{cwd} is {place!r}, which is no absolute path")
    identity = (
        text(document, call_id)
        or sha256(orjson.dumps([tool, given], option=orjson.OPT_SORT_KEYS)).hexdigest()[:16]
    )
    tagged = any(TAG in str(given.get(field, "")) for field in _TAGGED_IN)
    return HostCall(
        when=when,
        call=ToolCall(name=tool, arguments=given, call_id=text(document, call_id) or None, tagged=tagged),
        cwd=place,
        key=f"{text(document, session)}:{identity}",
    )


def _parsed(value: str) -> Json:
    try:
        found: Json = orjson.loads(value)
    except orjson.JSONDecodeError:
        return value
    return found


def dumped(document: Mapping[str, Json]) -> str:
    """One line of JSON."""
    return orjson.dumps(document).decode() + "\n"
