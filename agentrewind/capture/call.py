"""One LLM call as the gate gets it from a client's wrapper, and its answer while that is still arriving."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from agentrewind.records import ErrorRecord, JsonObject
from agentrewind.rewind.memory_forms import Place, place_messages

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Call(Generic[T]):
    """One LLM call as a client's wrapper understood it.

    Attributes:
        client: the client's entry point, e.g. `litellm.completion`.
        parameters: everything else that was passed; credentials among it are dropped before recording.
        encode: the client's answer as JSON.
        decode: the answer rebuilt from that JSON.
        sent: the harness's own message objects where `messages`, which is compared and recorded, is a form
            of them made for that; one for one.
        place: puts the rewind memory into what is sent.
        describe: a failure as a record, where the plain form of an exception would lose something.
        refail: meets a recorded failure: raises it again, or returns what breaks in the same place.
    """

    client: str
    model: str
    messages: Sequence[object]
    tools: object
    parameters: dict[str, object]
    encode: Callable[[T], JsonObject]
    decode: Callable[[JsonObject], T]
    sent: Sequence[Any] | None = None
    place: Place = place_messages
    describe: Callable[[BaseException, Collection[str]], ErrorRecord] | None = None
    refail: Callable[[ErrorRecord], T] | None = None


class Pending:
    """A live call whose answer is still arriving. It ends once; whatever is told after that is ignored.

    A stream reports here while the harness reads it. Safe for threads.
    """

    def __init__(self, *, finish: Callable[[JsonObject], None], fail: Callable[[ErrorRecord], None]) -> None:
        self._finish = finish
        self._fail = fail
        self._lock = threading.Lock()
        self._over = False

    @property
    def over(self) -> bool:
        """The node or the failed attempt is written, or about to be."""
        return self._over

    def finished(self, output: JsonObject) -> None:
        """The whole answer is here: write the node. Raises the layer's signals."""
        if self._ends():
            self._finish(output)

    def failed(self, error: ErrorRecord) -> None:
        """It broke, or nobody reads on: write a failed attempt."""
        if self._ends():
            self._fail(error)

    def _ends(self) -> bool:
        with self._lock:
            first, self._over = not self._over, True
        return first
