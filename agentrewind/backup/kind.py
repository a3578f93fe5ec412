"""What a kind of external state has to be able to do: be found, captured, verified, compared, restored."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Protocol

from agentrewind.backup.values import Command, Context, Target
from agentrewind.errors import AgentRewindError
from agentrewind.records import Json, JsonObject


class UnclearError(AgentRewindError):
    """What a call changes cannot be told from its text; the reason says why."""


class CaptureError(AgentRewindError):
    """State could not be preserved, or what was preserved did not verify."""


class ConflictError(AgentRewindError):
    """The state has changed since the call that it was preserved for; restoring would lose that."""

    exit_code = 5


class Store(Protocol):
    """Content-addressed payloads, 0600, durable when named in an entry."""

    @property
    def directory(self) -> Path:
        """Where everything about backups is kept; no backup holds it, and none is restored over it."""
        ...

    def room(self) -> int:
        """Bytes that are left for payloads."""
        ...

    def put(self, data: bytes) -> str:
        """The name of these bytes (`sha256:` and 64 hex digits)."""
        ...

    def put_file(self, path: Path) -> str:
        """The same for a file's content, streamed, by reflink where the file system can."""
        ...

    def link_file(self, path: Path) -> str | None:
        """The name of a file kept by another link, for what only removes its name; None where impossible."""
        ...

    def get(self, name: str) -> bytes:
        """The bytes of this name, hash checked. Raises DamagedError."""
        ...

    def open(self, name: str) -> IO[bytes]:
        """The same as a file to read; the caller checks nothing and closes it."""
        ...

    def scratch(self) -> Path:
        """A fresh private directory for a dump under way, removed when the store is closed."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Captured:
    """State that was preserved and verified.

    Attributes:
        manifest: all that a restore needs apart from the blobs; JSON, no credentials.
        blobs: names of the payloads that the manifest uses.
        bytes: size of the payloads.
        notes: what of the state is not covered, for people; empty where all is.
    """

    manifest: JsonObject
    blobs: tuple[str, ...] = ()
    bytes: int = 0
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a restore did. `missing` names what did not come back; empty means all did, verified."""

    restored: tuple[str, ...]
    missing: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


Parameters = Mapping[str, Json]
"""The free fields of a rule, as its TOML gives them."""

Warn = Callable[[str], None]


class Kind(Protocol):
    """One kind of external state. Stateless; every method may block on the tool that it drives.

    Programs are started without a shell, with stdin closed, in the context's environment, in the C locale.
    Credentials are taken from the context's environment or the tool's own configuration at the time of use
    and never written into a target, manifest or note.
    """

    def targets(self, command: Command, parameters: Parameters, context: Context) -> tuple[Target, ...]:
        """What `command` may change. Empty: nothing. Raises UnclearError where it cannot be told.

        For a rule with `tool`, the command is the tool's name alone, and its arguments are stdin, as JSON.
        For a rule with `redirect`, only the command's redirections are asked about, its words are not.
        """
        ...

    def capture(self, target: Target, store: Store, context: Context) -> Captured:
        """Preserve the target's present state and verify it. Raises CaptureError."""
        ...

    def fingerprint(self, target: Target, context: Context) -> str:
        """A digest of the present state, equal for equal states; "" where the target does not exist.

        Taken after the call: a restore stops (ConflictError, made by the caller) where it differs by then.
        """
        ...

    def restore(self, target: Target, captured: Captured, store: Store, context: Context) -> Outcome:
        """Put the state back as it was captured, then compare. The present state was captured before."""
        ...

    def plan(self, target: Target, captured: Captured, context: Context) -> tuple[str, ...]:
        """What `restore` would do, one line an act, without doing it."""
        ...

    def describe(self, target: Target) -> tuple[str, str]:
        """What is captured, and how it is restored, a short phrase each; from the target alone."""
        ...
