"""Sums a run up: what it was to do, where, how it stands, and its rewinds with their notes."""

from __future__ import annotations

from dataclasses import dataclass

from agentrewind.errors import DamagedError
from agentrewind.provenance import is_recorded
from agentrewind.records import MAIN_WORKSPACE, RewindAsked
from agentrewind.usage import usage_of
from agentrewind.view.parts import Text, piece
from agentrewind.view.reading import Reading
from agentrewind.view.rows import Row
from agentrewind.view.visible import title, visible

_LONGEST_NOTE = 600


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewind:
    """A rewind: the row that tells of the decision, the row of its target, and the note."""

    row: Row
    target: Row | None
    note: str
    by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """A run summed up; what its damaged header no longer tells is missing.

    `parent` is the run that it is a fork of, and the node there.
    """

    facts: tuple[tuple[str, str], ...]
    parent: tuple[str, str] | None
    task: Text | None
    rewinds: tuple[Rewind, ...]


def about(reading: Reading) -> About:
    """The run summed up."""
    facts: list[tuple[str, str]] = []
    task = None
    try:
        header = reading.timeline.header
    except DamagedError as error:
        facts.append(("header", str(error)))
    else:
        workspace = header.workspaces.get(MAIN_WORKSPACE)
        check, told = header.options.get("check"), header.options.get("task")
        facts += [
            ("harness", header.harness or "script"),
            ("recorded", "" if is_recorded(header) else "no, this run was made of a trajectory"),
            ("model", header.model or "any model"),
            ("workspace", workspace.root if workspace else ""),
            ("its files are in", (workspace.copy or "") if workspace else ""),
            ("began", header.created_at),
            ("check", check if isinstance(check, str) else ""),
        ]
        task = piece(told, "task", length=2000) if isinstance(told, str) and told else None
    finished = reading.timeline.last_finished()
    if finished is not None and not reading.running:
        facts.append(("ended", f"{finished.state}: {finished.detail}"))
    facts += _spent(reading)
    return About(
        parent=_parent(reading),
        facts=tuple((name, title(value, 400)) for name, value in facts if value),
        task=task,
        rewinds=tuple(_rewinds(reading)),
    )


def _parent(reading: Reading) -> tuple[str, str] | None:
    for number in reading.timeline.segments:
        header = reading.timeline.header_of(number)
        fork = header.forked_from if header is not None else None
        if header is not None and fork is not None and fork.run_id != header.run_id:
            return fork.run_id, fork.record_uid or ""
    return None


def _spent(reading: Reading) -> list[tuple[str, str]]:
    usage = usage_of(reading.timeline.nodes.values())
    found = []
    if usage.tokens_in is not None:
        silent = f", {usage.silent} answers told none" if usage.silent else ""
        found.append(("tokens", f"{usage.tokens_in:,} in, {usage.tokens_out or 0:,} out{silent}"))
    if usage.cost is not None:
        found.append(("cost", f"${usage.cost:.4f}"))
    return found


def _rewinds(reading: Reading) -> list[Rewind]:
    return [
        Rewind(
            row=row,
            target=reading.rows.find(row.event.target),
            note=visible(row.event.memory[:_LONGEST_NOTE]).text,
            by=title(row.event.by, 20),
        )
        for row in reading.rows.all
        if isinstance(row.event, RewindAsked)
    ]
