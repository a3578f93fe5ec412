"""Writes a report as one page of HTML that needs nothing else: no script, no reference to anywhere."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from agentrewind.display_text import printable
from runner.report.plots import Plot
from runner.report.table import Table

_LONG = 30
_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #1d1f24; background: #fff; margin: 2rem auto;
  max-width: 76rem; padding: 0 1rem; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.15rem; margin-top: 2.5rem; }
table { border-collapse: collapse; font-size: 0.85rem; font-variant-numeric: tabular-nums; }
th, td { padding: 0.25rem 0.7rem; border-bottom: 1px solid #dcdfe5; text-align: right; vertical-align: top; }
th { border-bottom: 2px solid #8a90a0; } .text { text-align: left; }
.wide { overflow-x: auto; } p.note { color: #555c6b; font-size: 0.85rem; max-width: 60rem; }
.simulation { background: #fff3cd; border: 1px solid #d9b64a; padding: 0.6rem 1rem; max-width: 60rem; }
figure { margin: 1.5rem 0; } img { max-width: 100%; } summary { cursor: pointer; }
"""
_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"

WARNING = (
    "These results are a simulation. A program that knows the tasks' own scripts stands in for the model, "
    "and its probabilities were chosen. They show that everything works together; they say nothing about any "
    "real model, and the distances between strategies follow from what was chosen."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Everything that is shown, in order. `facts` are sentences for the head."""

    title: str
    facts: tuple[str, ...]
    tables: tuple[Table, ...]
    plots: tuple[Plot, ...]
    simulated: bool


def render_page(report: Report) -> bytes:
    """The page, in UTF-8."""
    title = _text(("Simulation: " if report.simulated else "") + report.title)
    parts = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{title}</title><style>{_STYLE}</style></head><body>",
        f"<h1>{title}</h1>",
    ]
    if report.simulated:
        parts.append(f'<p class="simulation">{_text(WARNING)}</p>')
    parts += [f"<p>{_text(fact)}</p>" for fact in report.facts]
    parts += [_figure(plot) for plot in report.plots]
    parts += [_table(table) for table in report.tables]
    parts.append("</body></html>\n")
    return "\n".join(parts).encode("utf-8", "backslashreplace")


def _figure(plot: Plot) -> str:
    data = base64.b64encode(plot.svg).decode()
    return (
        f'<figure id="{_text(plot.name)}">'
        f'<img alt="{_text(plot.title)}" src="data:image/svg+xml;base64,{data}">'
        f"<figcaption>{_text(plot.title)}. {_text(plot.caption)}</figcaption></figure>"
    )


def _table(table: Table) -> str:
    body = _rows(table)
    if len(table.rows) > _LONG:
        body = f"<details><summary>{len(table.rows)} rows</summary>{body}</details>"
    notes = "".join(f'<p class="note">{_text(note)}</p>' for note in table.notes)
    return f'<section id="{_text(table.name)}"><h2>{_text(table.heading)}</h2>{body}{notes}</section>'


def _rows(table: Table) -> str:
    texts = table.lefts()
    heads = [_cell("th", column.head, left=left) for column, left in zip(table.columns, texts, strict=True)]
    rows = [
        "<tr>"
        + "".join(_cell("td", text, left=left) for text, left in zip(row, texts, strict=True))
        + "</tr>"
        for row in table.texts()
    ]
    return (
        '<div class="wide"><table><thead><tr>'
        + "".join(heads)
        + "</tr></thead><tbody>"
        + "".join(rows)
        + "</tbody></table></div>"
    )


def _cell(tag: str, text: str, *, left: bool) -> str:
    return f"<{tag}{' class=text' if left else ''}>{_text(text)}</{tag}>"


def _text(text: str) -> str:
    return escape(printable(text))


def render_markdown(report: Report, images: Sequence[str]) -> bytes:
    """The same for a repository: headings, tables, and the plots as files beside it."""
    from runner.report.table import as_markdown

    parts = [f"# {'Simulation: ' if report.simulated else ''}{report.title}", ""]
    parts += [f"**{WARNING}**", ""] if report.simulated else []
    parts += [line for fact in report.facts for line in (fact, "")]
    for plot, image in zip(report.plots, images, strict=True):
        parts += [f"![{plot.title}]({image})", "", f"*{plot.title}. {plot.caption}*", ""]
    parts += [as_markdown(table) for table in report.tables if len(table.rows) <= _LONG]
    return ("\n".join(parts).rstrip() + "\n").encode("utf-8", "backslashreplace")
