"""Bisection finds what looking everywhere finds, and blame gives each line to the state that put it there."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from hypothesis import given
from hypothesis import strategies as st

from agentrewind.bisection import Judgement, Outcome, bisect
from agentrewind.blaming import Origin, blame
from agentrewind.file_comparison import Form, Version
from agentrewind.path_states import State
from tests import records


def _states(count: int) -> list[State]:
    return [
        State(commit=records.commit(place), node=records.uid(place) if place else None)
        for place in range(count)
    ]


def _judge(passes: Sequence[bool]) -> tuple[list[str], Callable[[State], Judgement]]:
    asked: list[str] = []

    def judge(state: State) -> Judgement:
        asked.append(state.commit)
        passed = passes[int(state.commit, 16)]
        return Judgement(passed=passed, exit_code=0 if passed else 1)

    return asked, judge


@given(st.integers(1, 300), st.integers(0, 300))
def test_halves_find_what_looking_everywhere_finds(count: int, broken: int) -> None:
    passes = [place < broken for place in range(count)]
    states = _states(count)
    asked, judge = _judge(passes)
    found = bisect(states, judge)
    whole = bisect(states, _judge(passes)[1], every=True)
    assert (found.outcome, found.first) == (whole.outcome, whole.first)
    assert found.first == (states[broken] if 0 < broken < count else None)
    assert len(asked) == len(set(asked)) <= 2 + math.ceil(math.log2(count))
    assert found.turns == whole.turns == 0


@given(st.lists(st.booleans(), min_size=1, max_size=12))
def test_looking_everywhere_tells_the_whole_curve(passes: list[bool]) -> None:
    states = _states(len(passes))
    asked, judge = _judge(passes)
    found = bisect(states, judge, every=True)
    assert asked == [state.commit for state in states]
    assert [judged.passed for _, judged in found.judged] == passes
    assert found.complete
    text = "".join("+" if each else "-" for each in passes)
    assert found.turns == text.count("-+")
    first = text.find("-")
    assert found.outcome is (
        Outcome.NEVER_FAILS if first < 0 else Outcome.FOUND if first else Outcome.FAILS_AT_START
    )


class _History:
    """Versions of files, by place and path."""

    def __init__(self, states: Sequence[dict[bytes, bytes]]) -> None:
        self._states = states

    def version(self, place: int, path: bytes) -> Version | None:
        data = self._states[place].get(path)
        return None if data is None else Version(form=Form.TEXT, mode=0o644, size=len(data), data=data)

    def gone(self, place: int) -> list[bytes]:
        return sorted(self._states[place - 1].keys() - self._states[place].keys())


_EDITS = st.lists(
    st.lists(st.tuples(st.booleans(), st.integers(0, 20)), min_size=1, max_size=4), min_size=1, max_size=8
)


@given(_EDITS, st.booleans())
def test_each_line_belongs_to_the_state_that_put_it_there(
    edits: list[list[tuple[bool, int]]], renamed: bool
) -> None:
    """Lines that are all different are put in and taken out; a file of the same lines may change its name."""
    lines = [Origin(text=f"line 0.{number}\n", place=0) for number in range(3)]
    states = [{b"file": _data(lines)}]
    for place, edit in enumerate(edits, 1):
        for number, (put, at) in enumerate(edit):
            if put:
                lines.insert(at % (len(lines) + 1), Origin(text=f"line {place}.{number}\n", place=place))
            elif len(lines) > 1:
                lines.pop(at % len(lines))
        states.append({b"file": _data(lines)})
    name = b"file"
    if renamed:
        name = b"other"
        states.append({name: _data(lines)})
    found = blame(_History(states), name, last=len(states) - 1)
    assert found is not None
    assert list(found.lines) == lines
    assert [(each.before, each.after) for each in found.renames] == ([(b"file", b"other")] if renamed else [])


def _data(lines: Sequence[Origin]) -> bytes:
    return "".join(line.text for line in lines).encode()


_CONTENTS = st.sampled_from([None, b"", b"a\n", b"a\nb\n", b"b\na\n", b"a", b"\0", b"c\nd\ne\n"])


@given(st.lists(st.tuples(_CONTENTS, _CONTENTS), min_size=1, max_size=6))
def test_blame_gives_back_the_file_whatever_happened_to_it(
    contents: list[tuple[bytes | None, bytes | None]],
) -> None:
    states = [
        {path: data for path, data in zip((b"one", b"two"), pair, strict=True) if data is not None}
        for pair in contents
    ]
    last = len(states) - 1
    found = blame(_History(states), b"one", last=last)
    data = states[last].get(b"one")
    if data is None:
        assert found is None or found.deleted is not None
        assert (found is None) is not any(b"one" in state for state in states)
        return
    assert found is not None
    assert found.form is (Form.BINARY if b"\0" in data else Form.TEXT)
    assert found.form is Form.BINARY or _data(found.lines) == data
    for line in found.lines:
        # the line stood there, under this name or one that became it
        assert any(line.text.encode() in version for version in states[line.place].values())
    assert found.written is not None
    assert all(line.place <= found.written for line in found.lines)
