"""A table as a value, and its forms: comma-separated, Markdown."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass, field

from agentrewind.display_text import printable

Value = str | int | float | None

SIMULATION = "Simulation: "
"""Stands before the title of everything that a simulation has a part in."""


@dataclass(frozen=True, slots=True)
class Column:
    """A head, and how many decimals numbers have that are no integers.

    `signed` shows a plus as well; `floor` shows what would be rounded to nothing as below the last decimal.
    """

    head: str
    digits: int = 1
    signed: bool = False
    floor: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """`name` is the stem of its files. An empty table has notes that say why."""

    name: str
    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Value, ...], ...]
    notes: tuple[str, ...] = field(default=())
    simulated: bool

    @property
    def heading(self) -> str:
        """The title, marked where it has to be."""
        return (SIMULATION if self.simulated else "") + self.title

    def texts(self) -> list[list[str]]:
        """Each row as people read it."""
        return [
            [text_of(value, column) for value, column in zip(row, self.columns, strict=True)]
            for row in self.rows
        ]

    def lefts(self) -> list[bool]:
        """Which columns hold text alone and stand at the left."""
        return [all(isinstance(row[n], str) for row in self.rows) for n in range(len(self.columns))]


def text_of(value: Value, column: Column) -> str:
    """A value as people read it; a dash where there is none.

    >>> text_of(0.00004, Column("p", 4, floor=True)), text_of(7.26, Column("gain", signed=True))
    ('<0.0001', '+7.3')
    """
    if value is None:
        return "–"
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, int):
        return f"{value:+d}" if column.signed else str(value)
    least = 10.0**-column.digits
    if column.floor and 0 <= value < least:
        return f"<{least:.{column.digits}f}"
    return f"{value:+.{column.digits}f}" if column.signed else f"{value:.{column.digits}f}"


def as_csv(table: Table) -> bytes:
    """The values in full, with a column `simulated`."""
    held = io.StringIO()
    out = csv.writer(held, lineterminator="\n")
    out.writerow([*(column.head for column in table.columns), "simulated"])
    for row in table.rows:
        out.writerow([*(_plain(value) for value in row), "yes" if table.simulated else "no"])
    return held.getvalue().encode("utf-8", "backslashreplace")


def _plain(value: Value) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        # a cell that a spreadsheet would take for a formula
        return "'" + value if value[:1] in "=+-@" and value else value
    return repr(round(value, 9)) if isinstance(value, float) else str(value)


def as_markdown(table: Table) -> str:
    """Heading, table and notes."""
    lines = [f"### {_cell(table.heading)}", ""]
    if table.rows:
        lines.append(_line([column.head for column in table.columns]))
        lines.append(_line(["---" if left else "---:" for left in table.lefts()]))
        lines += [_line(row) for row in table.texts()]
        lines.append("")
    lines += [line for note in table.notes for line in (_cell(note), "")]
    return "\n".join(lines)


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(_cell(cell) for cell in cells) + " |"


def _cell(text: str) -> str:
    escaped = printable(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return escaped.replace("|", "\\|").replace("\n", " ")
