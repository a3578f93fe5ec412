"""The templates, with everything in them escaped, and the words that they use for figures."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from agentrewind.commands.output import counted, size
from agentrewind.display_story import Sort
from agentrewind.display_text import file_name
from agentrewind.errors import InternalError
from agentrewind.view.rows import Row
from agentrewind.view.visible import title

HERE = Path(__file__).parent
STATIC = HERE / "static"

_MARKS = {
    Sort.ANSWER: "",
    Sort.CALL: "",
    Sort.ACCEPTED: "✓",
    Sort.REJECTED: "✗",
    Sort.REWIND: "↶",
    Sort.MEMORY: "✎",
    Sort.TROUBLE: "!",
    Sort.NOTE: "·",
    Sort.END: "■",
}


@cache
def environment() -> Environment:
    """The templates; what is undefined is an error."""
    found = Environment(
        loader=FileSystemLoader(HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.filters |= {
        "counted": counted,
        "duration": duration,
        "file_name": file_name,
        "mark": mark,
        "offset": offset,
        "row_class": row_class,
        "size": size,
        "stylesheet": stylesheet,
        "title": title,
    }
    return found


def stylesheet(text: str) -> Markup:
    """Our own style sheet, as it stands between the tags of a page; nothing else may pass here."""
    if "<" in text:
        raise InternalError(ValueError("a style sheet holds no angle bracket"))
    return Markup(text)


def duration(milliseconds: int | None) -> str:
    """How long something took, in three or four characters.

    >>> [duration(each) for each in (7, 812, 4137, 75_000, 7_260_000, None)]
    ['7ms', '812ms', '4.1s', '1m15s', '2h01m', '']
    """
    if milliseconds is None:
        return ""
    if milliseconds < 1000:
        return f"{milliseconds}ms"
    seconds = milliseconds / 1000
    if seconds < 59.95:
        return f"{seconds:.1f}s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}m{rest:02}s" if minutes < 60 else f"{minutes // 60}h{minutes % 60:02}m"


def offset(seconds: float | None) -> str:
    """When something happened, counted from the beginning of the run.

    >>> offset(3.26), offset(75.5), offset(7265)
    ('0:03.3', '1:15.5', '2:01:05')
    """
    if seconds is None:
        return ""
    sign, seconds = ("-", -seconds) if seconds < 0 else ("", seconds)
    tenths = round(seconds * 10)
    minutes, rest = divmod(tenths, 600)
    if minutes < 60:
        return f"{sign}{minutes}:{rest / 10:04.1f}"
    return f"{sign}{minutes // 60}:{minutes % 60:02}:{rest // 10:02}"


def mark(row: Row) -> str:
    """The sign before a row."""
    return _MARKS[row.entry.sort]


def row_class(row: Row) -> str:
    """What decides a row's colours."""
    sort = str(row.entry.sort)
    return (
        f"{sort} bad" if row.entry.failed and row.entry.sort in (Sort.CALL, Sort.ANSWER, Sort.END) else sort
    )
