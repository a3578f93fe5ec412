"""What the viewer answers under each of its addresses: pages, fragments of pages, and a person's actions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response

from agentrewind.errors import UsageError
from agentrewind.records import ToolNode
from agentrewind.snapshot_comparison import Side, version
from agentrewind.view.about import about
from agentrewind.view.comparing import compare
from agentrewind.view.diff_lines import file_diff
from agentrewind.view.files import path_of
from agentrewind.view.filtering import Found, Wanted, found_in
from agentrewind.view.graph import HEIGHT, pictures
from agentrewind.view.overview import TICK, TOP, WIDTH, overview_of
from agentrewind.view.pane import pane_of
from agentrewind.view.parts import PIECE, messages_of, piece, text_of
from agentrewind.view.reading import Reading
from agentrewind.view.rows import Row

if TYPE_CHECKING:
    from agentrewind.view.application import Viewer

CHUNK = 200
"""Rows that are fetched at a time."""

RUNS = 30
"""Runs on a page of the list."""


def _reading(viewer: Viewer, request: Request) -> Reading:
    return viewer.library.read(request.path_params["run"])


def _row(reading: Reading, key: str) -> Row:
    found = reading.rows.find(key)
    if found is None:
        reading.timeline.node(key)  # raises with the nearest ids
        raise UsageError(f"the run has nothing under {key!r}")
    return found


def _number(request: Request, name: str) -> int:
    given = request.query_params.get(name, "0")
    if not given.isdecimal() or len(given) > 12:
        raise UsageError(f"{name} is no number")
    return int(given)


# --- pages ---


def runs(viewer: Viewer, request: Request) -> Response:
    """All runs."""
    every = viewer.library.store.runs()
    return viewer.render(request, "runs.html", count=len(every), chunk=RUNS, home=str(viewer.library.home))


def run_rows(viewer: Viewer, request: Request) -> Response:
    """Some rows of the list of runs."""
    start = _number(request, "from")
    return viewer.render(request, "run_rows.html", rows=viewer.list.rows(start, RUNS))


def run_page(viewer: Viewer, request: Request) -> Response:
    """One run, with a node of it where the address names one."""
    reading = _reading(viewer, request)
    key = request.query_params.get("node", "")
    row = _row(reading, key) if key else None
    wanted = Wanted.from_query(request.query_params)
    return viewer.render(
        request,
        "run.html",
        **_tree(viewer, reading, wanted, start=_number(request, "from") if row is None else row.index),
        wanted=wanted,
        row=row,
        pane=pane_of(viewer.library, reading, row) if row else None,
        about=None if row else about(reading),
        overview=overview_of(reading.rows),
        overview_size=(WIDTH, TOP, TICK),
        tools=sorted({each.node.tool_name for each in reading.rows.all if isinstance(each.node, ToolNode)}),
    )


def _tree(viewer: Viewer, reading: Reading, wanted: Wanted, *, start: int) -> dict[str, Any]:
    """The rows that stand in the page at first, and how many there are."""
    found = found_in(viewer.library, reading, wanted) if wanted else None
    start = 0 if found is not None else start // CHUNK * CHUNK
    return {
        "reading": reading,
        "chunk": CHUNK,
        "height": HEIGHT,
        "unsure": found.unsure if found else (),
        **_some_rows(reading, found, start),
    }


def _some_rows(reading: Reading, found: Found | None, start: int) -> dict[str, Any]:
    """The rows of the tree from `start` on, each with its picture, or those that were found, without."""
    every = reading.rows.all
    if found is None:
        stop = min(start + CHUNK, len(every))
        drawn = list(pictures(reading.rows.layout, start, stop))
        some = list(zip(every[start:stop], drawn, strict=True))
        return {"rows": some, "start": start, "count": len(every), "layout": reading.rows.layout}
    picked = [(every[index], None) for index in found.rows[start : start + CHUNK]]
    return {"rows": picked, "start": start, "count": len(found.rows), "layout": reading.rows.layout}


# --- fragments ---


def rows(viewer: Viewer, request: Request) -> Response:
    """Some rows of the tree."""
    reading = _reading(viewer, request)
    wanted = Wanted.from_query(request.query_params)
    found = found_in(viewer.library, reading, wanted) if wanted else None
    values = _some_rows(reading, found, _number(request, "from"))
    return viewer.render(request, "rows.html", reading=reading, wanted=wanted, **values)


def pane(viewer: Viewer, request: Request) -> Response:
    """What is shown of one row."""
    reading = _reading(viewer, request)
    row = _row(reading, request.query_params.get("node", ""))
    return viewer.render(
        request, "pane.html", reading=reading, row=row, pane=pane_of(viewer.library, reading, row)
    )


def messages(viewer: Viewer, request: Request) -> Response:
    """The earlier messages of a request."""
    reading = _reading(viewer, request)
    row = _row(reading, request.query_params.get("node", ""))
    stop = _number(request, "to")
    start = max(0, stop - 50)
    if row.node is None or not row.is_llm:
        raise UsageError(f"{row.key} is no LLM call and has no messages")
    found = list(messages_of(reading, row, start=start, stop=stop))
    return viewer.render(request, "messages.html", reading=reading, row=row, messages=found, earlier=start)


def part(viewer: Viewer, request: Request) -> Response:
    """A further piece of a long text."""
    reading = _reading(viewer, request)
    row = _row(reading, request.query_params.get("node", ""))
    name = request.query_params.get("part", "")
    text = piece(text_of(reading, row, name), name, start=_number(request, "from"), length=PIECE)
    return viewer.render(request, "part.html", reading=reading, row=row, text=text)


def file(viewer: Viewer, request: Request) -> Response:
    """How one file differs between two snapshots, of the run or of it and another one."""
    reading = _reading(viewer, request)
    query = request.query_params
    other = viewer.library.read(query["other"]) if "other" in query else reading
    path = path_of(query.get("path", ""))
    commits = viewer.actions.commits(query.get("before", ""), query.get("after", ""))
    versions = []
    for each, commit in zip((reading, other), commits, strict=True):
        with viewer.library.snapshots(each) as store:
            versions.append(version(Side(store=store, commit=commit), path))
    return viewer.render(request, "file.html", diff=file_diff(path, *versions))


def comparison(viewer: Viewer, request: Request) -> Response:
    """Two nodes, or two runs."""
    query = request.query_params
    found = compare(viewer.library, query.get("a", ""), query.get("b", ""))
    return viewer.render(request, "compare.html", found=found, quote=quote)


# --- actions ---


def restore_plan(viewer: Viewer, request: Request) -> Response:
    """What a restore would do; nothing is done."""
    reading = _reading(viewer, request)
    found = viewer.actions.plan_restore(reading, request.state.form)
    return viewer.render(request, "restore.html", reading=reading, plan=found, done=None)


def restore_now(viewer: Viewer, request: Request) -> Response:
    """The restore that was shown, once."""
    reading = _reading(viewer, request)
    found, done = viewer.actions.restore(reading, request.state.form)
    return viewer.render(request, "restore.html", reading=reading, plan=found, done=done)


def fork_plan(viewer: Viewer, request: Request) -> Response:
    """What a fork would be, and the command for it."""
    reading = _reading(viewer, request)
    plan = viewer.actions.plan_fork(reading, request.state.form)
    return viewer.render(request, "fork.html", reading=reading, fork=plan)


def fork_now(viewer: Viewer, request: Request) -> Response:
    """The fork that was shown, made and not started."""
    reading = _reading(viewer, request)
    made = viewer.actions.fork(reading, request.state.form)
    return viewer.render(request, "fork.html", reading=reading, fork=made)
