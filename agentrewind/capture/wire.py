"""Stands in the way of a generated SDK where all its methods meet: its base client's `request`.

Live, the request goes on and its answer is read on the way: a body, or a stream that the harness reads event
by event. From the log, the SDK itself makes its objects out of an HTTP response that was never sent, so
that every variant (parsed, raw, streamed) is the SDK's own. Calls inside another wrapped call pass.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from types import ModuleType
from typing import Any

from agentrewind.capture.gate import Gate
from agentrewind.capture.hook import when_imported
from agentrewind.capture.nesting import is_inside
from agentrewind.capture.wire_api import Sdk
from agentrewind.capture.wire_call import WireCall
from agentrewind.errors import UsageError

CurrentGate = Callable[[], Gate | None]

_MARK = "__agentrewind__"

_call: ContextVar[WireCall | None] = ContextVar("agentrewind_wire_call", default=None)


def install_sdk(sdk: Sdk, current_gate: CurrentGate) -> None:
    """Patch both base clients, now or as soon as the SDK is imported. Installing twice changes nothing."""
    when_imported(sdk.name, functools.partial(_patch, sdk=sdk, current_gate=current_gate))


def _patch(_package: ModuleType, *, sdk: Sdk, current_gate: CurrentGate) -> None:
    base = sys.modules[f"{sdk.name}._base_client"]
    for cls, wrap in ((base.SyncAPIClient, _wrap), (base.AsyncAPIClient, _wrap_async)):
        if hasattr(cls.request, _MARK):
            continue
        request = wrap(cls.request, sdk, base, current_gate)
        setattr(request, _MARK, cls.request)
        cls.request = request
        cls._process_response = _wrap_processing(cls._process_response)
        if hasattr(cls, "_attempt_request"):
            asynchronous = cls is base.AsyncAPIClient
            cls._attempt_request = _wrap_attempt(cls._attempt_request, asynchronous=asynchronous)


def _wrap(
    original: Callable[..., Any], sdk: Sdk, base: ModuleType, current_gate: CurrentGate
) -> Callable[..., Any]:
    @functools.wraps(original)
    def request(self: Any, cast_to: Any, options: Any, *args: Any, **kwargs: Any) -> Any:
        gate = current_gate()
        if gate is None or is_inside():
            token = _call.set(None)  # a request within a request is not the one that is recorded
            try:
                return original(self, cast_to, options, *args, **kwargs)
            finally:
                _call.reset(token)
        _refuse(gate, sdk, options)
        if sdk.api(options.method, options.url) is None:
            return original(self, cast_to, options, *args, **kwargs)
        if hasattr(self, "_copy_and_prepare"):
            options = self._copy_and_prepare(options)

        def send(call: WireCall, prepared: Any) -> Any:
            token = _call.set(call)
            try:
                return original(self, cast_to, prepared, *args, **kwargs)
            finally:
                _call.reset(token)

        call = _understood(gate, sdk, base, self, cast_to, options, kwargs)
        reply = gate.run_stream(
            call.for_gate(send), lambda sent, pending: call.live(call.with_sent(sent), pending, send)
        )
        return reply()

    return request


def _wrap_async(
    original: Callable[..., Any], sdk: Sdk, base: ModuleType, current_gate: CurrentGate
) -> Callable[..., Any]:
    @functools.wraps(original)
    async def request(self: Any, cast_to: Any, options: Any, *args: Any, **kwargs: Any) -> Any:
        gate = current_gate()
        if gate is None or is_inside():
            token = _call.set(None)
            try:
                return await original(self, cast_to, options, *args, **kwargs)
            finally:
                _call.reset(token)
        _refuse(gate, sdk, options)
        if sdk.api(options.method, options.url) is None:
            return await original(self, cast_to, options, *args, **kwargs)
        if hasattr(self, "_copy_and_prepare"):
            options = await self._copy_and_prepare(options)

        async def send(call: WireCall, prepared: Any) -> Any:
            token = _call.set(call)
            try:
                return await original(self, cast_to, prepared, *args, **kwargs)
            finally:
                _call.reset(token)

        call = _understood(gate, sdk, base, self, cast_to, options, kwargs)
        reply = await gate.arun_stream(
            call.for_gate(send), lambda sent, pending: call.alive(call.with_sent(sent), pending, send)
        )
        return await reply()

    return request


def _understood(
    gate: Gate, sdk: Sdk, base: ModuleType, client: Any, cast_to: Any, options: Any, kwargs: dict[str, Any]
) -> WireCall:
    with gate.stopping():
        api = sdk.api(options.method, options.url)
        assert api is not None
        return WireCall(
            gate=gate,
            sdk=sdk,
            api=api,
            base=base,
            client=client,
            cast_to=cast_to,
            options=options,
            stream=bool(kwargs.get("stream")),
            stream_cls=kwargs.get("stream_cls"),
        )


def _refuse(gate: Gate, sdk: Sdk, options: Any) -> None:
    reason = sdk.reason(options.method, options.url)
    if reason is not None:
        raise gate.latch.stop(UsageError(f"{sdk.name} {options.url} cannot be recorded: {reason}"))


def _wrap_processing(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def process_response(self: Any, *args: Any, **kwargs: Any) -> Any:
        call = _call.get()
        if call is not None:
            call.received(kwargs["response"])
        return original(self, *args, **kwargs)

    return process_response


def _wrap_attempt(original: Callable[..., Any], *, asynchronous: bool) -> Callable[..., Any]:
    """Where an SDK lets middleware see answers, what the log holds takes the place of the transport alone."""

    @functools.wraps(original)
    def attempt(self: Any, options: Any, **kwargs: Any) -> Any:
        call = _call.get()
        if call is None or call.from_log is None:
            return original(self, options, **kwargs)
        return call.from_log(options), options

    @functools.wraps(original)
    async def attempt_async(self: Any, options: Any, **kwargs: Any) -> Any:
        call = _call.get()
        if call is None or call.from_log is None:
            return await original(self, options, **kwargs)
        return call.from_log(options), options

    return attempt_async if asynchronous else attempt


def refuse_methods(classes: Sequence[Any], *, method: str, reason: str, current_gate: CurrentGate) -> None:
    """From now on calling `method` of these classes under the layer stops the process, with the reason."""
    for cls in classes:
        original = getattr(cls, method, None)
        if original is not None and not hasattr(original, _MARK):
            setattr(cls, method, _refusing(original, reason, current_gate))


def _refusing(original: Callable[..., Any], reason: str, current_gate: CurrentGate) -> Callable[..., Any]:
    @functools.wraps(original)
    def refuse(*args: Any, **kwargs: Any) -> Any:
        gate = current_gate()
        if gate is not None and not is_inside():
            raise gate.latch.stop(UsageError(reason))
        return original(*args, **kwargs)

    setattr(refuse, _MARK, original)
    return refuse
