"""Folds what became known after a node's line was written into the node."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from agentrewind.records import Node, Note, RecordUid, SnapshotTaken, WorkspaceSpan

LOST = "lost"
"""Topic of the notes on `nodes` whose snapshots the store has lost."""


def lost_nodes(notes: Iterable[Note]) -> frozenset[RecordUid]:
    """The nodes that are no checkpoints any more."""
    listed = [note.data.get("nodes") for note in notes if note.topic == LOST]
    return frozenset(RecordUid(str(uid)) for nodes in listed if isinstance(nodes, list) for uid in nodes)


def fold_snapshots(nodes: Mapping[RecordUid, Node], events: Iterable[SnapshotTaken]) -> dict[RecordUid, Node]:
    """The nodes with the snapshots that events tell of; a later event completes or corrects an earlier."""
    folded = dict(nodes)
    for event in events:
        node = folded.get(event.record_uid)
        if node is not None:
            folded[event.record_uid] = _with_spans(node, event.workspaces)
    return folded


def partial_before(node: Node, events: Iterable[SnapshotTaken]) -> bool:
    """Whether the snapshot *before* the node is missing in some workspace, or lacks paths.

    The span in the node's own line speaks of that snapshot; an event does so only for a workspace
    whose snapshot the line did not have yet. `partial` in later events is about the state after.
    """
    spans = dict(node.metadata.workspaces)
    for event in events:
        for name, span in event.workspaces.items():
            if name not in spans or spans[name].before_commit is None:
                spans[name] = span
    return not spans or any(span.before_commit is None or span.partial for span in spans.values())


def _with_spans(node: Node, later: Mapping[str, WorkspaceSpan]) -> Node:
    spans = dict(node.metadata.workspaces)
    for name, span in later.items():
        spans[name] = _merged(spans[name], span) if name in spans else span
    return replace(node, metadata=replace(node.metadata, workspaces=spans))


def _merged(early: WorkspaceSpan, late: WorkspaceSpan) -> WorkspaceSpan:
    return WorkspaceSpan(
        before_commit=early.before_commit or late.before_commit,
        after_commit=late.after_commit or early.after_commit,
        changed=early.changed if late.changed is None else late.changed,
        diff_summary=late.diff_summary or early.diff_summary,
        diff_total=late.diff_total or early.diff_total,
        partial=tuple(dict.fromkeys(early.partial + late.partial)),
        left_out=tuple(dict.fromkeys(early.left_out + late.left_out)),
    )
