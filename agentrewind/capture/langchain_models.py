"""Joins LangChain's chat models to the gate, where a subclass does not use a client that is joined itself.

Models of LangChain that ask through openai, anthropic or litellm are recorded there. Of any other subclass of
`BaseChatModel` the four methods that subclasses write are wrapped where they are written, so that LangChain's
own callbacks see a recorded answer as they see a live one. langchain is never imported from here.
"""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator, Callable, Iterator
from types import ModuleType
from typing import Any

from agentrewind.capture.call import Pending
from agentrewind.capture.gate import Gate
from agentrewind.capture.hook import when_imported
from agentrewind.capture.langchain_call import LangchainCall, StreamJoiner, event_of
from agentrewind.capture.nesting import inside, is_inside
from agentrewind.capture.streams import Watch
from agentrewind.capture.wire import CurrentGate

_MARK = "__agentrewind__"

_JOINED_BELOW = (
    "langchain_openai.",
    "langchain_anthropic.",
    "langchain_litellm.",
    "langchain_community.chat_models.anthropic",
    "langchain_community.chat_models.azure_openai",
    "langchain_community.chat_models.litellm",
    "langchain_community.chat_models.openai",
)


def install(current_gate: CurrentGate) -> None:
    """Wrap chat models, those defined so far and those to come. Installing twice changes nothing."""
    when_imported(
        "langchain_core.language_models.chat_models", functools.partial(_patch, current_gate=current_gate)
    )


def _patch(module: ModuleType, *, current_gate: CurrentGate) -> None:
    base = module.BaseChatModel
    if hasattr(base, _MARK):
        return
    setattr(base, _MARK, True)
    inherited = base.__init_subclass__.__func__

    def init_subclass(cls: Any, /, **kwargs: Any) -> None:
        inherited(cls, **kwargs)
        _wrap_class(cls, current_gate)

    base.__init_subclass__ = classmethod(init_subclass)
    for cls in _descendants(base):
        _wrap_class(cls, current_gate)


def _descendants(base: Any) -> Iterator[Any]:
    for cls in base.__subclasses__():
        yield cls
        yield from _descendants(cls)


def _wrap_class(cls: Any, current_gate: CurrentGate) -> None:
    if any(f"{each.__module__}.".startswith(_JOINED_BELOW) for each in cls.__mro__):
        return
    for name, wrap in _WRAPS.items():
        original = vars(cls).get(name)
        if callable(original) and not hasattr(original, _MARK):
            wrapped = wrap(original, current_gate)
            setattr(wrapped, _MARK, original)
            setattr(cls, name, wrapped)


def _wrap_generate(original: Callable[..., Any], current_gate: CurrentGate) -> Callable[..., Any]:
    @functools.wraps(original)
    def generate(self: Any, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> Any:
        gate = current_gate()
        if gate is None or is_inside():
            return original(self, messages, stop, run_manager, **kwargs)
        call = LangchainCall(gate=gate, model=self, messages=messages, stop=stop, kwargs=kwargs)
        return gate.run(
            call.whole(), lambda sent: original(self, call.own(sent), stop, run_manager, **kwargs)
        )

    return generate


def _wrap_agenerate(original: Callable[..., Any], current_gate: CurrentGate) -> Callable[..., Any]:
    @functools.wraps(original)
    async def agenerate(
        self: Any, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> Any:
        gate = current_gate()
        if gate is None or is_inside():
            return await original(self, messages, stop, run_manager, **kwargs)
        call = LangchainCall(gate=gate, model=self, messages=messages, stop=stop, kwargs=kwargs)
        return await gate.arun(
            call.whole(), lambda sent: original(self, call.own(sent), stop, run_manager, **kwargs)
        )

    return agenerate


def _wrap_stream(original: Callable[..., Any], current_gate: CurrentGate) -> Callable[..., Any]:
    @functools.wraps(original)
    def stream(
        self: Any, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> Iterator[Any]:
        gate = current_gate()
        if gate is None or is_inside():
            yield from original(self, messages, stop, run_manager, **kwargs)
            return
        call = LangchainCall(gate=gate, model=self, messages=messages, stop=stop, kwargs=kwargs)
        yield from gate.run_stream(
            call.streamed(),
            lambda sent, pending: _read_along(
                iter(original(self, call.own(sent), stop, run_manager, **kwargs)), _watch(gate, call, pending)
            ),
        )

    return stream


def _wrap_astream(original: Callable[..., Any], current_gate: CurrentGate) -> Callable[..., Any]:
    @functools.wraps(original)
    async def astream(
        self: Any, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> AsyncIterator[Any]:
        gate = current_gate()
        if gate is None or is_inside():
            async for chunk in original(self, messages, stop, run_manager, **kwargs):
                yield chunk
            return
        call = LangchainCall(gate=gate, model=self, messages=messages, stop=stop, kwargs=kwargs)

        async def open_stream(sent: list[Any], pending: Pending) -> AsyncIterator[Any]:
            chunks = original(self, call.own(sent), stop, run_manager, **kwargs)
            return _aread_along(chunks.__aiter__(), _watch(gate, call, pending))

        async for chunk in await gate.arun_stream(call.astreamed(), open_stream):
            yield chunk

    return astream


_WRAPS = {
    "_generate": _wrap_generate,
    "_agenerate": _wrap_agenerate,
    "_stream": _wrap_stream,
    "_astream": _wrap_astream,
}


def _watch(gate: Gate, call: LangchainCall, pending: Pending) -> Watch:
    return Watch(gate=gate, pending=pending, joiner=StreamJoiner(), lift=call.lift)


def _read_along(chunks: Iterator[Any], watch: Watch) -> Iterator[Any]:
    try:
        while True:
            with inside():  # no longer than it takes: a generator shares its context with its reader
                chunk = next(chunks, None)
            if chunk is None:
                break
            watch.saw(event_of(chunk))
            yield chunk
        watch.ended()
    except GeneratorExit:
        watch.left()
        raise
    except Exception as error:
        watch.broke(error)
        raise


async def _aread_along(chunks: AsyncIterator[Any], watch: Watch) -> AsyncIterator[Any]:
    try:
        while True:
            with inside():
                chunk = await anext(chunks, None)
            if chunk is None:
                break
            watch.saw(event_of(chunk))
            yield chunk
        watch.ended()
    except GeneratorExit:
        watch.left()
        raise
    except Exception as error:
        watch.broke(error)
        raise
