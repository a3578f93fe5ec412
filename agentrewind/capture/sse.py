"""Server-sent events: cut out of bytes as they arrive, read, and written. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from agentrewind.records import JsonObject

DONE = b"data: [DONE]\n\n"

_BLANK_LINE = re.compile(rb"\r\n\r\n|\n\n|\r\r")


class Splitter:
    """Cuts bytes into events; all pieces put together are the bytes that came in."""

    def __init__(self) -> None:
        self._buffer = b""

    def feed(self, data: bytes) -> Iterator[bytes]:
        """The events that are complete now, each with the blank line that ends it."""
        self._buffer += data
        while (end := _BLANK_LINE.search(self._buffer)) is not None:
            event, self._buffer = self._buffer[: end.end()], self._buffer[end.end() :]
            yield event

    def ahead(self) -> list[bytes]:
        """Complete events that have not been taken yet; they stay."""
        return [
            self._buffer[start:end]
            for start, end in _spans([match.end() for match in _BLANK_LINE.finditer(self._buffer)])
        ]

    def rest(self) -> bytes:
        """What is left when nothing more comes."""
        left, self._buffer = self._buffer, b""
        return left


def _spans(ends: list[int]) -> Iterator[tuple[int, int]]:
    return zip([0, *ends], ends, strict=False)


def read_event(event: bytes) -> JsonObject | None:
    """The JSON object that an event carries; None for a comment, an end mark or anything else."""
    try:
        found = json.loads(_data(event))
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def is_done(event: bytes) -> bool:
    """Whether this is the mark at the end of a stream of chat completions."""
    return _data(event).startswith("[DONE]")


def write_event(event: JsonObject, *, named: bool) -> bytes:
    """An event that carries this object, with its `type` as its name where events have names."""
    head = f"event: {event.get('type')!s}\n" if named else ""
    return f"{head}data: {json.dumps(event)}\n\n".encode()


def _data(event: bytes) -> str:
    lines = event.decode("utf-8", "replace").splitlines()
    fields = [line[5:].removeprefix(" ") for line in lines if line.startswith("data:")]
    return "\n".join(fields)
