"""The steps of a restore, and the plan that holds them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from agentrewind.records import JsonObject
from agentrewind.workspace.attributes import Attributes
from agentrewind.workspace.inventory import FileEntry
from agentrewind.workspace.views import SnapshotEntry


@dataclass(frozen=True, slots=True, kw_only=True)
class Remove:
    """Remove a file or link that is still as it was seen."""

    path: bytes
    entry: FileEntry


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveSpecial:
    """Remove a FIFO, socket or device that appeared after the snapshot."""

    path: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveVolatile:
    """Remove a regenerable cache, except for the spared paths in it."""

    path: bytes
    spared: tuple[bytes, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveDirectory:
    """Remove a directory that the steps before have emptied."""

    path: bytes
    dev: int
    ino: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SetAside:
    """Rename what the store does not hold and the snapshot has no room for."""

    path: bytes
    name: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class MakeDirectory:
    """Make a directory, for now accessible by its owner only."""

    path: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Write:
    """Put a file or symbolic link under its name; `replaced` is what stands there now."""

    entry: SnapshotEntry
    replaced: FileEntry | None

    @property
    def path(self) -> bytes:
        return self.entry.path


@dataclass(frozen=True, slots=True, kw_only=True)
class SetFile:
    """Set mode, attributes and time of a file whose contents are right."""

    entry: SnapshotEntry
    expected: FileEntry

    @property
    def path(self) -> bytes:
        return self.entry.path


@dataclass(frozen=True, slots=True, kw_only=True)
class HardLink:
    """Make the path a further name of the file at `first`."""

    path: bytes
    first: bytes
    replaced: FileEntry | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SetDirectory:
    """Set mode, attributes and time of a directory once nothing in it changes any more."""

    path: bytes
    mode: int
    mtime_ns: int
    attributes: Attributes


Step: TypeAlias = (
    Remove
    | RemoveSpecial
    | RemoveVolatile
    | RemoveDirectory
    | SetAside
    | MakeDirectory
    | Write
    | SetFile
    | HardLink
    | SetDirectory
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RestorePlan:
    """What a restore would do; making it changes nothing in the workspace.

    Attributes:
        created, modified, deleted: paths by what happens to them.
        touched: paths of which only mode, attributes or time is set.
        kept: `path: why` for everything that stays although the snapshot does not hold it.
        blocked: paths that cannot be looked into and that the snapshot has something for.
        steps: the work, in order.
    """

    created: tuple[str, ...]
    modified: tuple[str, ...]
    deleted: tuple[str, ...]
    touched: tuple[str, ...]
    kept: tuple[str, ...]
    blocked: tuple[bytes, ...]
    steps: tuple[Step, ...]

    @property
    def empty(self) -> bool:
        """Whether the workspace is as the snapshot says, what is kept aside."""
        return not self.steps and not self.blocked

    def to_json(self) -> JsonObject:
        return {
            "created": list(self.created),
            "modified": list(self.modified),
            "deleted": list(self.deleted),
            "touched": list(self.touched),
            "kept": list(self.kept),
        }
