"""Compares two nodes, or two runs at the first node in which their paths part."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import zip_longest

from agentrewind.comparison import Comparable, NodeView, Parting, parting, view_of
from agentrewind.errors import AgentRewindError, DamagedError, UsageError
from agentrewind.records import MAIN_WORKSPACE, CommitId, LlmNode, Node, ToolNode
from agentrewind.run_files import declared_root
from agentrewind.snapshot_comparison import Side as Snapshot
from agentrewind.snapshot_comparison import changes
from agentrewind.view.diff_lines import Diff, text_diff
from agentrewind.view.files import Files, files_between
from agentrewind.view.parts import answer_texts, tool_texts
from agentrewind.view.reading import Library, Reading
from agentrewind.view.rows import Row
from agentrewind.view.visible import value_text

_STEPS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One of the two.

    Attributes:
        row: the node, None where a run's path as a whole is meant and the other one goes on longer.
        commit: the snapshot before the node, or the last one of a run.
    """

    reading: Reading
    row: Row | None
    commit: CommitId | None
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """What differs.

    Attributes:
        runs: two runs are compared, `parting` tells where they part; else two nodes.
        steps: the nodes of both paths from there on, side by side; `more` counts those that are not listed.
        texts: by name what differs in the two nodes.
        files: what differs in the workspaces; None where that cannot be told, `trouble` says why.
    """

    a: Side
    b: Side
    runs: bool
    parting: Parting | None
    steps: tuple[tuple[Row | None, Row | None], ...]
    more: int
    texts: dict[str, Diff]
    files: Files | None
    trouble: str = ""


def compare(library: Library, a: str, b: str) -> Comparison:
    """Two places, each `RUN/NODE` or `RUN`.

    Raises UnknownRunError, UnknownNodeError, UsageError where only one of them names a node, and DamagedError
    where a path cannot be read.
    """
    (one, key), (other, other_key) = _place(library, a), _place(library, b)
    if bool(key) is not bool(other_key):
        raise UsageError("compare two nodes, or two runs, not one with the other")
    sides = (_side(one, key), _side(other, other_key))
    found = None if key else _parting(one, other)
    rows = (sides[0].row, sides[1].row) if key else _rows_at(one, other, found)
    steps = [] if found is None else list(zip_longest(_rest(one, found.common), _rest(other, found.common)))
    files, trouble = _files(library, *sides)
    return Comparison(
        a=sides[0],
        b=sides[1],
        runs=not key,
        parting=found,
        steps=tuple(steps[:_STEPS]),
        more=max(0, len(steps) - _STEPS),
        texts=_texts((one, other), rows),
        files=files,
        trouble=trouble,
    )


def _place(library: Library, name: str) -> tuple[Reading, str]:
    run_id, _, key = name.strip().partition("/")
    if not run_id:
        raise UsageError("name two places to compare, each RUN/NODE or RUN")
    return library.read(run_id), key


def _side(reading: Reading, key: str) -> Side:
    if not key:
        return Side(reading=reading, row=None, commit=_last_commit(reading), name=reading.run_id)
    node = reading.timeline.node(key)
    span = node.metadata.workspaces.get(MAIN_WORKSPACE)
    return Side(
        reading=reading,
        row=reading.rows.find(node.record_uid),
        commit=span.before_commit if span is not None else None,
        name=f"{reading.run_id}/{node.record_uid}",
    )


def _last_commit(reading: Reading) -> CommitId | None:
    for node in reversed(reading.timeline.path()):
        span = node.metadata.workspaces.get(MAIN_WORKSPACE)
        if span is not None and (commit := span.after_commit or span.before_commit) is not None:
            return commit
    return None


def _parting(one: Reading, other: Reading) -> Parting | None:
    made = Comparable()
    return parting(
        *(made.path(_views(each), root=str(declared_root(each.timeline))) for each in (one, other))
    )


def _views(reading: Reading) -> Iterator[NodeView]:
    for node in reading.timeline.path():
        yield view_of(node, reading.messages(node.record_uid) if isinstance(node, LlmNode) else ())


def _rows_at(one: Reading, other: Reading, found: Parting | None) -> tuple[Row | None, Row | None]:
    if found is None:
        return None, None
    left = one.rows.find(found.left) if found.left else None
    return left, other.rows.find(found.right) if found.right else None


def _rest(reading: Reading, start: int) -> list[Row | None]:
    path: Sequence[Node] = reading.timeline.path()
    return [reading.rows.find(node.record_uid) for node in path[start:]]


def _texts(readings: Sequence[Reading], rows: tuple[Row | None, Row | None]) -> dict[str, Diff]:
    """Of a path that has ended nothing is compared."""
    if None in rows:
        return {}
    one, other = (_parts(reading, row) for reading, row in zip(readings, rows, strict=True))
    return {
        name: text_diff(one.get(name, ""), other.get(name, ""))
        for name in dict.fromkeys([*one, *other])
        if one.get(name, "") != other.get(name, "")
    }


def _parts(reading: Reading, row: Row | None) -> dict[str, str]:
    match row.node if row else None:
        case LlmNode() as node:
            try:
                return {"messages": _messages(reading, node), **answer_texts(node)}
            except DamagedError as error:
                return {"messages": f"({error})", **answer_texts(node)}
        case ToolNode() as node:
            return {"tool": node.tool_name, **tool_texts(node)}
        case _:
            return {}


def _messages(reading: Reading, node: LlmNode) -> str:
    """The request as it was sent, the rewind memory in it."""
    told = [
        f"[{value_text(message.get('role'))}]\n{value_text(message.get('content') or '')}"
        for message in reading.messages(node.record_uid)
    ]
    memory = reading.memory_of(node)
    if memory is not None:
        told.insert(memory[1], f"[rewind memory]\n{memory[0].text}")
    return "\n\n".join(told)


def _files(library: Library, a: Side, b: Side) -> tuple[Files | None, str]:
    if a.commit is None or b.commit is None:
        return None, "there is no snapshot of one of them"
    try:
        with ExitStack() as stack:
            one, other = (stack.enter_context(library.snapshots(side.reading)) for side in (a, b))
            found = changes(Snapshot(store=one, commit=a.commit), Snapshot(store=other, commit=b.commit))
    except AgentRewindError as error:
        return None, str(error)
    return files_between(found), ""
