"""Lays the comparison of two texts, or of two versions of a file, out as numbered lines. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from agentrewind.file_comparison import FileDifference, Form, Version, compare_versions, unified
from agentrewind.view.visible import visible

LONGEST_LINE = 2000
MOST_LINES = 1500
_MOST_COMPARED = 10_000
_HUNK = re.compile(r"@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@")


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A line of a comparison. `sort`: `same`, `gone`, `new` or `skip`; `old` and `now` are line numbers."""

    sort: str
    text: str
    old: int | None = None
    now: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Diff:
    """What differs; `remarks` say what lines cannot, `hidden` counts lines beyond the limit."""

    lines: tuple[Line, ...] = ()
    added: int = 0
    removed: int = 0
    hidden: int = 0
    remarks: tuple[str, ...] = ()


def file_diff(path: bytes, before: Version | None, after: Version | None) -> Diff:
    """How two versions of a file differ; None for one that is not there."""
    if before is None and after is None:
        return Diff(remarks=("there is no such file in either snapshot",))
    status = "A" if before is None else "D" if after is None else "M"
    found = compare_versions(path, status, before, after)
    remarks = tuple(_remarks(found))
    if not found.lines and not remarks:
        remarks = ("an empty file",) if status != "M" else ("its contents are the same",)
    return _numbered(found.lines, remarks=remarks)


def text_diff(old: str, now: str) -> Diff:
    """How two texts differ; texts that are too long to be aligned are shown one after the other."""
    if max(old.count("\n"), now.count("\n")) > _MOST_COMPARED:
        lines = [*(f"-{line}" for line in old.split("\n")), *(f"+{line}" for line in now.split("\n"))]
        return _numbered(["@@ -1 +1 @@", *lines], remarks=("too long to be aligned line by line",))
    return _numbered(unified(_ended(old), _ended(now)))


def _ended(text: str) -> str:
    """Whether a text of a message ends its last line tells nobody anything."""
    return text if not text or text.endswith("\n") else f"{text}\n"


def _remarks(found: FileDifference) -> Iterator[str]:
    if found.form is not Form.TEXT:
        word = {Form.LONG: "too long to compare", Form.BINARY: "not text", Form.LINK: "a symbolic link"}
        sizes = [f"{size:,} bytes" for size in (found.size_before, found.size_after) if size is not None]
        told = " before, ".join(sizes) + (" after" if len(sizes) > 1 else "")
        yield "a directory" if found.form is Form.DIRECTORY else f"{word[found.form]}: {told}"
    modes = found.mode_before, found.mode_after
    if None not in modes and modes[0] != modes[1]:
        yield f"mode {modes[0]:04o} became {modes[1]:04o}"


def _numbered(lines: Sequence[str], *, remarks: tuple[str, ...] = ()) -> Diff:
    shown: list[Line] = []
    old = now = added = removed = 0
    for line in lines:
        mark, text = line[:1], line[1:]
        if (hunk := _HUNK.match(line)) is not None:
            skipped = int(hunk[1]) - 1 - old
            old, now = max(0, int(hunk[1]) - 1), max(0, int(hunk[2]) - 1)
            if skipped > 0:
                shown.append(Line(sort="skip", text=f"{skipped} equal lines"))
            continue
        if mark == "\\":
            shown.append(Line(sort="skip", text="no line break at the end"))
            continue
        old, now = old + (mark != "+"), now + (mark != "-")
        added, removed = added + (mark == "+"), removed + (mark == "-")
        shown.append(_line(mark, text, old, now))
    return Diff(
        lines=tuple(shown[:MOST_LINES]),
        added=added,
        removed=removed,
        hidden=max(0, len(shown) - MOST_LINES),
        remarks=remarks,
    )


def _line(mark: str, text: str, old: int, now: int) -> Line:
    if len(text) > LONGEST_LINE:
        text = f"{text[:LONGEST_LINE]} … {len(text) - LONGEST_LINE:,} more characters"
    sort = {"+": "new", "-": "gone"}.get(mark, "same")
    return Line(
        sort=sort,
        text=visible(text).text,
        old=old if sort != "new" else None,
        now=now if sort != "gone" else None,
    )
