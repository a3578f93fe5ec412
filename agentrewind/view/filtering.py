"""Finds the rows of a run that are searched for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlencode

from agentrewind.errors import DamagedError
from agentrewind.records import MAIN_WORKSPACE, Node
from agentrewind.run_files import changed_paths
from agentrewind.selection import Selection, selected
from agentrewind.view.parts import event_texts
from agentrewind.view.reading import Library, Reading
from agentrewind.view.rows import Row

_WILD = frozenset("*?[")
_LONGEST = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What rows must be like; all that is given has to hold. `path` is a pattern or a part of a path."""

    text: str = ""
    path: str = ""
    tool: str = ""
    failed: bool = False

    @classmethod
    def from_query(cls, query: Mapping[str, str]) -> Wanted:
        """As an address gives it."""
        return cls(
            text=query.get("q", "").strip()[:_LONGEST],
            path=query.get("path", "").strip()[:_LONGEST],
            tool=query.get("tool", "").strip()[:_LONGEST],
            failed=query.get("failed", "") == "1",
        )

    def __bool__(self) -> bool:
        return bool(self.text or self.path or self.tool or self.failed)

    @property
    def query(self) -> str:
        """As it stands in an address."""
        given = {"q": self.text, "path": self.path, "tool": self.tool, "failed": "1" if self.failed else ""}
        return urlencode({name: value for name, value in given.items() if value}, errors="backslashreplace")

    @property
    def only_nodes(self) -> bool:
        """Whether what is no call cannot be meant."""
        return bool(self.path or self.tool)


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The numbers of the rows, and the nodes of which not every changed path is known."""

    rows: tuple[int, ...]
    unsure: tuple[str, ...] = ()


def found_in(library: Library, reading: Reading, wanted: Wanted) -> Found:
    """The rows that are like that, in time order."""
    unsure: list[str] = []

    def changed(node: Node) -> tuple[bytes, ...]:
        span = node.metadata.workspaces.get(MAIN_WORKSPACE)
        if span is None or span.diff_total <= len(span.diff_summary):
            return changed_paths(node, None)
        try:
            with library.snapshots(reading) as store:
                return changed_paths(node, store)
        except DamagedError:
            unsure.append(node.record_uid)
            return tuple(change.path for change in span.diff_summary)

    nodes = selected(reading.timeline, _selection(wanted), changed=changed)
    rows = tuple(
        row.index
        for row in reading.rows.all
        if (row.node is not None and row.uid in nodes) or (row.node is None and _told(row, wanted))
    )
    return Found(rows=rows, unsure=tuple(unsure))


def _selection(wanted: Wanted) -> Selection:
    path = wanted.path
    return Selection(
        text=wanted.text or None,
        path=(path if _WILD & set(path) else f"*{path}*") if path else None,
        tool=wanted.tool or None,
        failed=wanted.failed,
    )


def _told(row: Row, wanted: Wanted) -> bool:
    """Whether what is no finished call is like that."""
    if wanted.only_nodes or (wanted.failed and not row.entry.failed):
        return False
    if not wanted.text:
        return True
    text = wanted.text.casefold()
    return any(
        text in each.casefold() for each in (row.entry.text, row.entry.outcome, *event_texts(row).values())
    )
