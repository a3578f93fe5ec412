"""The order that calls of one answer have to keep where their harness runs them at the same time.

A call that goes back lets those before it in its answer finish first, and keeps those after it from starting
(law 9). Calls that share an id run one after the other, since only their order tells them apart.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator, Sequence
from concurrent.futures import Future
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field

from agentrewind.rewind.tools import COMMIT


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """One call of an answer."""

    name: str
    call_id: str | None
    arguments: object


def must_wait_for(calls: Sequence[Wanted], place: int) -> list[int]:
    """The places of the calls that have to end before the one at `place` may begin. Pure."""
    this = calls[place]
    return [
        before
        for before, call in enumerate(calls[:place])
        if COMMIT in (this.name, call.name) or (this.call_id is not None and call.call_id == this.call_id)
    ]


@dataclass(slots=True)
class _Answer:
    calls: tuple[Wanted, ...]
    taken: set[int] = field(default_factory=set)
    ended: list[Future[None]] = field(default_factory=list)

    @property
    def over(self) -> bool:
        return all(future.done() for future in self.ended)


class CallOrder:
    """Lets calls of the same answer wait for one another. Safe for threads and event loops.

    The harness must begin the calls of an answer in their order, as thread pools and `gather` do.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._answers: dict[str, _Answer] = {}

    @contextmanager
    def turn(self, answer: str, calls: Sequence[Wanted], this: Wanted) -> Iterator[None]:
        """Hold back until it is this call's turn; it is over when the block ends, however it ends.

        `answer` is a name that no other answer has; `calls` are all of that answer, in their order.
        """
        taken = self._take(answer, calls, this)
        if taken is None:
            yield
            return
        own, others = taken
        try:
            for other in others:
                other.result()
            yield
        finally:
            self._end(answer, own)

    @asynccontextmanager
    async def aturn(self, answer: str, calls: Sequence[Wanted], this: Wanted) -> AsyncIterator[None]:
        """The same in an event loop, which goes on meanwhile."""
        taken = self._take(answer, calls, this)
        if taken is None:
            yield
            return
        own, others = taken
        try:
            for other in others:
                # shielded: who is cancelled while it waits must not end another call's future
                await asyncio.shield(asyncio.wrap_future(other))
            yield
        finally:
            self._end(answer, own)

    def _take(
        self, name: str, calls: Sequence[Wanted], this: Wanted
    ) -> tuple[Future[None], list[Future[None]]] | None:
        """The end of this call and those it waits for; None where it is no first run of a call."""
        with self._lock:
            answer = self._answers.get(name)
            if answer is None:
                answer = self._answers[name] = _Answer(calls=tuple(calls), ended=[Future() for _ in calls])
            for place, call in enumerate(answer.calls):
                if call == this and place not in answer.taken:
                    answer.taken.add(place)
                    waits = [answer.ended[before] for before in must_wait_for(answer.calls, place)]
                    return answer.ended[place], waits
        return None

    def _end(self, name: str, own: Future[None]) -> None:
        own.set_result(None)
        with self._lock:
            answer = self._answers.get(name)
            if answer is not None and answer.over:
                # this one is kept until another is over: a call that is tried again is no first run
                for other in [each for each, held in self._answers.items() if each != name and held.over]:
                    del self._answers[other]
