"""What a terminal is shown: nothing that it would obey, and a tree that is true to the run."""

from __future__ import annotations

import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from agentrewind.display_story import Story
from agentrewind.display_text import columns, one_line, printable, shorten
from agentrewind.display_tree import tree
from agentrewind.records import AttemptFailed, ErrorRecord, NodeKind, Record, SnapshotTaken, WorkspaceSpan
from tests import records

hostile = st.text(
    st.one_of(
        st.characters(),
        st.sampled_from("\x1b\x07\x9b\x9d\x90\x9c\r\n\t\x00\x7f\u202e\u2066\u2028\udc80[]0;mPX^_\\"),
    )
)


@given(hostile)
def test_nothing_that_a_terminal_would_obey(text: str) -> None:
    shown = printable(text)
    assert {unicodedata.category(each) for each in shown} & {"Cc", "Cf", "Cs", "Zl", "Zp"} <= {"Cc"}
    assert {each for each in shown if unicodedata.category(each) == "Cc"} <= {"\n", "\t"}
    assert printable(shown) == shown
    shown.encode("utf-8")


@given(st.text(st.characters(categories=["L", "N", "P", "Sm", "Zs"])))
def test_plain_text_stays_as_it_is(text: str) -> None:
    assert printable(text) == text


@given(hostile, st.integers(0, 40))
def test_cut_text_fits(text: str, width: int) -> None:
    line = shorten(text, width)
    assert columns(line) <= width
    assert "\n" not in line
    assert line == one_line(text) or line.endswith("…") or width == 0


def _tree(*segments: list[Record], width: int = 100) -> list[str]:
    story = Story()
    for number, made in enumerate(segments):
        for record in made:
            story.add(number, record)
    return [line.plain().rstrip() for line in tree(story, width=width)]


def _uids(lines: list[str]) -> list[str]:
    """`rec_000002` for a line of the path, `│ rec_000002` for one that is set in once, and so on."""
    found = []
    for line in lines:
        rail, separator, rest = line.partition("rec_")
        if separator and "↶" not in rail:
            found.append("│" * rail.replace("├─", "").count("│") + str(int(rest[:6])))
    return found


def _answers(*numbers: int) -> list[Record]:
    return [records.llm(number) for number in numbers]


def test_one_rewind_sets_the_abandoned_part_in() -> None:
    lines = _tree(
        [records.header(), *_answers(1, 2, 3), records.asked(1, 2)],
        [records.header(1, fork=records.fork_at(2)), records.done(1, 2), *_answers(4, 5)],
    )
    assert _uids(lines) == ["1", "│2", "│3", "4", "5"]


def test_rewinds_inside_a_rewound_suffix() -> None:
    lines = _tree(
        [records.header(), *_answers(1, 2, 3)],
        [records.header(1, fork=records.fork_at(2)), records.done(1, 2), *_answers(4, 5)],
        [records.header(2, fork=records.fork_at(5, segment=1)), records.done(2, 5), *_answers(6)],
        [records.header(3, fork=records.fork_at(1)), records.done(3, 1), *_answers(7)],
    )
    assert _uids(lines) == ["│1", "││4", "│││6", "││5", "│2", "│3", "7"]


def test_an_undo_puts_the_branch_back_on_the_path() -> None:
    lines = _tree(
        [records.header(), *_answers(1, 2, 3)],
        [records.header(1, fork=records.fork_at(2)), records.done(1, 2), *_answers(4)],
        [records.header(2, fork=records.fork_at(3, inclusive=True)), *_answers(5)],
    )
    assert _uids(lines) == ["1", "│4", "2", "3", "5"]


def test_a_failed_attempt_and_a_call_without_an_end_are_told() -> None:
    error = ErrorRecord(type="builtins:ConnectionError", message="the line is down")
    story = Story()
    story.add(0, records.header())
    story.add(0, records.started(1))
    new = story.add(0, AttemptFailed(record_uid=records.uid(1), attempt=3, error=error, at=records.AT))
    assert [entry.text for entry in new] == ["attempt 3 failed: the line is down"]
    assert "attempt 3 failed" in tree(story, width=100)[0].plain()
    story.add(0, records.started(2, NodeKind.TOOL))
    assert "running" in tree(story, width=100, live=True)[-1].plain()
    assert "unfinished" in tree(story, width=100)[-1].plain()


def test_changed_paths_are_counted_once_they_are_known() -> None:
    after = WorkspaceSpan(before_commit=None, after_commit=records.commit(3), changed=True, diff_total=2)
    taken = SnapshotTaken(record_uid=records.uid(1), workspaces={"ws0": after}, at=records.AT)
    assert "2 paths changed" in _tree([records.header(), records.tool(1), taken])[0]


@given(st.integers(30, 200))
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    long = records.tool(2, output={"returncode": 0, "output": "x" * 500})
    lines = _tree(
        [records.header(), *_answers(1), long, records.submission(2)],
        [records.header(1, fork=records.fork_at(1)), records.done(1, 1)],
        width=width,
    )
    assert max(columns(line) for line in lines) <= max(width, 60)


@given(st.lists(records.records, max_size=8))
def test_no_record_breaks_the_tree(made: list[Record]) -> None:
    for line in _tree([records.header(), *made]):
        assert "\x1b" not in line
        assert "\n" not in line
