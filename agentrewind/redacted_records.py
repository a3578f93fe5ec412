"""Takes what looks like a credential out of a run's records before others are shown them. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from agentrewind.journal import SegmentRead
from agentrewind.records import (
    AttemptFailed,
    ErrorRecord,
    Finished,
    Header,
    Json,
    JsonObject,
    LlmNode,
    MessageList,
    Metadata,
    Note,
    ProcessesEnded,
    Record,
    Restored,
    Resumed,
    RewindAsked,
    RewindDone,
    Started,
    Submission,
    ToolNode,
)
from agentrewind.redact import REDACTED, scrub

_SECRET_NAME = re.compile(
    r"(?:api|access|secret|private|auth|session|refresh|id)[-_ ]?(?:key|token)$|authorization$|passw(?:or)?d$"
    r"|passphrase$|secret$|credentials?$|^(?:set-)?cookie$|^token$",
    re.IGNORECASE,
)


def redacted(reads: Iterable[SegmentRead]) -> tuple[SegmentRead, ...]:
    """The same segments; in every text of theirs what has the shape of a credential is replaced.

    Ids, commits and paths stay as they are. What is secret without looking so remains.
    """
    return tuple(
        replace(
            read,
            header=None if read.header is None else redacted_header(read.header),
            records=tuple((offset, redacted_record(record)) for offset, record in read.records),
        )
        for read in reads
    )


def redacted_header(header: Header) -> Header:
    """The header without what looks like a credential."""
    options = _object(header.options)
    return replace(
        header,
        options=options,
        model=header.model and scrub(header.model),
        harness=header.harness and scrub(header.harness),
    )


def redacted_record(record: Record) -> Record:
    """The record without what looks like a credential."""
    match record:
        case LlmNode():
            return replace(
                record,
                model=scrub(record.model),
                client=scrub(record.client),
                parameters=_object(record.parameters),
                messages=_messages(record.messages),
                tools=redacted_value(record.tools),
                output=None if record.output is None else _object(record.output),
                error=_error(record.error),
                metadata=_metadata(record.metadata),
            )
        case ToolNode():
            return replace(
                record,
                tool_name=scrub(record.tool_name),
                arguments=redacted_value(record.arguments),
                output=redacted_value(record.output),
                error=_error(record.error),
                metadata=_metadata(record.metadata),
            )
        case Started():
            return replace(record, tool_name=record.tool_name and scrub(record.tool_name))
        case AttemptFailed(error=error):
            return replace(record, error=_error(error) or error)
        case _:
            return _event(record)


def _event(record: Record) -> Record:
    match record:
        case Submission():
            return replace(record, feedback=scrub(record.feedback), criterion=scrub(record.criterion))
        case RewindAsked():
            return replace(record, memory=scrub(record.memory), reason=scrub(record.reason))
        case RewindDone() | Restored():
            return replace(record, report=_object(record.report))
        case Note():
            return replace(record, text=scrub(record.text), data=_object(record.data))
        case Finished() | Resumed():
            return replace(record, detail=scrub(record.detail))
        case ProcessesEnded():
            return replace(record, ended=tuple(map(scrub, record.ended)), kept=tuple(map(scrub, record.kept)))
        case _:
            return record


def redacted_value(value: Json) -> Json:
    """A value without what looks like a credential, by its own shape or by the name it stands under."""
    match value:
        case str():
            return scrub(value)
        case bytes():
            text = value.decode("utf-8", "surrogateescape")
            return scrub(text).encode("utf-8", "surrogateescape")
        case list():
            return [redacted_value(item) for item in value]
        case dict():
            return _object(value)
        case _:
            return value


def _object(value: JsonObject) -> JsonObject:
    return {
        scrub(name): REDACTED
        if _SECRET_NAME.search(name) and isinstance(item, str | bytes) and item
        else redacted_value(item)
        for name, item in value.items()
    }


def _messages(messages: MessageList) -> MessageList:
    return replace(messages, append=tuple(map(_object, messages.append)))


def _error(error: ErrorRecord | None) -> ErrorRecord | None:
    if error is None:
        return None
    return replace(
        error,
        type=scrub(error.type),
        message=scrub(error.message),
        args=tuple(map(redacted_value, error.args)),
        attributes=_object(error.attributes),
    )


def _metadata(metadata: Metadata) -> Metadata:
    return replace(metadata, external=tuple(map(_object, metadata.external)))
