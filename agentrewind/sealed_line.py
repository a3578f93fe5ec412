"""One line of JSON that ends with a checksum of itself."""

from __future__ import annotations

import re
from hashlib import sha256

import orjson

from agentrewind.errors import DamagedError
from agentrewind.records import JsonObject

SUM = b',"sum":"'
SUM_DIGITS = 16
SEAL = re.compile(rb',"sum":"([0-9a-f]{16})"\}')
"""Where a sealed line may end."""

_SEAL_LENGTH = len(SUM) + SUM_DIGITS + len(b'"}')


def seal(body: bytes) -> bytes:
    """The line for a non-empty compact JSON object: its bytes with the checksum as the last field."""
    head = body[:-1]
    return b'%s,"sum":"%s"}\n' % (head, _digest(head))


def unseal(line: bytes) -> JsonObject:
    """The object of a sealed line, with or without its newline, without the checksum.

    Raises DamagedError that says what is wrong with the line.
    """
    check_seal(line)
    try:
        found = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise DamagedError(f"the line is no JSON: {error}") from error
    if not isinstance(found, dict):
        raise DamagedError("the line is no JSON object")
    found.pop("sum", None)
    return found


def check_seal(line: bytes) -> None:
    """Raises DamagedError unless the line ends with the checksum of what stands before it."""
    end = len(line) - 1 if line.endswith(b"\n") else len(line)
    head = end - _SEAL_LENGTH
    if head < 0 or SEAL.fullmatch(line, head, end) is None:
        raise DamagedError(_without_seal(line[:end]))
    found = line[head + len(SUM) : head + len(SUM) + SUM_DIGITS]
    if found != _digest(line[:head]):
        raise DamagedError("the line was altered: its checksum does not match")


def _digest(head: bytes) -> bytes:
    return sha256(head).hexdigest()[:SUM_DIGITS].encode()


def _without_seal(line: bytes) -> str:
    if not line.strip(b"\0"):
        return f"{len(line)} NUL bytes"
    if not line.startswith(b"{"):
        return "no record begins here"
    return "the line is cut: it does not end with its checksum"
