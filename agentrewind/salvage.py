"""Reads the lines of a segment, and keeps every whole record that damage has left."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256

import orjson

from agentrewind.codec import GetBlob, decode
from agentrewind.errors import DamagedError, UnsupportedFormatError
from agentrewind.records import FORMAT, Header, LlmNode, Record, RecordUid, ToolNode
from agentrewind.sealed_line import SEAL, SUM_DIGITS, check_seal

CANCEL = b"\x18"
"""Ends a half line that a crash left, once a later process has taken the segment up again.

JSON text cannot hold this control character, so no record can end with it.
"""

_START = re.compile(rb'\{"record_uid":"[^"]*","kind":"|\{"kind":"[^"]*",')
_UID = re.compile(rb'"record_uid":"(rec_[0-9]+)"')


@dataclass(frozen=True, slots=True, kw_only=True)
class Damage:
    """A span of a segment that is no record.

    Attributes:
        reason: what is wrong with it, in words.
        lost: False where nothing that had been acknowledged can have stood there: a line that was
            being written when the process died, or a second copy of a record.
        record_uid: the node that the span seems to have been about, where that can still be read.
    """

    segment: int
    offset: int
    length: int
    reason: str
    lost: bool = True
    record_uid: RecordUid | None = None

    def __str__(self) -> str:
        about = f", seemingly of {self.record_uid}" if self.record_uid else ""
        return f"segment {self.segment}, {self.length} bytes from byte {self.offset}{about}: {self.reason}"


class Salvage:
    """Fed with the lines of one segment in order, collects its records and damages."""

    def __init__(self, segment: int, *, get_blob: GetBlob) -> None:
        self._segment = segment
        self._get_blob = get_blob
        self._sums: set[bytes] = set()
        self._uids: set[str] = set()
        self.records: list[tuple[int, Record]] = []
        self.damages: list[Damage] = []

    def feed(self, line: bytes, *, offset: int, whole: bool) -> None:
        """Takes one line without its newline; `whole` is False for a last line that has none.

        Raises UnsupportedFormatError where the segment was written by a newer version.
        """
        if not line:
            return
        if offset == 0:
            _refuse_newer(line)
        try:
            check_seal(line)
        except DamagedError:
            self._split(line, offset, cut=not whole or line.endswith(CANCEL))
        else:
            self._take(line, offset)

    def _take(self, line: bytes, offset: int) -> None:
        """Takes a line whose checksum is right."""
        checksum = line[-SUM_DIGITS - 2 : -2]
        if checksum in self._sums:
            self._damage(line, offset, "the line stands here a second time", lost=False)
            return
        try:
            record = decode(line, get_blob=self._get_blob)
        except UnsupportedFormatError:
            raise
        except DamagedError as error:
            self._damage(line, offset, str(error))
            return
        self._sums.add(checksum)
        if isinstance(record, Header) and self.records:
            self._damage(line, offset, "a header stands after other records", lost=False)
        elif isinstance(record, (LlmNode, ToolNode)) and record.record_uid in self._uids:
            self._damage(line, offset, f"{record.record_uid} was recorded before", lost=False)
        else:
            if isinstance(record, (LlmNode, ToolNode)):
                self._uids.add(record.record_uid)
            self.records.append((offset, record))

    def _split(self, line: bytes, offset: int, *, cut: bool) -> None:
        """Takes the whole records out of a damaged line, and names what lies between them."""
        position = 0
        for start, end in _sealed_spans(line):
            if 0 < position == start:
                self._damage(b"", offset + start, "the line break between two records is missing", lost=False)
            self._gap(line[position:start], offset + position, cut=False)
            self._take(line[start:end], offset + start)
            position = end
        self._gap(line[position:], offset + position, cut=cut)

    def _gap(self, span: bytes, offset: int, *, cut: bool) -> None:
        if not span:
            return
        if cut:
            self._damage(span, offset, "the line was cut while it was being written", lost=False)
            return
        reason = "no record can be made out here"
        try:
            check_seal(span)
        except DamagedError as error:
            reason = str(error)
        self._damage(span, offset, reason)

    def _damage(self, span: bytes, offset: int, reason: str, *, lost: bool = True) -> None:
        uid = _UID.search(span)
        self.damages.append(
            Damage(
                segment=self._segment,
                offset=offset,
                length=len(span),
                reason=reason,
                lost=lost,
                record_uid=RecordUid(uid[1].decode()) if uid else None,
            )
        )


def _refuse_newer(line: bytes) -> None:
    """Refuses by number even where a newer format should seal its lines in another way."""
    try:
        header = orjson.loads(line)
    except orjson.JSONDecodeError:
        return
    if isinstance(header, dict) and header.get("kind") == "header":
        found = header.get("format")
        if isinstance(found, int) and found > FORMAT:
            raise UnsupportedFormatError(found, FORMAT)


def _sealed_spans(line: bytes) -> Iterator[tuple[int, int]]:
    """Where sealed records stand inside a damaged line, in order and without overlap."""
    position = 0
    ends = [(match.start(), match.end(), match[1]) for match in SEAL.finditer(line)]
    for start in [match.start() for match in _START.finditer(line)]:
        if start < position:
            continue
        end = _matching_end(line, start, [item for item in ends if item[0] > start])
        if end is not None:
            yield start, end
            position = end


def _matching_end(line: bytes, start: int, ends: list[tuple[int, int, bytes]]) -> int | None:
    digest, hashed = sha256(), start
    for head, end, checksum in ends:
        digest.update(line[hashed:head])
        hashed = head
        if digest.hexdigest()[:SUM_DIGITS].encode() == checksum:
            return end
    return None
