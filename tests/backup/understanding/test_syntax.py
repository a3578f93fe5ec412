"""Bare words are parsed here as shfmt parses them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from agentrewind.backup.understanding.syntax import Node, SyntaxUnclearError, parse, parse_whole


def _bare(node: Any) -> Any:
    """The tree without positions."""
    if isinstance(node, list | tuple):
        return [_bare(each) for each in node]
    if not isinstance(node, dict):
        return node
    return {key: _bare(value) for key, value in node.items() if not key.endswith(("Pos", "End", "Position"))}


def _or_reason(text: str, *, whole: bool) -> tuple[Node, ...] | str:
    try:
        return parse_whole(text) if whole else parse(text)
    except SyntaxUnclearError as error:
        return str(error)


_WORDS = [
    "ls",
    "-la",
    "--x=y",
    "a=b",
    "/etc/hosts",
    "if",
    "time",
    "export",
    "in",
    "for",
    "!",
    "5",
    "a:b",
    "[",
    "~",
    "é",
    "",
]


@given(
    st.lists(st.sampled_from(_WORDS), min_size=1, max_size=5).map(" ".join)
    | st.from_regex(r"[\w./ =-]{0,20}")
)
@example("time ls")
@example("a=b ls")
@example("ls\n")
@settings(max_examples=150, deadline=None)
def test_bare_words_are_what_shfmt_says(text: str) -> None:
    assert _bare(_or_reason(text, whole=False)) == _bare(_or_reason(text, whole=True))


def test_what_does_not_parse_says_why() -> None:
    with pytest.raises(SyntaxUnclearError, match=r"without|reached|must"):
        parse("echo $(ls")


def test_a_very_long_text_is_refused_before_it_is_parsed() -> None:
    with pytest.raises(SyntaxUnclearError, match="longer than"):
        parse("x" * 300_000)
