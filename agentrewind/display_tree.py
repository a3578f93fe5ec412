"""Lays a run's story out as a tree: the current path in one column, abandoned branches set in. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace

from agentrewind.display_story import Entry, Sort, Story
from agentrewind.display_text import columns, one_line, shorten
from agentrewind.records import ForkPoint, RecordUid

STYLES = {
    Sort.ANSWER: "",
    Sort.CALL: "",
    Sort.ACCEPTED: "good",
    Sort.REJECTED: "bad",
    Sort.REWIND: "rewind",
    Sort.MEMORY: "rewind",
    Sort.TROUBLE: "bad",
    Sort.NOTE: "note",
    Sort.END: "strong",
}
_ASCII = str.maketrans("│├─╭╰↶…✓✗—“”", '|+-++<~vx-""')
_MARKS = {Sort.ACCEPTED: "✓ ", Sort.REJECTED: "✗ ", Sort.REWIND: "↶ "}
_DEEP = (Sort.CALL, Sort.MEMORY)


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One line for a terminal, safe to print. `outcome` is shown faint, or as bad; `dim`: abandoned."""

    rail: str
    text: str
    outcome: str = ""
    style: str = ""
    failed: bool = False
    dim: bool = False

    def plain(self) -> str:
        """Without colours."""
        return f"{self.rail}{self.text}{'  ' if self.outcome else ''}{self.outcome}"


def to_ascii(text: str) -> str:
    """Lines and marks of the tree for a terminal that knows nothing else."""
    return text.translate(_ASCII)


def tree(
    story: Story, *, width: int, live: bool = False, only: Collection[RecordUid] | None = None
) -> list[Line]:
    """All lines of the run, the current path last; with `only` just these nodes, where they stand.

    `live` tells that calls without an end are still running; otherwise they are called unfinished.
    """
    return list(_Layout(story, width=width, live=live, only=only).lines())


def entry_line(entry: Entry, *, width: int, rail: str = "", live: bool = False) -> Line:
    """One entry on one line of at most `width` columns."""
    indent = "     " if entry.sort in _DEEP else ""
    name = f"{one_line(entry.uid)}  " if entry.uid and entry.sort is not Sort.TROUBLE else ""
    text = _MARKS.get(entry.sort, "") + (_first_line(entry.text) if entry.sort is Sort.CALL else entry.text)
    outcome = entry.outcome
    if entry.running:
        outcome = outcome or ("running" if live else "unfinished")
    if entry.changed:
        outcome += f"{', ' if outcome else ''}{_changes(entry)}"
    room = max(20, width - columns(rail) - len(indent) - len(name))
    text, outcome = _share(text, outcome, room)
    return Line(
        rail=rail,
        text=f"{indent}{name}{text}",
        outcome=outcome,
        style=STYLES[entry.sort],
        failed=entry.failed or entry.sort is Sort.REJECTED,
    )


def _changes(entry: Entry) -> str:
    count = f"{entry.changed} path{'' if entry.changed == 1 else 's'} changed"
    names = ", ".join(entry.paths)
    rest = entry.changed - len(entry.paths)
    return f"{count}: {names}{f', … {rest} more' if rest else ''}" if names else count


def _share(text: str, outcome: str, room: int) -> tuple[str, str]:
    """Both cut so that they fit beside each other; each may take what the other leaves."""
    if not outcome:
        return shorten(text, room), ""
    least = max(24, room // 3)
    outcome = shorten(outcome, max(least, room - columns(one_line(text)) - 2))
    return shorten(text, max(12, room - columns(outcome) - 2)), outcome


def _first_line(text: str) -> str:
    first, _, rest = text.strip().partition("\n")
    return f"{first} …" if rest.strip() else first


class _Layout:
    def __init__(
        self, story: Story, *, width: int, live: bool, only: Collection[RecordUid] | None = None
    ) -> None:
        self._story = story
        self._width = width
        self._live = live
        self._only = only
        self._chain = _chain(story)
        self._beside: dict[tuple[int, RecordUid | None, bool], list[int]] = {}
        for number, branch in sorted(story.branches.items()):
            if branch.fork is not None and number not in self._chain:
                self._beside.setdefault(_place(story, branch.fork), []).append(number)

    def lines(self) -> Iterator[Line]:
        for number in self._chain:
            follower = self._follower(number)
            cut = self._cut(number, self._story.branches[follower].fork if follower is not None else None)
            entries = self._story.branches[number].entries
            yield from self._run(number, entries[:cut], depth=0)
            if entries[cut:]:
                yield from self._abandoned(number, entries[cut:], depth=1)

    def _follower(self, number: int) -> int | None:
        place = self._chain.index(number) + 1
        return self._chain[place] if place < len(self._chain) else None

    def _cut(self, number: int, fork: ForkPoint | None) -> int:
        entries = self._story.branches[number].entries
        if fork is None:
            return len(entries)
        if fork.record_uid is None:
            return 0
        for index, entry in enumerate(entries):
            if entry.uid == fork.record_uid:
                return index + 1 if fork.inclusive else index
        return len(entries)

    def _abandoned(self, number: int, entries: list[Entry], *, depth: int) -> Iterator[Line]:
        rail = "│ " * depth
        inner = list(self._run(number, entries, depth=depth))
        if not inner and self._only is not None:
            return
        yield Line(rail=rail[:-2] + "│ ╭─ ", text="abandoned", style="faint")
        yield from (replace(line, dim=True) for line in inner)
        yield Line(rail=rail[:-2] + "│ ╰─", text="", style="faint")

    def _run(self, number: int, entries: list[Entry], *, depth: int) -> Iterator[Line]:
        rail = "│ " * depth
        yield from self._besides(number, None, inclusive=True, depth=depth)
        for entry in entries:
            yield from self._besides(number, entry.uid, inclusive=False, depth=depth)
            mark = "│ " if entry.sort in _DEEP else "├─ "
            yield from self._entry(entry, rail + mark)
            yield from self._besides(number, entry.uid, inclusive=True, depth=depth)

    def _entry(self, entry: Entry, rail: str) -> Iterator[Line]:
        if self._only is not None and entry.uid not in self._only:
            return
        if entry.sort is not Sort.MEMORY:
            yield entry_line(entry, width=self._width, rail=rail, live=self._live)
            return
        room = max(20, self._width - columns(rail) - 5)
        for text in entry.text.splitlines():
            if text.strip():
                yield Line(rail=rail, text="     " + shorten(text, room), style="rewind")

    def _besides(self, number: int, uid: RecordUid | None, *, inclusive: bool, depth: int) -> Iterator[Line]:
        if uid is None and not inclusive:
            return
        for other in self._beside.get((number, uid, inclusive), ()):
            yield from self._abandoned(other, self._story.branches[other].entries, depth=depth + 1)


def _chain(story: Story) -> list[int]:
    """The segments that lead to the current one, oldest first; a fresh start hides nothing before it."""
    found = [story.head] if story.branches else []
    while found:
        branch = story.branches.get(found[-1])
        if branch is None:
            found.pop()
            break
        if branch.fork is None:
            earlier = [number for number in story.branches if number < found[-1]]
            if not earlier:
                break
            found.append(max(earlier))
            continue
        number = _place(story, branch.fork)[0]
        if number in found or number not in story.branches:
            break
        found.append(number)
    return found[::-1]


def _place(story: Story, fork: ForkPoint) -> tuple[int, RecordUid | None, bool]:
    """Where a branch leaves: the segment that really holds the node, which may be an older one."""
    if fork.record_uid is None:
        return fork.segment, None, True
    return story.home.get(fork.record_uid, fork.segment), fork.record_uid, fork.inclusive
