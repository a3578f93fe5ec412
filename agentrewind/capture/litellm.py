"""Joins litellm to the gate: chat completions and responses, sync and async, streamed or not, however bound.

litellm is never imported from here; the wrappers are put in place when somebody else imports it.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any, TypeAlias

from agentrewind.capture.call import Call
from agentrewind.capture.gate import Gate
from agentrewind.capture.hook import replace_everywhere, when_imported
from agentrewind.capture.litellm_calls import (
    CHAT,
    RESPONSES,
    LitellmCall,
    Route,
    decode_answer,
    encode_answer,
)
from agentrewind.capture.nesting import is_inside
from agentrewind.errors import UsageError

__all__ = ["WRAPPED", "CurrentGate", "decode_answer", "encode_answer", "install", "replace_everywhere"]

CurrentGate = Callable[[], Gate | None]

_Passed: TypeAlias = tuple[tuple[Any, ...], dict[str, Any]]

_MARK = "__agentrewind__"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Entry:
    """One of litellm's functions: what it asks for, and whether it is awaited."""

    route: Route
    asynchronous: bool = False


_ENTRIES = {
    "completion": _Entry(route=CHAT),
    "acompletion": _Entry(route=CHAT, asynchronous=True),
    "responses": _Entry(route=RESPONSES),
    "aresponses": _Entry(route=RESPONSES, asynchronous=True),
}

_REFUSED = {
    "text_completion": "a bare prompt is no conversation; use litellm.completion",
    "atext_completion": "a bare prompt is no conversation; use litellm.acompletion",
    "anthropic_messages": "use litellm.acompletion, or the anthropic SDK",
    "generate_content": "use litellm.completion",
    "agenerate_content": "use litellm.acompletion",
    "generate_content_stream": "use litellm.completion",
    "agenerate_content_stream": "use litellm.acompletion",
}


WRAPPED = (*_ENTRIES, *_REFUSED)
"""Names in litellm's package that are wrapped."""


def install(current_gate: CurrentGate) -> None:
    """Wrap litellm's entry points now or as soon as it is imported. Installing twice changes nothing."""
    when_imported("litellm", functools.partial(_patch, current_gate=current_gate))


def _patch(module: ModuleType, *, current_gate: CurrentGate) -> None:
    for name, entry in _ENTRIES.items():
        wrap = _wrap_async if entry.asynchronous else _wrap
        _replace(module, name, functools.partial(wrap, entry=entry, module=module, current_gate=current_gate))
    for name, reason in _REFUSED.items():
        _replace(module, name, functools.partial(_refusing, reason=reason, current_gate=current_gate))


def _replace(module: ModuleType, name: str, wrap: Callable[[Any], Any]) -> None:
    original = vars(module).get(name)
    if original is None or hasattr(original, _MARK):
        return
    wrapped = wrap(original)
    setattr(wrapped, _MARK, original)
    replace_everywhere(original, wrapped)


def _wrap(
    original: Callable[..., Any], *, entry: _Entry, module: ModuleType, current_gate: CurrentGate
) -> Callable[..., Any]:
    route = entry.route

    @functools.wraps(original)
    def ask(*args: Any, **kwargs: Any) -> Any:
        gate = current_gate()
        if gate is None or is_inside():
            return original(*args, **kwargs)
        call = _understood(gate, entry, module, original, (args, kwargs))
        if call.bound.get(route.flag):
            # litellm's own way from its async function to its sync one: what comes back is awaited
            return _ask_async(gate, call, original)
        decided = call.for_gate()
        if call.stream:
            return gate.run_stream(
                decided, lambda sent, pending: call.tapped(original(**call.with_sent(sent)), pending)
            )
        return gate.run(decided, lambda sent: original(**call.with_sent(sent)))

    return ask


def _wrap_async(
    original: Callable[..., Any], *, entry: _Entry, module: ModuleType, current_gate: CurrentGate
) -> Callable[..., Any]:
    @functools.wraps(original)
    async def ask(*args: Any, **kwargs: Any) -> Any:
        gate = current_gate()
        if gate is None or is_inside():
            return await original(*args, **kwargs)
        return await _ask_async(gate, _understood(gate, entry, module, original, (args, kwargs)), original)

    return ask


async def _ask_async(gate: Gate, call: LitellmCall, original: Callable[..., Any]) -> Any:
    call.asynchronous = True
    decided: Call[Any] = call.for_gate()

    async def perform(sent: list[Any]) -> Any:
        return await original(**call.with_sent(sent))

    if not call.stream:
        return await gate.arun(decided, perform)

    async def open_stream(sent: list[Any], pending: Any) -> Any:
        return call.tapped(await perform(sent), pending)

    return await gate.arun_stream(decided, open_stream)


def _understood(
    gate: Gate, entry: _Entry, module: ModuleType, original: Callable[..., Any], passed: _Passed
) -> LitellmCall:
    with gate.stopping():
        return LitellmCall(
            gate=gate,
            route=entry.route,
            package=module,
            bound=_by_name(original, *passed),
            asynchronous=entry.asynchronous,
        )


def _by_name(original: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """The arguments by name, in whatever order the function itself takes them by position."""
    if not args:
        return dict(kwargs)
    parameters = inspect.signature(original).parameters.values()
    names = [each.name for each in parameters if each.kind is each.POSITIONAL_OR_KEYWORD]
    if len(args) > len(names):
        raise UsageError(f"litellm.{original.__name__} takes {len(names)} arguments by position")
    return {**dict(zip(names, args, strict=False)), **kwargs}


def _refusing(original: Callable[..., Any], *, reason: str, current_gate: CurrentGate) -> Callable[..., Any]:
    @functools.wraps(original)
    def refuse(*args: Any, **kwargs: Any) -> Any:
        gate = current_gate()
        if gate is not None and not is_inside():
            name = original.__name__
            raise gate.latch.stop(UsageError(f"litellm.{name} cannot be recorded: {reason}"))
        return original(*args, **kwargs)

    return refuse
