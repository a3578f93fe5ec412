"""Reads along what a harness takes out of an HTTP response, in whatever way it takes it."""

from __future__ import annotations

import weakref
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any

from agentrewind.capture.sse import Splitter, is_done, read_event
from agentrewind.capture.streams import Watch


class EventTap:
    """Reads events along, one piece per event, so that what was read is what the harness took."""

    def __init__(self, watch: Watch) -> None:
        self.watch = watch
        self._splitter = Splitter()

    def feed(self, data: bytes) -> Iterator[bytes]:
        """The events that are complete, each seen just before it is handed out."""
        for event in self._splitter.feed(data):
            self._saw(event)
            yield event

    def end(self) -> bytes:
        """Nothing more comes; what was left over."""
        rest = self._splitter.rest()
        if rest:
            self._saw(rest)
        self.watch.ended()
        return rest

    def _saw(self, event: bytes) -> None:
        if is_done(event):
            self.watch.ended()
        elif (found := read_event(event)) is not None:
            later = (read_event(each) for each in self._splitter.ahead())
            self.watch.saw(found, ahead=[each for each in later if each is not None])


class BodyTap:
    """Reads a whole body along, and hands it over at its end."""

    def __init__(self, watch: Watch, finish: Callable[[bytes], None]) -> None:
        self.watch = watch
        self._finish = finish
        self._body = bytearray()

    def feed(self, data: bytes) -> Iterator[bytes]:
        """The bytes as they came."""
        self._body += data
        yield data

    def end(self) -> bytes:
        """The body is complete."""
        self._finish(bytes(self._body))
        return b""


def tap_response(response: Any, tap: EventTap | BodyTap, *, asynchronous: bool) -> None:
    """From now on the tap sees what is taken out of the response, and hears when it is let go."""
    weakref.finalize(response, tap.watch.left).atexit = False
    if asynchronous:
        response.aiter_bytes = _atapped(response.aiter_bytes, tap)
        response.aclose = _aleaving(response.aclose, tap.watch)
    else:
        response.iter_bytes = _tapped(response.iter_bytes, tap)
        response.close = _leaving(response.close, tap.watch)


def _tapped(original: Callable[..., Iterator[bytes]], tap: EventTap | BodyTap) -> Callable[..., Any]:
    def iter_bytes(*args: Any, **kwargs: Any) -> Iterator[bytes]:
        try:
            for data in original(*args, **kwargs):
                yield from tap.feed(data)
            rest = tap.end()
        except GeneratorExit:
            tap.watch.left()
            raise
        except Exception as error:
            tap.watch.broke(error)
            raise
        if rest:
            yield rest

    return iter_bytes


def _atapped(original: Callable[..., AsyncIterator[bytes]], tap: EventTap | BodyTap) -> Callable[..., Any]:
    async def aiter_bytes(*args: Any, **kwargs: Any) -> AsyncIterator[bytes]:
        try:
            async for data in original(*args, **kwargs):
                for piece in tap.feed(data):
                    yield piece
            rest = tap.end()
        except GeneratorExit:
            tap.watch.left()
            raise
        except Exception as error:
            tap.watch.broke(error)
            raise
        if rest:
            yield rest

    return aiter_bytes


def _leaving(original: Callable[[], None], watch: Watch) -> Callable[[], None]:
    def close() -> None:
        watch.left()
        original()

    return close


def _aleaving(original: Callable[[], Awaitable[None]], watch: Watch) -> Callable[[], Awaitable[None]]:
    async def aclose() -> None:
        watch.left()
        await original()

    return aclose
