"""Tells whether the snapshot store knows of more of a run than the run's log holds."""

from __future__ import annotations

import re

from agentrewind.errors import MissingSnapshotError
from agentrewind.lineage import uid_number
from agentrewind.records import CommitId
from agentrewind.timeline import Timeline
from agentrewind.workspace.snapshots import SnapshotStore

_LABEL = re.compile(r"before (rec_\d+)")
_LOOKED_AT = 64


def missing_end(timeline: Timeline, store: SnapshotStore) -> str | None:
    """What shows that segments or lines at the end of the log are gone, None where nothing does.

    A segment exists before its ref does, and a call's `started` is durable before a snapshot is labelled with
    the call. What was recorded without a change of files leaves no such trace.
    """
    name = re.compile(rf"refs/agentrewind/{re.escape(timeline.header.run_id)}/segment-(\d{{4,}})")
    tips = {int(found[1]): tip for ref, tip in store.refs().items() if (found := name.fullmatch(ref))}
    last = max(tips, default=0)
    if last > timeline.head:
        return f"segment {last} is missing: the snapshot store holds snapshots of it"
    following = uid_number(timeline.next_uid()) or 0
    for number, tip in sorted(tips.items()):
        uid = _last_call(store, tip)
        if uid is not None and (uid_number(uid) or 0) >= following:
            return f"segment {number} ends too early: the snapshot store holds a snapshot of {uid}"
    return None


def _last_call(store: SnapshotStore, tip: CommitId) -> str | None:
    """The call before which the newest of these snapshots was taken whose label names one."""
    commit: CommitId | None = tip
    for _ in range(_LOOKED_AT):
        if commit is None:
            break
        try:
            info = store.commit(commit)
        except MissingSnapshotError:
            break  # what cannot be read is named by the nodes that need it
        if found := _LABEL.fullmatch(info.label):
            return found[1]
        commit = info.parents[0] if info.parents else None
    return None
