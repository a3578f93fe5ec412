"""The viewer's addresses: pages, the fragments that they are completed with, and a stream of changes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from functools import wraps
from typing import Any
from urllib.parse import parse_qsl, quote

import anyio.to_thread
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, Response, StreamingResponse
from starlette.routing import Route

from agentrewind.errors import AgentRewindError, DamagedError, UnknownNodeError, UnknownRunError, UsageError
from agentrewind.records import ToolNode
from agentrewind.snapshot_comparison import Side, version
from agentrewind.view.about import about
from agentrewind.view.actions import Actions
from agentrewind.view.comparing import compare
from agentrewind.view.diff_lines import file_diff
from agentrewind.view.files import path_of
from agentrewind.view.filtering import Found, Wanted, found_in
from agentrewind.view.graph import HEIGHT, pictures
from agentrewind.view.overview import TICK, TOP, WIDTH, overview_of
from agentrewind.view.pane import pane_of
from agentrewind.view.parts import PIECE, messages_of, piece, text_of
from agentrewind.view.reading import Library, Reading
from agentrewind.view.rows import Row
from agentrewind.view.run_list import RunList
from agentrewind.view.templating import STATIC, environment

CHUNK = 200
"""Rows that are fetched at a time."""

RUNS = 30
"""Runs on a page of the list."""

LONGEST_FORM = 1 << 20
"""Bytes."""

_POLL_S = 0.5
_STATUS = {UnknownRunError: 404, UnknownNodeError: 404, UsageError: 400, DamagedError: 422}

Handler = Callable[["Viewer", Request], Response]
_FILES = {"view.css": "text/css", "view.js": "text/javascript", "icon.svg": "image/svg+xml"}


class Viewer:
    """Answers requests; `stopping` tells whether the server is about to end."""

    def __init__(self, library: Library, actions: Actions, *, token_of_forms: Callable[[], str]) -> None:
        self.library = library
        self.list = RunList(library)
        self.actions = actions
        self.stopping: Callable[[], bool] = lambda: False
        self._form_token = token_of_forms

    def application(self) -> Starlette:
        """The addresses."""
        routes = [
            Route("/", self._bound(runs)),
            Route("/runs", self._bound(run_rows)),
            Route("/compare", self._bound(comparison)),
            Route("/r/{run}", self._bound(run_page)),
            Route("/r/{run}/rows", self._bound(rows)),
            Route("/r/{run}/pane", self._bound(pane)),
            Route("/r/{run}/messages", self._bound(messages)),
            Route("/r/{run}/part", self._bound(part)),
            Route("/r/{run}/file", self._bound(file)),
            Route("/r/{run}/restore", self._bound(restore_plan), methods=["POST"]),
            Route("/r/{run}/restore/now", self._bound(restore_now), methods=["POST"]),
            Route("/r/{run}/fork", self._bound(fork_plan), methods=["POST"]),
            Route("/r/{run}/fork/now", self._bound(fork_now), methods=["POST"]),
            Route("/r/{run}/live", self._live),
            Route("/static/{name}", _static),
        ]
        return Starlette(routes=routes, exception_handlers={HTTPException: _plain})

    def render(self, request: Request, template: str, status: int = 200, /, **values: Any) -> HTMLResponse:
        """A page or fragment."""
        base = request.scope["root_path"]
        text = environment().get_template(template).render(base=base, form_token=self._form_token(), **values)
        return HTMLResponse(text, status_code=status)

    def _bound(self, handler: Handler) -> Callable[[Request], Any]:
        @wraps(handler)
        async def answer(request: Request) -> Response:
            if request.method == "POST":
                request.state.form = await _form(request)
            return await anyio.to_thread.run_sync(self._answer, handler, request)

        return answer

    def _answer(self, handler: Handler, request: Request) -> Response:
        if request.method == "POST" and request.state.form.get("form_token") != self._form_token():
            return Response("This form is not of this page; load it again.", 403)
        try:
            return handler(self, request)
        except AgentRewindError as error:
            status = next((code for kind, code in _STATUS.items() if isinstance(error, kind)), 409)
            return self.render(request, "error.html", status, error=error, kind=type(error).__name__)

    async def _live(self, request: Request) -> Response:
        """Server-sent events: the run's version whenever it has changed."""
        run_id = request.path_params["run"]

        async def changes() -> AsyncIterator[str]:
            last = request.query_params.get("version", "")
            yield ": begun\n\n"
            silent = 0.0
            while not self.stopping() and not await request.is_disconnected():
                try:
                    reading = await anyio.to_thread.run_sync(self.library.read, run_id)
                except AgentRewindError:
                    return
                if reading.version != last:
                    last = reading.version
                    yield f"data: {last}\n\n"
                elif silent >= 15:
                    silent = 0.0
                    yield ": still here\n\n"
                silent += _POLL_S
                await asyncio.sleep(_POLL_S)

        return StreamingResponse(changes(), media_type="text/event-stream")


async def _form(request: Request) -> dict[str, str]:
    """The fields of a form. Raises HTTPException 413 for one that no person can have filled in."""
    data = b""
    async for piece_of_body in request.stream():
        data += piece_of_body
        if len(data) > LONGEST_FORM:
            raise HTTPException(413)
    return dict(parse_qsl(data.decode("utf-8", "replace"), keep_blank_values=True))


def _static(request: Request) -> Response:
    name = request.path_params["name"]
    if name not in _FILES:
        raise HTTPException(404)
    return FileResponse(STATIC / name, media_type=_FILES[name])


async def _plain(request: Request, error: Exception) -> Response:
    code = error.status_code if isinstance(error, HTTPException) else 500
    return Response("Nothing here.", code, media_type="text/plain")


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
