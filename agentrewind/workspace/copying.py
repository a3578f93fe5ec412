"""Copies snapshots, without those before them, from one store to another."""

from __future__ import annotations

from collections.abc import Mapping

from agentrewind.errors import MissingSnapshotError
from agentrewind.records import CommitId
from agentrewind.workspace.objects import BLOB, COMMIT, MODE_DIRECTORY, TREE
from agentrewind.workspace.pack_writer import PackWriter
from agentrewind.workspace.snapshots import SnapshotStore


def copy_snapshot(source: SnapshotStore, commit: CommitId, target: SnapshotStore, *, ref: str) -> None:
    """Put a snapshot under the same id into another store, where `ref` names it.

    The target can restore it and compare it; it holds none of its predecessors, although the commit names
    them. Raises MissingSnapshotError where the source lacks any of it, and then leaves the target as it was.
    """
    copy_snapshots(source, {commit: ref}, target)


def copy_snapshots(source: SnapshotStore, refs: Mapping[CommitId, str], target: SnapshotStore) -> None:
    """The same for several snapshots in one pack: what they share is copied once."""
    writer = target.new_pack()
    try:
        seen: set[bytes] = set()
        for commit in refs:
            top = bytes.fromhex(commit)
            _add(source, writer, top, COMMIT, seen)
            pending = [source.commit_links(top).tree]
            while pending:
                oid = pending.pop()
                if not _add(source, writer, oid, TREE, seen):
                    continue
                for item in source.tree(oid):
                    if item.mode == MODE_DIRECTORY:
                        pending.append(item.oid)
                    else:
                        _add(source, writer, item.oid, BLOB, seen)
    except BaseException:
        writer.abandon()
        raise
    target.publish(writer)
    for commit, ref in refs.items():
        target.set_ref(ref, commit)


def _add(source: SnapshotStore, writer: PackWriter, oid: bytes, kind: int, seen: set[bytes]) -> bool:
    """Copy one object; False where it was copied already."""
    if oid in seen:
        return False
    seen.add(oid)
    if writer.add(kind, source.read_as(oid, kind)) != oid:
        raise MissingSnapshotError(oid.hex(), "its bytes are those of another object")
    return True
