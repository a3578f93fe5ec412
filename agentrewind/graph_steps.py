"""Which node of an agent's graph ran in which step: notes in the log, which no replay is matched with."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from agentrewind.clock import Clock
from agentrewind.records import JsonObject, Note, Record, RecordUid
from agentrewind.timeline import Timeline

TOPIC = "graph"
"""Topic of these notes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphStep:
    """A node of a graph began. `place`: its name, behind those of the nodes whose subgraphs it is in."""

    step: int
    place: tuple[str, ...]

    def note(self, *, at: str, record_uid: RecordUid | None = None) -> Note:
        """For the log: that the step began, or that call `record_uid` is made in it."""
        text = f"step {self.step}, {'/'.join(self.place)}"
        data: JsonObject = {"step": self.step, "place": list(self.place)}
        if record_uid is not None:
            text, data["record_uid"] = f"{record_uid} in {text}", record_uid
        return Note(topic=TOPIC, text=text, at=at, data=data)


class GraphSteps:
    """Writes down each step once, however often it runs again on replay. Safe for threads.

    Args:
        notes: those of the current path.
        write: appends to the log; None in a replay, where nothing is written.
    """

    def __init__(
        self, *, notes: Iterable[Note], write: Callable[[Record], None] | None, clock: Clock
    ) -> None:
        self._known = Counter(_step_of(note) for note in notes if "record_uid" not in note.data)
        self._write = write
        self._clock = clock
        self._lock = threading.Lock()

    def ran(self, step: GraphStep) -> None:
        """The step begins. Raises StorageError."""
        with self._lock:
            if self._known[step] > 0:
                self._known[step] -= 1
            elif self._write is not None:
                self._write(step.note(at=self._clock.now()))

    def made_a_call(self, step: GraphStep | None, record_uid: RecordUid) -> None:
        """A call was begun within a step, or within none. Raises StorageError."""
        if step is not None and self._write is not None:
            self._write(step.note(at=self._clock.now(), record_uid=record_uid))


def step_of(timeline: Timeline, uid: RecordUid) -> GraphStep | None:
    """The step in which node `uid` was made, None where it was made in no graph."""
    for event in timeline.events(timeline.segment_of(uid)):
        if isinstance(event, Note) and event.topic == TOPIC and event.data.get("record_uid") == uid:
            return _step_of(event)
    return None


def _step_of(note: Note) -> GraphStep:
    step, place = note.data.get("step"), note.data.get("place")
    return GraphStep(
        step=step if isinstance(step, int) else 0,
        place=tuple(map(str, place)) if isinstance(place, list) else (),
    )
