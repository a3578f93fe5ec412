"""Works out which state of a path last wrote each line of a file. Pure: it is given a way to look into them.

A file that appears while another one of the same or much the same contents disappears counts as renamed, and
its lines keep their origin.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from agentrewind.file_comparison import Form, Version, as_text, split_lines

ALIKE = 0.6
"""From this share of equal lines on a file that appears is taken for one that disappears, renamed."""

_AFFORDABLE = 10_000_000


class Looks(Protocol):
    """Looks into the states of a path by their place in it."""

    def version(self, place: int, path: bytes) -> Version | None:
        """What stands at a path in a state, None where nothing does."""
        ...

    def gone(self, place: int) -> Sequence[bytes]:
        """The files that the state before has and this one has not."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """A line and the place of the state that last wrote it; 0 is the state that the run found."""

    text: str
    place: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Rename:
    """At `place` the file got its present name."""

    place: int
    before: bytes
    after: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Blame:
    """What is known of a file in the last state.

    Attributes:
        form: `text`, or why there are no lines.
        lines: empty where the form is no text.
        written: the place of the state that last wrote the file as a whole.
        renames: oldest first.
        deleted: where the file is not there any more, the place of the state that has it no more.
    """

    form: Form
    lines: tuple[Origin, ...] = ()
    written: int | None = None
    renames: tuple[Rename, ...] = ()
    deleted: int | None = None


def blame(looks: Looks, path: bytes, *, last: int) -> Blame | None:
    """Who wrote the file as it is in state `last`; None where no state up to it has the file."""
    versions = [looks.version(place, path) for place in range(last + 1)]
    if versions[last] is None:
        there = [place for place, version in enumerate(versions) if version is not None]
        return Blame(form=Form.TEXT, deleted=there[-1] + 1) if there else None
    return _traced(looks, path, versions, last)


def _traced(looks: Looks, path: bytes, versions: Sequence[Version | None], last: int) -> Blame:
    first = last
    while first > 0 and versions[first - 1] is not None:
        first -= 1
    origin = _renamed(looks, versions[first], first) if first else None
    renames: tuple[Rename, ...] = ()
    lines: list[Origin] = []
    written = first
    if origin is not None:
        before = blame(looks, origin, last=first - 1)
        assert before is not None
        lines, written = list(before.lines), before.written if before.written is not None else first
        renames = (*before.renames, Rename(place=first, before=origin, after=path))
    known = looks.version(first - 1, origin) if origin is not None else None
    for place in range(first, last + 1):
        version = versions[place]
        assert version is not None
        if known is None or version.data != known.data or version.data is None or version.form != known.form:
            if known is None or _differs(known, version):
                written = place
            lines = _rewritten(lines, version, place)
        known = version
    final = versions[last]
    assert final is not None
    form = form_of(final)
    kept = tuple(lines) if form is Form.TEXT else ()
    return Blame(form=form, lines=kept, written=written, renames=renames)


def form_of(version: Version) -> Form:
    """What a version is, as far as lines are concerned."""
    if version.form in (Form.DIRECTORY, Form.LINK):
        return version.form
    if version.data is None:
        return Form.LONG
    return Form.TEXT if as_text(version.data) is not None else Form.BINARY


def _differs(one: Version, other: Version) -> bool:
    return (one.form, one.size, one.data) != (other.form, other.size, other.data)


def _rewritten(lines: list[Origin], version: Version, place: int) -> list[Origin]:
    """The lines of this version; those that were there keep their origin."""
    if form_of(version) is not Form.TEXT:
        return []
    now = split_lines((version.data or b"").decode())
    old = [line.text for line in lines]
    head = _equal(old, now)
    tail = _equal(old[head:][::-1], now[head:][::-1])
    inner_old, inner_now = old[head : len(old) - tail], now[head : len(now) - tail]
    # exact as long as that is affordable: its time grows with the product where lines repeat
    hasty = len(inner_old) * len(inner_now) > _AFFORDABLE
    matcher = difflib.SequenceMatcher(None, inner_old, inner_now, autojunk=hasty)
    made = lines[:head]
    for tag, a, b, c, d in matcher.get_opcodes():
        if tag == "equal":
            made += lines[head + a : head + b]
        else:
            made += [Origin(text=text, place=place) for text in inner_now[c:d]]
    return made + lines[len(lines) - tail :]


def _equal(one: Sequence[str], other: Sequence[str]) -> int:
    """How many lines at the beginning are the same."""
    for place, (left, right) in enumerate(zip(one, other, strict=False)):
        if left != right:
            return place
    return min(len(one), len(other))


def _renamed(looks: Looks, version: Version | None, place: int) -> bytes | None:
    """The file that became this one, None where it is new."""
    if version is None or form_of(version) is Form.DIRECTORY or not version.data:
        return None
    best: tuple[float, bytes] | None = None
    for candidate in looks.gone(place):
        share = _alike(looks.version(place - 1, candidate), version)
        if share >= ALIKE and (best is None or share > best[0]):
            best = share, candidate
    return None if best is None else best[1]


def _alike(old: Version | None, now: Version) -> float:
    if old is None or old.form != now.form or old.data is None or now.data is None:
        return 0.0
    if old.data == now.data:
        return 1.0
    if form_of(old) is not Form.TEXT or form_of(now) is not Form.TEXT:
        return 0.0
    before, after = split_lines(old.data.decode()), split_lines(now.data.decode())
    matcher = difflib.SequenceMatcher(None, before, after)
    if min(matcher.real_quick_ratio(), matcher.quick_ratio()) < ALIKE:
        return 0.0
    return matcher.ratio()
