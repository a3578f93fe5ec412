"""Laws of damage: whatever happens to a segment's bytes, all that is whole is read and the rest is named."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from agentrewind.codec import encode
from agentrewind.errors import UnsupportedFormatError
from agentrewind.journal import SegmentRead, SegmentWriter, create_segment, read_segment
from agentrewind.records import Record
from agentrewind.salvage import Damage
from tests.records import header, llm, started, submission, tool, uid


@dataclass(frozen=True)
class Line:
    """A record and where its bytes stand, newline apart."""

    start: int
    end: int
    record: Record


@dataclass(frozen=True)
class Log:
    data: bytes
    lines: tuple[Line, ...]

    @property
    def records(self) -> list[Record]:
        return [line.record for line in self.lines]


def _log(nodes: int) -> Log:
    records: list[Record] = [header()]
    for number in range(1, nodes + 1, 2):
        records += [
            started(number),
            llm(number, base=number - 2 if number > 1 else None, keep=number - 1, append=({"n": number},)),
            tool(number + 1, output={"value": number, "text": "a line\n" * (number % 5), "bytes": b"\xff"}),
        ]
        if number % 7 == 0:
            records.append(submission(number + 1))
    data, lines = b"", []
    for record in records:
        line = encode(record, put_blob=lambda _: "sha256:" + "0" * 64)
        lines.append(Line(len(data), len(data) + len(line) - 1, record))
        data += line
    return Log(data, tuple(lines))


SMALL = _log(12)
LARGE = _log(200)
BODY = SMALL.lines[0].end + 1
"""Where the records after the header begin."""


def read(data: bytes) -> SegmentRead:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "segment-0000.jsonl"
        path.write_bytes(data)
        return read_segment(path)


def listed(found: SegmentRead) -> list[Record]:
    first: list[Record] = [] if found.header is None else [found.header]
    return first + [record for _, record in found.records]


def unexplained(data: bytes, found: SegmentRead, log: Log) -> Iterator[int]:
    """The bytes that belong to no listed record, no named damage and are no line break."""
    lengths = {id(line.record): line.end - line.start for line in log.lines}
    sizes = {repr(line.record): lengths[id(line.record)] for line in log.lines}
    spans = [(offset, offset + sizes[repr(record)]) for offset, record in found.records]
    if found.header is not None:
        start = data.find(b'{"kind":"header"')
        spans.append((start, start + sizes[repr(found.header)]))
    spans += [(damage.offset, damage.offset + damage.length) for damage in found.damages]
    covered = bytearray(len(data))
    for start, end in spans:
        covered[start:end] = b"\1" * (end - start)
    yield from (place for place, mark in enumerate(covered) if not mark and data[place : place + 1] != b"\n")


def named(found: SegmentRead) -> list[Damage]:
    return list(found.damages)


# --- one law for every splice ---


@settings(deadline=None)
@given(
    start=st.integers(0, len(SMALL.data)),
    length=st.one_of(st.integers(0, 3), st.integers(0, 900)),
    instead=st.one_of(
        st.just(b""),
        st.binary(max_size=9),
        st.sampled_from(
            [b"\n", b"\0" * 4096, b'{"kind":"event",', b'","sum":"0123456789abcdef"}\n', b"\x18\n"]
        ),
    ),
)
@example(start=BODY, length=0, instead=b"\n\n")
@example(start=BODY - 1, length=1, instead=b"")
@example(start=0, length=0, instead=b"\0" * 4096)
def test_all_that_is_whole_is_listed_and_every_other_byte_is_named(
    start: int, length: int, instead: bytes
) -> None:
    end = min(start + length, len(SMALL.data))
    data = SMALL.data[:start] + instead + SMALL.data[end:]
    try:
        found = read(data)
    except UnsupportedFormatError:
        # the format number itself was altered, or a header came first that claims another one
        assert start <= SMALL.lines[0].end
        return
    whole = [line.record for line in SMALL.lines if line.end <= start or line.start >= end]
    rebuilt = [line.record for line in SMALL.lines if SMALL.data[line.start : line.end] in data]
    assert [record for record in listed(found) if record in whole] == whole
    assert listed(found) == rebuilt
    assert list(unexplained(data, found, SMALL)) == []


@settings(deadline=None)
@given(cut=st.integers(0, len(SMALL.data)))
def test_a_segment_cut_at_any_byte_opens_as_a_prefix_of_itself(cut: int) -> None:
    found = read(SMALL.data[:cut])
    records = listed(found)
    assert records == SMALL.records[: len(records)]
    whole = [line for line in SMALL.lines if line.end <= cut]
    assert len(records) == len(whole)
    assert all(not damage.lost for damage in found.damages if damage.length)


@settings(deadline=None)
@given(
    cut=st.integers(BODY, len(SMALL.data)),
    after=st.lists(st.sampled_from(list(range(100, 120))), unique=True, max_size=4),
)
def test_what_is_appended_after_any_cut_is_read_whole(cut: int, after: list[int]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "segment-0000.jsonl"
        path.write_bytes(SMALL.data[:cut])
        kept = listed(read_segment(path))
        with SegmentWriter(path) as writer:
            for number in after:
                writer.append(tool(number), durable=False)
        found = read_segment(path)
        assert listed(found) == kept + [tool(number) for number in after]
        # a cut tail is no gap: its record was never acknowledged, or its call is told as interrupted
        assert not any(damage.lost for damage in found.damages)


@settings(deadline=None)
@given(st.lists(st.integers(1, 40), max_size=30))
def test_what_is_appended_is_what_is_read(numbers: list[int]) -> None:
    distinct = list(dict.fromkeys(numbers))
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "segment-0007.jsonl"
        create_segment(path, header(7))
        for number in distinct:
            with SegmentWriter(path) as writer:
                writer.append(started(number), durable=False)
                writer.append(tool(number), durable=False)
        found = read_segment(path)
        expected: list[Record] = [item for n in distinct for item in (started(n), tool(n))]
        assert (found.segment, found.header, found.damages) == (7, header(7), ())
        assert [record for _, record in found.records] == expected


# --- the damages that other tools died of, on a log of 200 nodes ---


def test_the_tail_cut_at_each_of_the_last_300_bytes() -> None:
    for cut in range(len(LARGE.data) - 300, len(LARGE.data)):
        found = read(LARGE.data[:cut])
        whole = [line for line in LARGE.lines if line.end <= cut]
        assert listed(found) == [line.record for line in whole]
        torn = cut - (whole[-1].end + 1)
        assert [damage.length for damage in named(found)] == ([torn] if torn > 0 else [])


MIDDLE = [line for line in LARGE.lines if line.start > 0 and line.end < len(LARGE.data) - 1][::23]


@pytest.mark.parametrize("line", MIDDLE, ids=lambda line: str(line.start))
class TestInTheMiddle:
    def test_a_dropped_line_break(self, line: Line) -> None:
        found = read(LARGE.data[: line.end] + LARGE.data[line.end + 1 :])
        assert listed(found) == LARGE.records
        (damage,) = named(found)
        assert (damage.offset, damage.length, damage.lost) == (line.end, 0, False)

    def test_a_cut_line_with_the_next_glued_on(self, line: Line) -> None:
        for cut in (1, 30, line.end - line.start - 1):
            found = read(LARGE.data[: line.start + cut] + LARGE.data[line.end + 1 :])
            assert listed(found) == [record for record in LARGE.records if record != line.record]
            (damage,) = named(found)
            assert (damage.offset, damage.length, damage.lost) == (line.start, cut, True)

    def test_four_kilobytes_of_zeros(self, line: Line) -> None:
        zeros = b"\0" * 4096
        between = read(LARGE.data[: line.start] + zeros + LARGE.data[line.start :])
        assert listed(between) == LARGE.records
        assert [(item.offset, item.reason) for item in named(between)] == [(line.start, "4096 NUL bytes")]
        within = read(LARGE.data[: line.start + 40] + zeros + LARGE.data[line.start + 40 :])
        assert listed(within) == [record for record in LARGE.records if record != line.record]
        assert [item.offset for item in named(within)] == [line.start]

    def test_a_line_that_stands_twice(self, line: Line) -> None:
        twice = LARGE.data[line.start : line.end + 1]
        found = read(LARGE.data[: line.end + 1] + twice + LARGE.data[line.end + 1 :])
        assert listed(found) == LARGE.records
        (damage,) = named(found)
        assert (damage.offset, damage.lost) == (line.end + 1, False)
        assert "a second time" in damage.reason

    def test_an_altered_value_in_valid_json(self, line: Line) -> None:
        body = LARGE.data[line.start : line.end]
        altered = body.replace(b"2026", b"2027", 1)
        found = read(LARGE.data[: line.start] + altered + LARGE.data[line.end :])
        assert listed(found) == [record for record in LARGE.records if record != line.record]
        (damage,) = named(found)
        assert (damage.offset, damage.length) == (line.start, len(body))
        assert "checksum does not match" in damage.reason

    def test_a_line_that_is_gone_for_a_while_names_its_node(self, line: Line) -> None:
        found = read(LARGE.data[: line.end - 5] + b"-----" + LARGE.data[line.end :])
        (damage,) = named(found)
        assert damage.record_uid == getattr(line.record, "record_uid", uid(0))
