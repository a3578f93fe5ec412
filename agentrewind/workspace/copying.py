"""Copies one snapshot, without those before it, from one store to another."""

from __future__ import annotations

from agentrewind.records import CommitId
from agentrewind.workspace.objects import MODE_DIRECTORY
from agentrewind.workspace.snapshots import SnapshotStore


def copy_snapshot(source: SnapshotStore, commit: CommitId, target: SnapshotStore, *, ref: str) -> None:
    """Put a snapshot under the same id into another store, where `ref` names it.

    The target can restore it and compare it; it holds none of its predecessors, although the commit names
    them. Raises MissingSnapshotError where the source lacks any of it, and then leaves the target as it was.
    """
    writer = target.new_pack()
    try:
        top = bytes.fromhex(commit)
        kind, data = source.read(top)
        writer.add(kind, data)
        pending, seen = [source.commit_links(top).tree], {top}
        while pending:
            oid = pending.pop()
            if oid in seen:
                continue
            seen.add(oid)
            kind, data = source.read(oid)
            writer.add(kind, data)
            for item in source.tree(oid):
                if item.mode == MODE_DIRECTORY:
                    pending.append(item.oid)
                elif item.oid not in seen:
                    seen.add(item.oid)
                    writer.add(*source.read(item.oid))
    except BaseException:
        writer.abandon()
        raise
    target.publish(writer)
    target.set_ref(ref, commit)
