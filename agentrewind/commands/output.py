"""How commands print: one JSON document for programs, plain lines for people."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

import click
import orjson

from agentrewind.display_text import printable
from agentrewind.records import Json

_F = TypeVar("_F", bound=Callable[..., object])


def json_option(command: _F) -> _F:
    """Adds `--json`, passed as `as_json`."""
    return click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")(command)


def emit(document: Json) -> None:
    """Print a document as the last line of standard output, in UTF-8 whatever the locale."""
    try:
        data = orjson.dumps(document)
    except (TypeError, orjson.JSONEncodeError):
        data = json.dumps(document).encode("ascii")
    click.echo(data)


def say(text: str = "", *, style: str = "") -> None:
    """Print text for people; whatever a terminal would obey is left out of it first."""
    put(styled(printable(text), style))


def put(line: str) -> None:
    """Print a line that is safe to print, at once or with the page that it is part of."""
    page = _page.get()
    if page is None:
        click.echo(line)
    else:
        page.append(line)


@contextmanager
def paged() -> Iterator[None]:
    """What is printed within this goes through the user's pager, on a terminal that it does not fit on.

    Elsewhere it is printed as it is. What was printed before an error is not lost.
    """
    if not (sys.stdout and sys.stdout.isatty() and sys.stdin and sys.stdin.isatty()):
        yield
        return
    lines: list[str] = []
    token = _page.set(lines)
    try:
        yield
    finally:
        _page.reset(token)
        _show(lines)


def _show(lines: list[str]) -> None:
    context = click.get_current_context(silent=True)
    if context is not None and context.color is False:
        lines = [click.unstyle(line) for line in lines]
    text = "".join(f"{line}\n" for line in lines)
    if text.count("\n") < shutil.get_terminal_size().lines:
        click.echo(text, nl=False)
    else:
        click.echo_via_pager(text)


_page: ContextVar[list[str] | None] = ContextVar("page", default=None)


def styled(text: str, style: str) -> str:
    """Printable text with a colour by what it means; click leaves it out where there is no terminal."""
    if not style:
        return text
    return click.style(
        text, fg=_COLOURS.get(style), bold=style in _BOLD or None, dim=style == "faint" or None
    )


_COLOURS = {"good": "green", "bad": "red", "rewind": "magenta", "note": "yellow"}
_BOLD = ("strong", "rewind")


def size(count: int) -> str:
    """A number of bytes for people.

    >>> size(999), size(1_500_000)
    ('999 B', '1.5 MB')
    """
    if count < 1000:
        return f"{count} B"
    amount, units = count / 1000, ["kB", "MB", "GB", "TB"]
    while amount >= 999.95 and len(units) > 1:
        amount /= 1000
        units.pop(0)
    return f"{amount:.1f} {units[0]}"


def amount(count: int | None) -> str:
    """A number for people, a dash for one that nobody knows.

    >>> amount(999), amount(1_234), amount(5_600_000), amount(None)
    ('999', '1.2k', '5.6M', '–')
    """
    if count is None:
        return "–"
    if count < 1000:
        return str(count)
    return f"{count / 1000:.1f}k" if count < 999_950 else f"{count / 1_000_000:.1f}M"


def counted(number: int, thing: str) -> str:
    """`1 file`, `2 files`."""
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"
