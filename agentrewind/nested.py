"""What an agent's own code left behind: what it printed, and its variables as bytes of this machine.

A code action is no node. The tool calls within it are, and run from the log when the code runs again; what
the code itself gave is kept in a note, so that a replay can tell whether it came to the same. Where code
must not run again its variables come from a pickle. A pickle is a program: one is only ever handed out when
the seal beside its name was made with the secret of this machine, which no export carries (law 13).
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from agentrewind.clock import Clock
from agentrewind.durable import make_directory, write_file
from agentrewind.errors import DamagedError
from agentrewind.path_notes import notes_on_path
from agentrewind.records import (
    Json,
    JsonObject,
    LlmNode,
    Note,
    Record,
    RecordUid,
    ToolNode,
)
from agentrewind.timeline import Timeline

TOPIC = "code"
"""Topic of the notes that hold what a code action gave."""

CARRIED = "carried"
"""Field of such a note, or of a tool node's output, that tells where the variables after it are kept."""

KEY_NAME = "machine.key"
_KEY_BYTES = 32


class Stores(Protocol):
    """Where bytes are kept by the hash of them."""

    def put(self, data: bytes) -> str: ...
    def get(self, name: str) -> bytes: ...


class Sealed:
    """Bytes of this machine, in the run's store. The secret is made when the first are kept."""

    def __init__(self, *, store: Stores, key: Path) -> None:
        self._store = store
        self._key = key

    def keep(self, data: bytes) -> JsonObject:
        """A reference to the bytes, which are durable on return. Raises StorageError."""
        name = self._store.put(data)
        return {"blob": name, "seal": self._seal(self._secret(make=True), name)}

    def load(self, reference: Mapping[str, Json]) -> bytes:
        """The bytes. Raises DamagedError where they are gone, altered, or were sealed by another machine."""
        name, seal = str(reference.get("blob")), str(reference.get("seal"))
        if not hmac.compare_digest(self._seal(self._secret(make=False), name).encode(), seal.encode()):
            raise DamagedError(
                f"{name} was not written on this machine; pickled state of an imported run is never loaded"
            )
        return self._store.get(name)

    @staticmethod
    def _seal(secret: bytes, name: str) -> str:
        return hmac.new(secret, b"agentrewind pickle " + name.encode(), hashlib.sha256).hexdigest()

    def _secret(self, *, make: bool) -> bytes:
        try:
            found = self._key.read_bytes()
        except FileNotFoundError:
            found = b""
        if len(found) == _KEY_BYTES:
            return found
        fresh = secrets.token_bytes(_KEY_BYTES)
        if make:
            make_directory(self._key.parent)
            write_file(self._key, fresh)
        return fresh


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeRun:
    """What one code action gave.

    Attributes:
        parent: the LLM node whose answer was the code.
        logs: what it printed.
        output: the value of its last expression, as text.
        error: what it raised, as (type, text).
        final: it ended the agent's task.
        carried: where its variables are kept; then it must not run again.
    """

    parent: RecordUid
    logs: str
    output: str
    error: tuple[str, str] | None
    final: bool
    carried: JsonObject | None = None

    def to_json(self) -> JsonObject:
        """As a note holds it."""
        return {
            "parent": self.parent,
            "logs": self.logs,
            "output": self.output,
            "error": list(self.error) if self.error is not None else None,
            "final": self.final,
            CARRIED: self.carried,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Json]) -> CodeRun:
        """The inverse of `to_json`. Raises DamagedError."""
        error, carried = data.get("error"), data.get(CARRIED)
        if isinstance(error, list) and len(error) == 2:
            raised: tuple[str, str] | None = (str(error[0]), str(error[1]))
        elif error is None:
            raised = None
        else:
            raise DamagedError(f"a note on a code action holds no error but {error!r}")
        return cls(
            parent=RecordUid(str(data.get("parent"))),
            logs=str(data.get("logs", "")),
            output=str(data.get("output", "")),
            error=raised,
            final=data.get("final") is True,
            carried=carried if isinstance(carried, dict) else None,
        )


class CodeRuns:
    """The code actions of a run.

    Args:
        notes: those of the current path.
        write: appends to the log; None in a replay, where nothing is written.
    """

    def __init__(
        self,
        *,
        notes: Iterable[Note],
        write: Callable[[Record, bool], None] | None,
        sealed: Sealed,
        clock: Clock,
    ) -> None:
        self._known = {run.parent: run for run in map(_read, notes)}
        self._write = write
        self._clock = clock
        self.sealed = sealed

    def recorded(self, parent: RecordUid) -> CodeRun | None:
        """What the code of this answer gave when it ran for the first time."""
        return self._known.get(parent)

    def keep(self, run: CodeRun) -> None:
        """Write it down. One that must not run again is durable on return."""
        self._known[run.parent] = run
        if self._write is not None:
            text = "a code action must not run again" if run.carried else "what a code action gave"
            self._write(
                Note(topic=TOPIC, text=text, at=self._clock.now(), data=run.to_json()),
                run.carried is not None,
            )


def code_notes(timeline: Timeline) -> tuple[Note, ...]:
    """The notes on code actions that ended on the current path.

    A rewind into the middle of an action leaves its answer on the path, and its end on a branch.
    """
    return notes_on_path(timeline, TOPIC)


def not_carried(timeline: Timeline, target: RecordUid) -> list[str]:
    """The variables that a rewind to `target` cannot bring back, each with the reason."""
    notes = {run.parent: run for run in map(_read, code_notes(timeline))}
    last: dict[str, JsonObject] = {}
    for node in timeline.path():
        if node.record_uid == target:
            break
        match node:
            case ToolNode(output=dict() as output):
                carried = output.get(CARRIED)
            case LlmNode(record_uid=uid) if uid in notes:
                carried = notes[uid].carried
            case _:
                carried = None
        if isinstance(carried, dict) and isinstance(carried.get("lost"), dict):
            last[str(carried.get("agent", ""))] = carried
    found: list[str] = []
    for carried in last.values():
        lost = carried["lost"]
        assert isinstance(lost, dict)
        found += [f"{name} ({reason!s})" for name, reason in lost.items()]
    return found


def _read(note: Note) -> CodeRun:
    return CodeRun.from_json(note.data)
