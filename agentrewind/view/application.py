"""The viewer's addresses, how each is answered, and a stream of changes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from functools import wraps
from typing import Any
from urllib.parse import parse_qsl

import anyio.to_thread
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, Response, StreamingResponse
from starlette.routing import Route

from agentrewind.errors import AgentRewindError, DamagedError, UnknownNodeError, UnknownRunError, UsageError
from agentrewind.view import pages
from agentrewind.view.actions import Actions
from agentrewind.view.reading import Library
from agentrewind.view.run_list import RunList
from agentrewind.view.templating import STATIC, environment

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
            Route("/", self._bound(pages.runs)),
            Route("/runs", self._bound(pages.run_rows)),
            Route("/compare", self._bound(pages.comparison)),
            Route("/r/{run}", self._bound(pages.run_page)),
            Route("/r/{run}/rows", self._bound(pages.rows)),
            Route("/r/{run}/pane", self._bound(pages.pane)),
            Route("/r/{run}/messages", self._bound(pages.messages)),
            Route("/r/{run}/part", self._bound(pages.part)),
            Route("/r/{run}/file", self._bound(pages.file)),
            Route("/r/{run}/restore", self._bound(pages.restore_plan), methods=["POST"]),
            Route("/r/{run}/restore/now", self._bound(pages.restore_now), methods=["POST"]),
            Route("/r/{run}/fork", self._bound(pages.fork_plan), methods=["POST"]),
            Route("/r/{run}/fork/now", self._bound(pages.fork_now), methods=["POST"]),
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
