"""Lets a request through only where it comes from this machine's browser and knows the token.

Pure ASGI, in front of everything else. The token is the first part of every address: unlike a cookie it is
not sent along by other pages, nor to other servers of this machine.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, TypeAlias

Scope: TypeAlias = MutableMapping[str, Any]
Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
App: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]

_NAMES = ("127.0.0.1", "localhost")
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = (
    (b"content-security-policy", _POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    # with `no-referrer` browsers would send no origin along with a form
    (b"referrer-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
)


class Guard:
    """Stands before an application.

    Answers 421 to a foreign `Host`, 404 to an address without the token, 403 to a `POST` from another page,
    405 to other methods; no answer says anything about runs. Websockets are refused.

    `landing` is where the address that works once leads to.

    Attributes:
        token: the first part of every address.
        form_token: what every form that changes something carries along.
    """

    def __init__(self, app: App, *, port: int, landing: str = "/") -> None:
        self._app = app
        self._landing = landing
        self._hosts = frozenset(f"{name}:{port}" for name in _NAMES)
        self.token = secrets.token_urlsafe(24)
        self.form_token = secrets.token_urlsafe(24)
        self._once: str | None = secrets.token_urlsafe(24)

    @property
    def once(self) -> str:
        """The path that leads to the real address a single time, for command lines that others can see."""
        return f"/open/{self._once}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        elif scope["type"] == "http":
            await self._http(scope, receive, send)
        else:
            await receive()
            await send({"type": "websocket.close", "code": 1008})

    async def _http(self, scope: Scope, receive: Receive, send: Send) -> None:
        refused = self._refusal(scope)
        if refused is not None:
            await _answer(send, *refused)
            return
        path: str = scope["path"]
        if self._once is not None and path == self.once:
            self._once = None
            headers = ((b"location", f"/{self.token}{self._landing}".encode()),)
            await _answer(send, 303, "", headers=headers)
            return
        first, _, rest = path.removeprefix("/").partition("/")
        if not hmac.compare_digest(first.encode(), self.token.encode()):
            await _answer(send, 404, "Nothing here. Use the whole address that `agentrewind view` printed.")
            return

        async def send_safe(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), *HEADERS]
            await send(message)

        root = f"{scope.get('root_path', '')}/{self.token}"
        await self._app({**scope, "path": f"{root}/{rest}", "root_path": root}, receive, send_safe)

    def _refusal(self, scope: Scope) -> tuple[int, str] | None:
        headers = {name: value.decode("latin-1") for name, value in scope["headers"]}
        host = headers.get(b"host", "")
        if host not in self._hosts:
            return 421, "This server answers to its own address only."
        if scope["method"] not in ("GET", "HEAD", "POST"):
            return 405, "Only GET and POST are understood."
        origin = headers.get(b"origin")
        own = origin == f"http://{host}"
        if scope["method"] == "POST" and not own:
            return 403, "A form of another page is not taken."
        # following a link from anywhere is a person's doing, and needs the token as well
        foreign = headers.get(b"sec-fetch-site", "none") not in ("none", "same-origin")
        if (origin is not None and not own) or (foreign and headers.get(b"sec-fetch-mode") != "navigate"):
            return 403, "A request of another page is not answered."
        return None


async def _answer(
    send: Send, status: int, text: str, *, headers: tuple[tuple[bytes, bytes], ...] = ()
) -> None:
    body = text.encode()
    plain = (b"content-type", b"text/plain; charset=utf-8")
    length = (b"content-length", str(len(body)).encode())
    await send(
        {"type": "http.response.start", "status": status, "headers": [plain, length, *headers, *HEADERS]}
    )
    await send({"type": "http.response.body", "body": body})
