"""Text made safe to look at: nothing invisible is left, nothing visible is lost."""

from __future__ import annotations

import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from agentrewind.display_text import file_name
from agentrewind.records import Json
from agentrewind.view.diff_lines import file_diff, text_diff
from agentrewind.view.parts import PIECE, arguments_text, piece
from agentrewind.view.visible import title, value_text, visible
from tests import records
from tests.cli.test_display import hostile

INVISIBLE = {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}


@given(hostile)
def test_nothing_hides_and_nothing_turns_the_line_round(text: str) -> None:
    shown = visible(text).text
    assert {each for each in shown if unicodedata.category(each) in INVISIBLE} <= {"\n", "\t"}
    shown.encode("utf-8")
    name = file_name(text)
    assert not {each for each in name if unicodedata.category(each) in INVISIBLE}
    assert len(title(text)) <= 240


@given(st.text(st.characters(categories=["L", "N", "P", "Sm", "Zs"])))
def test_plain_text_stays_as_it_is(text: str) -> None:
    assert visible(text).text == text == file_name(text)


@given(st.binary(max_size=40))
def test_different_paths_have_names_on_one_line(path: bytes) -> None:
    assert "\n" not in file_name(path)
    file_name(path).encode("utf-8")


@given(records.values)
def test_every_value_can_be_told(value: Json) -> None:
    assert isinstance(value_text(value), str)
    visible(value_text(value)).text.encode("utf-8")
    visible(arguments_text(value)).text.encode("utf-8")


@given(st.text(max_size=300), st.integers(1, 50))
def test_pieces_make_up_the_whole(text: str, length: int) -> None:
    start, found = 0, []
    while True:
        each = piece(text, "x", start=start, length=length)
        assert (each.start, each.total) == (start, len(text))
        found.append(text[each.start : each.stop])
        start = each.stop
        if not each.more:
            break
    assert "".join(found) == text
    assert PIECE > 0


lines = st.lists(st.sampled_from(["a", "b", "c", "", "long " * 900]), max_size=12).map("\n".join)


@given(lines, lines)
def test_a_diff_tells_every_line_that_came_or_went(old: str, now: str) -> None:
    found = text_diff(old, now)
    olds, nows = old.split("\n"), now.split("\n")
    for line in found.lines:
        if line.sort in ("same", "gone") and line.old is not None:
            assert line.text[:4] == olds[line.old - 1][:4]
        if line.sort in ("same", "new") and line.now is not None:
            assert line.text[:4] == nows[line.now - 1][:4]
    assert (
        bool(found.added or found.removed) == (old.rstrip("\n") != now.rstrip("\n"))
        or old.strip() == now.strip()
    )
    assert found.hidden == 0


def test_a_file_that_is_nowhere_is_no_error() -> None:
    assert file_diff(b"x", None, None).remarks
