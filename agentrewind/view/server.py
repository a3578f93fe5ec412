"""Serves the viewer on loopback until it is stopped."""

from __future__ import annotations

import errno
import socket
import threading
import webbrowser
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, urlencode

import uvicorn

from agentrewind.errors import UsageError
from agentrewind.manual import Machine
from agentrewind.view.actions import Actions, Forking
from agentrewind.view.application import Viewer
from agentrewind.view.guard import Guard
from agentrewind.view.reading import Library

LOOPBACK = "127.0.0.1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """What to tell: the whole address, and whether a browser took it."""

    url: str
    port: int
    browser: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How to serve.

    Attributes:
        run_id: the run that is shown first, None for the list.
        node: the node of it.
        port: 0 for any that is free.
        browser: whether to start the user's browser.
    """

    machine: Machine
    directory: Path
    run_id: str | None
    node: str | None
    port: int
    browser: bool
    forks: bool
    forking: Forking | None = None


def serve(settings: Settings, *, tell: Callable[[Opened], None]) -> None:
    """Serve until Ctrl-C. `tell` is called once the address answers.

    Raises UsageError where the port cannot be had.
    """
    with closing(_bound(settings.port)) as listener, closing(Library(settings.machine.home)) as library:
        port = listener.getsockname()[1]
        actions = Actions(
            machine=settings.machine,
            directory=settings.directory,
            forks=settings.forks,
            forking=settings.forking,
        )
        viewer = Viewer(library, actions, token_of_forms=lambda: guard.form_token)
        guard = Guard(viewer.application(), port=port, landing=_landing(settings))
        server = uvicorn.Server(
            uvicorn.Config(
                guard,
                log_level="error",
                # the token is part of every address and belongs in no log
                access_log=False,
                lifespan="off",
                ws="none",
                proxy_headers=False,
                server_header=False,
                timeout_graceful_shutdown=1,
            )
        )
        viewer.stopping = lambda: server.should_exit
        base = f"http://{LOOPBACK}:{port}"
        browser = settings.browser and _can_browse()
        tell(Opened(url=f"{base}/{guard.token}{_landing(settings)}", port=port, browser=browser))
        if browser:
            # it waits for the first answer, which comes once the server runs
            threading.Thread(target=webbrowser.open, args=(f"{base}{guard.once}",), daemon=True).start()
        try:
            server.run(sockets=[listener])
        except KeyboardInterrupt:
            return


def _landing(settings: Settings) -> str:
    if settings.run_id is None:
        return "/"
    query = f"?{urlencode({'node': settings.node})}" if settings.node else ""
    return f"/r/{quote(settings.run_id)}{query}"


def _bound(port: int) -> socket.socket:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((LOOPBACK, port))
        # from here on a browser that comes too early waits instead of being refused
        listener.listen(128)
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRINUSE:
            raise UsageError(
                f"port {port} is in use; choose another --port, or none for a free one"
            ) from error
        raise UsageError(f"port {port} cannot be used: {error.strerror}; choose another --port") from error
    return listener


def _can_browse() -> bool:
    try:
        webbrowser.get()
    except webbrowser.Error:
        return False
    return True
