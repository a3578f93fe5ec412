"""Refuses requests to language models that no wrapped client makes: they could only be half-recorded.

A harness that posts by itself (through requests, httpx or aiohttp) is known by the address that it posts to.
Requests within a wrapped call are that call's own.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from types import ModuleType
from typing import Any
from urllib.parse import urlsplit

from agentrewind.capture.hook import when_imported
from agentrewind.capture.nesting import is_inside
from agentrewind.capture.wire import CurrentGate
from agentrewind.errors import UsageError

_MARK = "__agentrewind__"

_MODEL_PATHS = re.compile(
    r"/chat/completions$|/v1/completions$|/v1/responses$|/v1/messages$|/v\d+/chat$|/api/(chat|generate)$"
    r"|:(stream)?generatecontent$|/(converse|invoke)(-stream|-with-response-stream)?$|/text-generation/generation$",
    re.IGNORECASE,
)


def runs_a_model(method: str, url: str) -> bool:
    """Whether such a request asks a language model of one of the known APIs for an answer."""
    return method.upper() == "POST" and _MODEL_PATHS.search(urlsplit(url).path.rstrip("/")) is not None


def install(current_gate: CurrentGate) -> None:
    """Watch the HTTP clients, now or when they are imported. Installing twice changes nothing."""
    for name, patch in _CLIENTS.items():
        when_imported(name, functools.partial(patch, current_gate=current_gate))


def _requests(module: ModuleType, *, current_gate: CurrentGate) -> None:
    _watch(module.Session, "send", _prepared, "requests", current_gate)


def _httpx(module: ModuleType, *, current_gate: CurrentGate) -> None:
    for cls in (module.Client, module.AsyncClient):
        _watch(cls, "send", _prepared, module.__name__, current_gate)


def _aiohttp(module: ModuleType, *, current_gate: CurrentGate) -> None:
    _watch(module.ClientSession, "_request", lambda method, url: (method, str(url)), "aiohttp", current_gate)


_CLIENTS: dict[str, Callable[..., None]] = {
    "requests": _requests,
    "httpx": _httpx,
    "httpx2": _httpx,
    "aiohttp": _aiohttp,
}


def _prepared(request: Any, *_: Any) -> tuple[str, str]:
    return str(request.method), str(request.url)


def _watch(
    cls: Any,
    name: str,
    target: Callable[..., tuple[str, str]],
    library: str,
    current_gate: CurrentGate,
) -> None:
    original = getattr(cls, name)
    if hasattr(original, _MARK):
        return

    @functools.wraps(original)
    def send(self: Any, *args: Any, **kwargs: Any) -> Any:
        gate = current_gate()
        if gate is not None and not is_inside():
            method, url = _target(target, args, kwargs)
            if runs_a_model(method, url):
                host = urlsplit(url).hostname
                raise gate.latch.stop(
                    UsageError(
                        f"a request to a language model at {host} was made through {library} itself, where "
                        "it cannot be recorded; use litellm, the openai or the anthropic SDK, or LangChain"
                    )
                )
        return original(self, *args, **kwargs)

    setattr(send, _MARK, original)
    setattr(cls, name, send)


def _target(
    target: Callable[..., tuple[str, str]], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[str, str]:
    named = [kwargs[name] for name in ("request", "method", "str_or_url") if name in kwargs]
    return target(*args, *named)
