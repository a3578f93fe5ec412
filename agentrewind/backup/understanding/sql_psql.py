"""Splits what psql is given into SQL and psql's own backslash commands."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

_TOKEN = re.compile(
    r"""
    (?P<string>[eE]'(?:[^'\\]|\\.|'')*' | '(?:[^']|'')*' | "(?:[^"]|"")*")
  | (?P<dollar>\$(?P<tag>[A-Za-z_\u0080-\uffff][\w\u0080-\uffff]*)?\$.*?\$(?P=tag)\$ | \$\$.*?\$\$)
  | (?P<line>--[^\n]*)
  | (?P<block>/\*)
  | (?P<meta>\\)
  | (?P<end>;)
  | (?P<word>[\w\u0080-\uffff]+)
  | (?P<other>.)
    """,
    re.VERBOSE | re.DOTALL,
)
_COPY_IN = re.compile(r"\s*copy\b.*\bfrom\s+stdin\b", re.IGNORECASE | re.DOTALL)
_DATA_END = re.compile(r"^\\\.[ \t]*\r?$", re.MULTILINE)


@dataclass(slots=True)
class PsqlText:
    """SQL apart from psql's commands (without their backslash).

    `problem` says why the text could not be split, empty where it could. `data`: it held rows for COPY.
    """

    sql: str = ""
    commands: list[str] = field(default_factory=list)
    data: bool = False
    problem: str = ""


def split_psql(text: str) -> PsqlText:
    """SQL and backslash commands of `text`. Rows after COPY … FROM STDIN are left out."""
    found = PsqlText()
    sql: list[str] = []
    start, position = 0, 0
    while position < len(text):
        token = _TOKEN.match(text, position)
        assert token is not None
        piece, position = token.group(), token.end()
        if token.group("block"):
            position = _comment_end(text, position)
            piece = " "
        elif token.group("line"):
            piece = " "
        elif token.group("meta"):
            piece, position = _command(text, position, found)
        elif piece in ("'", '"'):
            found.problem = "a quote is not closed"
        sql.append(piece)
        if piece == ";":
            position = _skip_data("".join(sql[start:]), text, position, found)
            start = len(sql)
    found.sql = "".join(sql)
    return found


def _command(text: str, position: int, found: PsqlText) -> tuple[str, int]:
    """Take one backslash command; it ends with the line or before the next backslash at a word's start."""
    if text.startswith(";", position):
        return ";", position + 1
    line_end = text.find("\n", position)
    line_end = len(text) if line_end < 0 else line_end
    line = text[position:line_end]
    name = re.match(r"[A-Za-z_]+|.", line)
    takes_line = name is not None and name.group() in ("!", "copy", "h", "help", "ef", "ev", "sf", "sv")
    cut = -1 if takes_line else _next_command(line)
    if cut >= 0:
        line, line_end = line[:cut], position + cut
    found.commands.append(line.strip())
    # a command such as \g sends what stands before it, so what follows is another statement
    return ";\n", line_end


def _next_command(line: str) -> int:
    match = re.search(r"\s(\\)", line)
    return match.start(1) if match else -1


def _comment_end(text: str, position: int) -> int:
    depth = 1
    for mark in re.finditer(r"/\*|\*/", text[position:]):
        depth += 1 if mark.group() == "/*" else -1
        if depth == 0:
            return position + mark.end()
    return len(text)


def _skip_data(statement: str, text: str, position: int, found: PsqlText) -> int:
    if not _COPY_IN.match(statement):
        return position
    found.data = True
    end = _DATA_END.search(text, position)
    return end.end() if end else len(text)
