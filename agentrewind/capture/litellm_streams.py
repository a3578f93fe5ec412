"""litellm's streams: read along while they are live, and made out of recorded events.

Both are instances of litellm's own stream classes; what differs is what `next` does.
"""

from __future__ import annotations

import datetime
import sys
import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from agentrewind.capture.nesting import inside
from agentrewind.capture.streams import Watch
from agentrewind.records import JsonObject

_NEVER = datetime.datetime.fromtimestamp(0, datetime.UTC)


def tapped(stream: Any, watch: Watch, event_of: Callable[[Any], JsonObject]) -> Any:
    """The same stream, which from now on tells `watch` what is taken out of it."""
    original = type(stream)

    class Tapped(original):  # type: ignore[misc, valid-type]
        def __next__(self) -> Any:
            with _watched(watch, StopIteration), inside():
                item = super().__next__()
            watch.saw(event_of(item))
            return item

        async def __anext__(self) -> Any:
            with _watched(watch, StopAsyncIteration), inside():
                item = await super().__anext__()
            watch.saw(event_of(item))
            return item

        def close(self) -> Any:
            watch.left()
            return super().close()

        async def aclose(self) -> Any:
            watch.left()
            return await super().aclose()

    _named_alike(Tapped, original)
    stream.__class__ = Tapped
    weakref.finalize(stream, watch.left).atexit = False
    return stream


@contextmanager
def _watched(watch: Watch, end: type[Exception]) -> Iterator[None]:
    try:
        yield
    except end:
        watch.ended()
        raise
    except Exception as error:
        watch.broke(error)
        raise


def served_chunks(
    package: ModuleType, chunks: Iterable[JsonObject], end: Callable[[], None], *, arguments: dict[str, Any]
) -> Any:
    """A stream of chat completion chunks from the log; `end` is called, and may raise, when they are out."""
    original = package.CustomStreamWrapper
    items = _items((package.types.utils.ModelResponseStream(**chunk) for chunk in chunks), end)

    class Served(original):  # type: ignore[misc, valid-type]
        def __next__(self) -> Any:
            item = next(items)
            self.chunks.append(item)
            return item

        async def __anext__(self) -> Any:
            item = await _anext(items)
            self.chunks.append(item)
            return item

    _named_alike(Served, original)
    return Served(
        completion_stream=None,
        model=arguments.get("model"),
        logging_obj=_logging(package, "completion", arguments),
        custom_llm_provider="cached_response",
        stream_options=arguments.get("stream_options"),
    )


def served_events(
    package: ModuleType,
    events: Iterable[JsonObject],
    end: Callable[[], None],
    *,
    arguments: dict[str, Any],
    asynchronous: bool,
) -> Any:
    """A stream of Responses events from the log, of the class that the asking function gives."""
    # by its full name: `litellm.responses` is a function
    iterators = sys.modules[f"{package.__name__}.responses.streaming_iterator"]
    name = "ResponsesAPIStreamingIterator" if asynchronous else "SyncResponsesAPIStreamingIterator"
    original = getattr(iterators, name)
    config = package.OpenAIResponsesAPIConfig()
    logging = _logging(package, "responses", arguments)
    model = str(arguments.get("model"))
    made = (
        config.transform_streaming_response(model=model, parsed_chunk={**event}, logging_obj=logging)
        for event in events
    )
    items = _items(made, end)

    class Served(original):  # type: ignore[misc, valid-type]
        def __next__(self) -> Any:
            return self._given(next(items))

        async def __anext__(self) -> Any:
            return self._given(await _anext(items))

        def _given(self, event: Any) -> Any:
            if getattr(event, "type", None) == "response.completed":
                self.completed_response = event
            return event

    _named_alike(Served, original)
    return Served(
        response=sys.modules["httpx"].Response(200),
        model=model,
        responses_api_provider_config=config,
        logging_obj=logging,
    )


def _items(made: Iterable[Any], end: Callable[[], None]) -> Iterator[Any]:
    yield from made
    end()


async def _anext(items: Iterator[Any]) -> Any:
    try:
        return next(items)
    except StopIteration:
        raise StopAsyncIteration from None


def _named_alike(cls: type, original: type) -> None:
    cls.__name__, cls.__qualname__ = original.__name__, original.__qualname__
    cls.__module__, cls.__doc__ = original.__module__, original.__doc__


def _logging(package: ModuleType, call_type: str, arguments: dict[str, Any]) -> Any:
    """What litellm's streams ask for the names of things; it is told nothing, so it reports nothing."""
    return package.litellm_core_utils.litellm_logging.Logging(
        model=str(arguments.get("model")),
        messages=arguments.get("messages"),
        stream=True,
        call_type=call_type,
        start_time=_NEVER,
        litellm_call_id="from-the-log",
        function_id="from-the-log",
    )
