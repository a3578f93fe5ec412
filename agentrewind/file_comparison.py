"""Compares two versions of a file: lines of text as a unified diff, everything else by what it is. Pure."""

from __future__ import annotations

import difflib
import stat
from dataclasses import dataclass
from enum import StrEnum

from agentrewind.records import JsonObject

LONGEST_BYTES = 1 << 20
LONGEST_LINES = 10_000
_CONTEXT = 3
_NO_NEWLINE = "\\ No newline at end of file"


class Form(StrEnum):
    """What a comparison shows."""

    TEXT = "text"
    BINARY = "binary"
    LONG = "long"
    LINK = "link"
    DIRECTORY = "directory"


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """A path of one snapshot.

    Attributes:
        form: what stands there: `DIRECTORY`, `LINK`, or anything else for a file.
        mode: permission bits.
        size: bytes of a file, or of a link's target.
        data: the bytes; None where there are too many to compare.
    """

    form: Form
    mode: int
    size: int
    data: bytes | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FileDifference:
    """How a path differs; None stands for a side on which it is not.

    Attributes:
        status: A(dded), M(odified), D(eleted) or T (another type).
        lines: the unified diff without its two title lines, without line feeds; none where `form` is no text.
        added, removed: lines of text.
    """

    status: str
    path: bytes
    form: Form
    size_before: int | None
    size_after: int | None
    mode_before: int | None
    mode_after: int | None
    lines: tuple[str, ...] = ()
    added: int = 0
    removed: int = 0

    def to_json(self) -> JsonObject:
        """As `diff --json` and `show --json` print it; modes in octal digits."""
        return {
            "status": self.status,
            "path": self.path.decode("utf-8", "backslashreplace"),
            "form": self.form.value,
            "size_before": self.size_before,
            "size_after": self.size_after,
            "mode_before": _octal(self.mode_before),
            "mode_after": _octal(self.mode_after),
            "added": self.added,
            "removed": self.removed,
            "lines": list(self.lines),
        }


def compare_versions(
    path: bytes, status: str, before: Version | None, after: Version | None
) -> FileDifference:
    """How the two versions of a path differ; at least one is there."""
    form = _form(before, after)
    lines: tuple[str, ...] = ()
    if form in (Form.TEXT, Form.LINK):
        lines = unified(_text(before), _text(after))
    return FileDifference(
        status=status,
        path=path,
        form=form,
        size_before=before.size if before else None,
        size_after=after.size if after else None,
        mode_before=before.mode if before else None,
        mode_after=after.mode if after else None,
        lines=lines,
        added=sum(line.startswith("+") for line in lines),
        removed=sum(line.startswith("-") for line in lines),
    )


def unified(before: str, after: str) -> tuple[str, ...]:
    r"""The hunks of a unified diff, line by line; a missing line feed at the end is told as git tells it.

    >>> unified("a\nb\n", "a\nc\n")
    ('@@ -1,2 +1,2 @@', ' a', '-b', '+c')
    """
    made = difflib.unified_diff(split_lines(before), split_lines(after), lineterm="", n=_CONTEXT)
    found: list[str] = []
    for line in list(made)[2:]:
        if line.endswith("\n"):
            found.append(line[:-1])
        else:
            found += [line] if line.startswith("@@") else [line, _NO_NEWLINE]
    return tuple(found)


def split_lines(text: str) -> list[str]:
    r"""Lines with their line feeds; nothing else ends a line.

    >>> split_lines("a\r\nb\fc\nd")
    ['a\r\n', 'b\x0cc\n', 'd']
    """
    *whole, last = text.split("\n")
    return [f"{line}\n" for line in whole] + ([last] if last else [])


def as_text(data: bytes) -> str | None:
    """The text, None where the bytes are no UTF-8 or hold a NUL."""
    if b"\0" in data:
        return None
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return None


def _form(before: Version | None, after: Version | None) -> Form:
    sides = [side for side in (before, after) if side is not None]
    forms = {side.form for side in sides}
    if len(forms & {Form.LINK, Form.DIRECTORY}) and len(sides) == 1:
        return sides[0].form
    files = [side for side in sides if side.form not in (Form.LINK, Form.DIRECTORY)]
    if not files:
        return Form.LINK if Form.LINK in forms else Form.DIRECTORY
    if any(side.data is None for side in files):
        return Form.LONG
    if any(as_text(side.data or b"") is None for side in files):
        return Form.BINARY
    if any((side.data or b"").count(b"\n") >= LONGEST_LINES for side in files):
        return Form.LONG
    return Form.TEXT


def _text(side: Version | None) -> str:
    if side is None or side.data is None or side.form is Form.DIRECTORY:
        return ""
    return side.data.decode("utf-8", "backslashreplace")


def _octal(mode: int | None) -> str | None:
    return None if mode is None else f"{stat.S_IMODE(mode):04o}"
