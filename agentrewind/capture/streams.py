"""Follows a live stream while the harness reads it, and tells how a recorded one ended.

Events are plain JSON: what a stream of any client says piece by piece. The node is written when the answer
is whole; a stream that breaks, is cut off or is left by its reader is a failed attempt, whose record holds
the events that were read, so that replay breaks off in the same place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Protocol

from agentrewind.capture.call import Pending
from agentrewind.capture.gate import Gate
from agentrewind.errors import DivergenceError, HarnessError
from agentrewind.raised import rebuild_exception, record_exception
from agentrewind.records import ErrorRecord, JsonObject

_STREAM = "stream_read"
SWITCHES = frozenset({"stream", "stream_options"})
"""Parameters that say how an answer arrives and nothing about what it is."""


class CutStreamError(HarnessError):
    """The provider ended a stream before the answer was whole, without an error that the client saw."""

    def __init__(self, message: str = "the stream ended before the answer was whole") -> None:
        super().__init__(message)


class LeftStreamError(HarnessError):
    """The harness stopped reading a stream before the answer was whole."""

    def __init__(self, message: str = "the harness stopped reading before the answer was whole") -> None:
        super().__init__(message)


class Joiner(Protocol):
    """Joins events to an answer; `whole` when that can be recorded, `complete` when nothing can follow."""

    def add(self, event: JsonObject) -> None: ...
    @property
    def whole(self) -> bool: ...
    @property
    def complete(self) -> bool: ...
    def answer(self) -> JsonObject: ...


class Watch:
    """One live stream on its way to the harness. What is told after its end is ignored.

    Args:
        lift: the joined answer as a record's output.
    """

    def __init__(
        self, *, gate: Gate, pending: Pending, joiner: Joiner, lift: Callable[[JsonObject], JsonObject]
    ) -> None:
        self._gate = gate
        self._pending = pending
        self._joiner = joiner
        self._lift = lift
        self._events: list[JsonObject] = []

    def saw(self, event: JsonObject, ahead: Iterable[JsonObject] = ()) -> None:
        """The harness is about to get `event`; `ahead` has arrived behind it. Raises the layer's signals."""
        if self._pending.over:
            return
        with self._gate.stopping():
            self._events.append(event)
            self._joiner.add(event)
            complete = self._joiner.complete
            if complete:
                for each in ahead:
                    self._joiner.add(each)
        if complete:
            self._finish()

    def ended(self) -> None:
        """Nothing more comes, and the client found nothing wrong. Raises the layer's signals."""
        if self._pending.over:
            return
        if self._joiner.whole:
            self._finish()
        else:
            self._pending.failed(self._record(CutStreamError(), _End.CUT))

    def broke(self, error: BaseException) -> None:
        """Reading on raised `error`."""
        if not self._pending.over:
            self._pending.failed(self._record(error, _End.BROKE))

    def left(self) -> None:
        """The harness let go of the stream; safe in a finaliser."""
        if not self._pending.over:
            self._gate.leave(self._pending, self._record(LeftStreamError(), _End.LEFT))

    def _finish(self) -> None:
        with self._gate.stopping():
            output = self._lift(self._joiner.answer())
        self._pending.finished(output)

    def _record(self, error: BaseException, end: _End) -> ErrorRecord:
        record = record_exception(error, secrets=self._gate.secrets)
        read: JsonObject = {"events": [*self._events], "end": end.value}
        return replace(record, attributes={**record.attributes, _STREAM: read})


class _End(StrEnum):
    BROKE = "broke"
    CUT = "cut"
    LEFT = "left"


@dataclass(frozen=True, slots=True, kw_only=True)
class PartRead:
    """A recorded stream that did not reach its end: the events that were read, and what came then."""

    events: Sequence[JsonObject]
    end: Callable[[], None]


def part_read(record: ErrorRecord, gate: Gate) -> PartRead | None:
    """What was read of the stream whose failure is recorded; None where nothing had been opened.

    Its `end` raises what reading on raised. Where the provider just stopped it does nothing; where the
    harness had stopped reading it raises the layer's signal, for nobody knows what would have followed.
    """
    read = record.attributes.get(_STREAM)
    if not isinstance(read, dict) or not isinstance(events := read.get("events"), list):
        return None

    def end() -> None:
        match read.get("end"):
            case _End.BROKE:
                raise failure_itself(record)
            case _End.LEFT:
                reason = "the harness reads on in a stream that it left when it was recorded"
                raise gate.latch.stop(DivergenceError(record_uid=None, difference=reason))
            case _:
                return

    return PartRead(events=[each for each in events if isinstance(each, dict)], end=end)


def failure_itself(record: ErrorRecord) -> BaseException:
    """The recorded exception, without what the record says of a stream."""
    kept = {name: value for name, value in record.attributes.items() if name != _STREAM}
    return rebuild_exception(replace(record, attributes=kept))
