"""Lists the states that the workspace went through along a path, each with what led to it. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from agentrewind.manual_history import after_of, before_of
from agentrewind.records import MAIN_WORKSPACE, CommitId, Node, OutsideChange, RecordUid, ToolNode
from agentrewind.timeline import Timeline

_Known: TypeAlias = tuple[CommitId | None, tuple[str, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """The workspace at one moment of a path.

    Attributes:
        node: the node after which it was so; None for the state that the run found.
        outside: no tool call made it so; it was found changed while the model was asked or before a node.
    """

    commit: CommitId
    node: RecordUid | None
    outside: bool = False

    @property
    def name(self) -> str:
        """For people."""
        if self.node is None:
            return "before the first node"
        return f"at {self.node}, changed from outside" if self.outside else f"after {self.node}"


@dataclass(frozen=True, slots=True, kw_only=True)
class States:
    """The states of a path, oldest first, neighbours never the same.

    `skipped` names the nodes after which the state is not known, or its snapshot is not whole, each with
    the reason; what they changed shows in the next state that is known, and counts as theirs.
    """

    found: tuple[State, ...]
    skipped: tuple[str, ...]


def path_to(timeline: Timeline, until: str | None) -> tuple[Node, ...]:
    """The current path, or the one that leads to this node and ends with it.

    Raises UnknownNodeError.
    """
    if until is None:
        return timeline.path()
    node = timeline.node(until)
    path = timeline.path(timeline.segment_of(node.record_uid))
    return path[: 1 + next(place for place, each in enumerate(path) if each.record_uid == node.record_uid)]


def states_of(
    timeline: Timeline, path: Sequence[Node], *, same: Callable[[CommitId, CommitId], bool]
) -> States:
    """The states along a path; `same` tells whether two snapshots hold the same.

    Where no tool call is recorded at all the agent's tools pass the layer by, and what changed after an
    answer counts as that node's.
    """
    walk = _Walk(same)
    told = any(isinstance(node, ToolNode) for node in path)
    outside = _outside(timeline) if told else frozenset()
    for node in path:
        (before, lacks_before), (after, lacks_after) = _around(timeline, node)
        walk.see(before, f"before {node.record_uid}", lacks_before, outside=told)
        walk.last = node.record_uid
        walk.see(after, f"after {node.record_uid}", lacks_after, outside=after in outside)
    return States(found=tuple(walk.found), skipped=tuple(walk.skipped))


def _outside(timeline: Timeline) -> frozenset[CommitId | None]:
    """The states in which the log says that somebody else had left the workspace."""
    events = (event for number in timeline.segments for event in timeline.events(number))
    return frozenset(
        span.after_commit
        for event in events
        if isinstance(event, OutsideChange)
        for name, span in event.workspaces.items()
        if name == MAIN_WORKSPACE and span.after_commit is not None
    )


def _around(timeline: Timeline, node: Node) -> tuple[_Known, _Known]:
    span = node.metadata.workspaces.get(MAIN_WORKSPACE)
    if span is not None and not span.partial:
        return (span.before_commit, ()), (span.after_commit, ())
    # which of the two snapshots lacks something only the single records tell
    return before_of(timeline, node), after_of(timeline, node)


class _Walk:
    def __init__(self, same: Callable[[CommitId, CommitId], bool]) -> None:
        self._same = same
        self.found: list[State] = []
        self.skipped: list[str] = []
        self.last: RecordUid | None = None
        self._unknown = False

    def see(self, commit: CommitId | None, moment: str, lacks: tuple[str, ...], *, outside: bool) -> None:
        if commit is None or lacks:
            if lacks or moment.startswith("after"):
                why = f"its snapshot lacks {lacks[0]}" if lacks else "there is no snapshot"
                self.skipped.append(f"{moment}: {why}")
                self._unknown = True
            return
        # a change after a state that is not known may well be the last node's
        by_nobody = outside and not self._unknown and bool(self.found)
        self._unknown = False
        if not self.found or not self._same(self.found[-1].commit, commit):
            self.found.append(State(commit=commit, node=self.last, outside=by_nobody))
