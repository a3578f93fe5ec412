"""How commands print: one JSON document for programs, plain lines for people."""

from __future__ import annotations

import json
from collections.abc import Callable
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
    click.echo(styled(printable(text), style))


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


def counted(number: int, thing: str) -> str:
    """`1 file`, `2 files`."""
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"
