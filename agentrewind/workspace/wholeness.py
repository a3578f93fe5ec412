"""Examines a snapshot before it is believed: what its directories hold, and what they say of each other."""

from __future__ import annotations

from dataclasses import dataclass

from agentrewind.errors import MissingSnapshotError
from agentrewind.records import CommitId
from agentrewind.workspace.policy_text import decode_policy
from agentrewind.workspace.snapshots import SnapshotStore, naming
from agentrewind.workspace.trees import DirectoryIds, StoredDirectory
from agentrewind.workspace.views import Directories, parent_of, shown

_MAX_DEPTH = 256
"""Directories within each other; no scan has ever gone deeper."""

_LONGEST_TARGET = 4095
"""Bytes of a symbolic link's target; the system takes no more."""


@dataclass(frozen=True, slots=True)
class _Twin:
    """A further hard link: the path that it names, and what it is itself."""

    leader: bytes
    oid: bytes
    is_link: bool


@dataclass(frozen=True, slots=True)
class _Below:
    """What a directory holds, at any depth, that a snapshot has to be asked about."""

    depth: int
    twins: frozenset[_Twin]


class Examiner:
    """Examines snapshots of one store; what several of them share is read once."""

    def __init__(self, store: SnapshotStore) -> None:
        self._store = store
        self._known: dict[DirectoryIds, _Below] = {}

    def examine(self, commit: CommitId) -> None:
        """See that the snapshot can be restored as it says, contents of files aside.

        Raises:
            MissingSnapshotError: something of it is missing, or its parts do not fit together.
            DamagedError: its path rules cannot be read.
        """
        with naming(commit):
            info = self._store.commit(commit)
            decode_policy(self._store.blob(info.policy))
            for twin in self._below(info.root, ()).twins:
                check_twin(self._store, info.root, twin.leader, oid=twin.oid, is_link=twin.is_link)

    def _below(self, ids: DirectoryIds, place: tuple[bytes, ...]) -> _Below:
        known = self._known.get(ids)
        if known is None:
            if len(place) > _MAX_DEPTH:
                raise _ill(ids, f"it nests deeper than {_MAX_DEPTH} directories")
            directory = self._store.directory(ids)
            self._check_contents(directory, b"/".join(place))
            inner = [self._below(each, (*place, name)) for name, each in directory.directories.items()]
            known = self._known[ids] = _Below(
                depth=1 + max((each.depth for each in inner), default=-1),
                twins=_twins(directory).union(*(each.twins for each in inner)),
            )
        if len(place) + known.depth > _MAX_DEPTH:
            raise _ill(ids, f"it nests deeper than {_MAX_DEPTH} directories")
        return known

    def _check_contents(self, directory: StoredDirectory, path: bytes) -> None:
        for name, oid in (*directory.blobs.items(), *directory.pieces.items()):
            if not self._store.contains(oid):
                raise MissingSnapshotError(
                    oid.hex(), f"the contents of {shown(path + b'/' + name)!r} are missing"
                )
        for name in directory.links:
            check_target(self._store, directory.blobs[name])


def check_target(store: SnapshotStore, oid: bytes) -> None:
    """See that a blob can be the target of a symbolic link; raises MissingSnapshotError."""
    target = store.blob(oid)
    if not 0 < len(target) <= _LONGEST_TARGET or b"\0" in target:
        raise MissingSnapshotError(oid.hex(), "it cannot be the target of a symbolic link")


def check_twin(store: Directories, root: DirectoryIds, leader: bytes, *, oid: bytes, is_link: bool) -> None:
    """See that a path is a file that others can be hard links of, and is what they are.

    Raises MissingSnapshotError, also where the path is a hard link of yet another one.
    """
    directory, name = parent_of(store, root, leader), leader.rpartition(b"/")[2]
    if directory is None or name not in directory.blobs:
        raise _ill(root, f"it has a hard link of {shown(leader)!r}, which is no file of it")
    if directory.sidecar.files[name].leader is not None:
        raise _ill(root, f"it has a hard link of {shown(leader)!r}, which is itself one of another file")
    if (directory.blobs[name], name in directory.links) != (oid, is_link):
        raise _ill(root, f"it has a hard link of {shown(leader)!r} that holds something else")


def _twins(directory: StoredDirectory) -> frozenset[_Twin]:
    return frozenset(
        _Twin(facts.leader, directory.blobs[name], name in directory.links)
        for name, facts in directory.sidecar.files.items()
        if facts.leader is not None
    )


def _ill(ids: DirectoryIds, reason: str) -> MissingSnapshotError:
    return MissingSnapshotError(ids.meta.hex(), reason)
