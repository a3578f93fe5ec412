"""Comparisons say all that differs and nothing else: texts, messages, paths, and snapshots of two stores."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from agentrewind.comparison import (
    Comparable,
    NodeView,
    Parting,
    compare_messages,
    compare_nodes,
    parting,
    view_of,
)
from agentrewind.file_comparison import (
    LONGEST_LINES,
    Form,
    Version,
    compare_versions,
    split_lines,
    unified,
)
from agentrewind.identity import canonical_bytes
from agentrewind.records import CommitId, Json, JsonObject
from agentrewind.snapshot_comparison import Side, changes, differences
from tests import records
from tests.workspace.stage import staged

_LINES = ["a\n", "b\n", "c\r\n", "\f\n", "\n", "--- x\n", "+++ y\n", "@@ z\n", "end"]
_TEXTS = st.lists(st.sampled_from(_LINES)).map("".join)


def _patched(before: str, hunks: Sequence[str]) -> str:
    """What a unified diff makes of a text; checks that what it names as there is there."""
    lines, place = split_lines(before), 0
    made: list[str] = []
    for index, line in enumerate(hunks):
        if line.startswith("\\"):
            continue
        if head := re.fullmatch(r"@@ -(\d+)(?:,(\d+))? \+\d+(?:,\d+)? @@", line):
            start = int(head[1]) - (0 if head[2] == "0" else 1)
            made += lines[place:start]
            place = start
            continue
        ending = "" if hunks[index + 1 : index + 2] == ("\\ No newline at end of file",) else "\n"
        text = line[1:] + ending
        if line[0] != "+":
            assert lines[place] == text
            place += 1
        if line[0] != "-":
            made.append(text)
    return "".join(made + lines[place:])


@given(_TEXTS, _TEXTS)
def test_a_unified_diff_turns_one_text_into_the_other(before: str, after: str) -> None:
    hunks = unified(before, after)
    assert _patched(before, hunks) == after
    assert bool(hunks) is (before != after)


@given(st.binary(max_size=40), st.binary(max_size=40))
def test_bytes_are_compared_as_lines_only_where_both_are_text(before: bytes, after: bytes) -> None:
    sides = [Version(form=Form.TEXT, mode=0o644, size=len(data), data=data) for data in (before, after)]
    found = compare_versions(b"path", "M", *sides)
    try:
        texts = [data.decode() for data in (before, after)]
    except UnicodeDecodeError:
        texts = ["\0"]
    plain = not any("\0" in text for text in texts)
    assert found.form is (Form.TEXT if plain else Form.BINARY)
    assert (found.size_before, found.size_after) == (len(before), len(after))
    assert bool(found.lines) is (plain and before != after)


def test_what_is_too_long_is_said_to_be() -> None:
    data = b"x\n" * LONGEST_LINES
    side = Version(form=Form.TEXT, mode=0o644, size=len(data), data=data)
    assert compare_versions(b"p", "M", side, replace(side, data=b"y", size=1)).form is Form.LONG
    assert compare_versions(b"p", "A", None, replace(side, data=None)).form is Form.LONG


_MESSAGES: list[Json] = [{"role": "user", "content": "a"}, {"role": "user", "content": "b"}, 1, True, 1.0]
_LISTS = st.lists(st.sampled_from(_MESSAGES), max_size=6)


@given(_LISTS, _LISTS)
def test_messages_that_differ_and_those_that_do_not_are_all(left: list[Json], right: list[Json]) -> None:
    found = compare_messages(left, right)
    for side, only in ((left, found.only_left), (right, found.only_right)):
        end = len(side) - found.tail
        assert [canonical_bytes(each) for each in only] == [
            canonical_bytes(each) for each in side[found.common : end]
        ]
        assert len(side) == found.common + len(only) + found.tail
    assert found.any is not (_bytes(left) == _bytes(right))


def _bytes(values: Sequence[Json]) -> list[bytes]:
    return [canonical_bytes(each) for each in values]


def _path(moves: Sequence[tuple[str, str]], *, ids: str, root: str) -> list[NodeView]:
    """A run as its provider and its workspace would have it: own ids, own root, messages that grow."""
    views: list[NodeView] = []
    messages: list[JsonObject] = [{"role": "user", "content": f"work in {root}"}]
    for number, (said, gave) in enumerate(moves):
        call: Json = {"id": f"{ids}{number}", "function": {"name": "sh", "arguments": f"ls {root}/{said}"}}
        node = replace(
            records.llm(2 * number + 1), model=ids, output={"content": said, "tool_calls": [call], "id": ids}
        )
        views.append(view_of(node, list(messages)))
        messages.append({"role": "assistant", "content": said, "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": f"{ids}{number}", "content": f"{root}: {gave}"})
        views.append(view_of(records.tool(2 * number + 2, output={"output": f"{root}: {gave}"})))
    return views


def _part(left: Sequence[NodeView], right: Sequence[NodeView], roots: tuple[str, str]) -> Parting | None:
    made = Comparable()
    return parting(made.path(left, root=roots[0]), made.path(right, root=roots[1]))


_MOVES = st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from("xy")), max_size=5)


@given(_MOVES, _MOVES)
def test_two_runs_part_where_their_moves_do(
    left: list[tuple[str, str]], right: list[tuple[str, str]]
) -> None:
    roots = ("/tmp/one", "/srv/other")
    ours, theirs = _path(left, ids="call_", root=roots[0]), _path(right, ids="toolu-", root=roots[1])
    found = _part(ours, theirs, roots)
    flat = [[part for move in moves for part in enumerate(move)] for moves in (left, right)]
    common = next(
        (at for at, (one, other) in enumerate(zip(*flat, strict=False)) if one != other), min(map(len, flat))
    )
    if flat[0] == flat[1]:
        assert found is None
        return
    assert found is not None
    assert found.common == common
    assert found.what == ("length" if common == min(map(len, flat)) else "answered")
    assert found.left == (ours[common].uid if common < len(ours) else None)
    mirrored = _part(theirs, ours, roots[::-1])
    assert mirrored is not None
    assert (mirrored.common, mirrored.left, mirrored.right) == (found.common, found.right, found.left)


@given(_MOVES, _MOVES)
def test_answers_part_where_the_model_says_something_else(
    left: list[tuple[str, str]], right: list[tuple[str, str]]
) -> None:
    """Whatever the tools gave, and whatever was asked because of it."""
    made = Comparable()
    paths = [_path(moves, ids="c", root="/w") for moves in (left, right)]
    found = parting(*(made.path(path, root="/w") for path in paths), answers=True)
    said = [[move[0] for move in moves] for moves in (left, right)]
    steps = zip(*said, strict=False)
    turn = next((at for at, (one, other) in enumerate(steps) if one != other), min(map(len, said)))
    if said[0] == said[1]:
        assert found is None
    else:
        assert found is not None
        assert found.common == 2 * turn


def test_two_nodes_name_every_part_that_differs() -> None:
    one = records.tool(2, output={"output": "x"})
    other = replace(records.tool(4, output={"output": "y"}), tool_name="python")
    found = compare_nodes(view_of(one), view_of(other))
    assert set(found.fields) == {"tool_name", "arguments", "result"}
    assert found.fields["result"].first == "result.output at character 0: left 'x', right 'y'"
    mixed = compare_nodes(view_of(records.llm(1), [records.MESSAGE]), view_of(one))
    assert {"kind", "model", "tool_name", "arguments", "result"} <= set(mixed.fields)
    assert mixed.messages.only_left == (records.MESSAGE,)


_NAMES = st.sampled_from(["a", "b", "d/a", "d/e/c"])
_TREES = st.dictionaries(
    _NAMES, st.tuples(st.sampled_from([b"x", b"y\n", b"\0"]), st.sampled_from([0o644, 0o755]))
)


def _write(root: Path, tree: dict[str, tuple[bytes, int]]) -> None:
    for path in sorted(root.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    for name, (data, mode) in tree.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        path.chmod(mode)


@settings(max_examples=25, deadline=None)
@given(_TREES, _TREES)
def test_snapshots_of_two_stores_differ_as_those_of_one(
    one: dict[str, tuple[bytes, int]], other: dict[str, tuple[bytes, int]]
) -> None:
    with (
        tempfile.TemporaryDirectory() as folder,
        staged(Path(folder) / "a", watch=False) as left,
        staged(Path(folder) / "b", watch=False) as right,
    ):
        _write(left.root, one)
        first = CommitId(left.take())
        _write(left.root, other)
        second = CommitId(left.take())
        _write(right.root, other)
        elsewhere = CommitId(right.take())
        before = Side(store=left.store, commit=first)
        within = Side(store=left.store, commit=second)
        across = Side(store=right.store, commit=elsewhere)
        assert changes(before, across) == changes(before, within)
        assert differences(before, across) == differences(before, within)
        few = differences(before, within, limit=1)
        assert len(few.listed) + few.more == len(changes(before, within))
        assert few.listed == differences(before, within).listed[:1]
        assert not changes(within, across)
