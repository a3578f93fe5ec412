"""Puts together what the page shows of one row: the request, the answer, calls, results, files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from agentrewind.display_story import Sort
from agentrewind.errors import AgentRewindError, DamagedError
from agentrewind.records import (
    MAIN_WORKSPACE,
    Change,
    CommitId,
    Event,
    JsonObject,
    LlmNode,
    OutsideChange,
    Restored,
    RewindAsked,
    RewindDone,
    Submission,
    ToolNode,
    WorkspaceSpan,
)
from agentrewind.usage import usage_of
from agentrewind.view.elsewhere import Elsewhere, elsewhere
from agentrewind.view.files import Files, files_between
from agentrewind.view.parts import (
    SHOWN,
    Message,
    Text,
    answer_texts,
    event_texts,
    messages_of,
    piece,
    tool_texts,
)
from agentrewind.view.reading import Library, Reading
from agentrewind.view.rows import Row
from agentrewind.view.visible import title, visible

_CALLED = 2500
_HEADINGS = {
    Sort.ACCEPTED: "verdict: accepted",
    Sort.REJECTED: "verdict: rejected",
    Sort.REWIND: "rewind",
    Sort.MEMORY: "rewind memory",
    Sort.TROUBLE: "gap in the log",
    Sort.NOTE: "note",
    Sort.END: "end",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Called:
    """A tool call below an answer: its row, arguments, and the beginning of what came of it."""

    row: Row
    arguments: Text
    result: Text | None
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Around:
    """The snapshots around a row, None where unknown, and the files that differ between them."""

    files: Files | None = None
    before: CommitId | None = None
    after: CommitId | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Pane:
    """All that is shown of one row at first; the rest is fetched when it is asked for.

    Attributes:
        facts: short words about it, as name and value.
        messages: those that the request had and its base had not; `earlier` counts the others.
        texts: its longer texts by name.
        target: the row that it speaks of or was asked for by.
        trouble: what could not be read, in words.
    """

    row: Row
    heading: str
    on_path: bool
    facts: tuple[tuple[str, str], ...]
    messages: tuple[Message, ...] = ()
    earlier: int = 0
    texts: dict[str, Text] = field(default_factory=dict)
    called: tuple[Called, ...] = ()
    target: Row | None = None
    verdict: Submission | None = None
    around: Around = Around()
    checkpoint: bool = False
    external: tuple[Elsewhere, ...] = ()
    trouble: tuple[str, ...] = ()

    @property
    def is_open(self) -> bool:
        """Whether more will be known of it: the call has no end yet, or the state after it is not known."""
        if self.row.node is None:
            return self.row.uid is not None
        return self.around.files is not None and not self.around.files.known


def pane_of(library: Library, reading: Reading, row: Row, *, length: int = SHOWN) -> Pane:
    """What is shown of a row, `length` characters of each text; damage is told in it, not raised."""
    match row.node:
        case LlmNode() as node:
            return _answer(library, reading, row, node, length)
        case ToolNode() as node:
            return _tool(library, reading, row, node, length)
        case _:
            return _event(library, reading, row, length)


def _answer(library: Library, reading: Reading, row: Row, node: LlmNode, length: int) -> Pane:
    trouble: list[str] = []
    messages: tuple[Message, ...] = ()
    earlier = 0
    try:
        earlier = node.messages.keep if node.messages.base else 0
        messages = tuple(messages_of(reading, row, start=earlier))
    except DamagedError as error:
        trouble.append(str(error))
    called = tuple(_called(other) for other in reading.rows.below(row))
    return Pane(
        row=row,
        heading="LLM call",
        on_path=reading.rows.layout.on_path[row.index],
        facts=_facts(row, ("model", node.model), ("client", node.client), *_usage(node)),
        messages=messages,
        earlier=earlier,
        texts={name: piece(text, name, length=length) for name, text in answer_texts(node).items()},
        called=called,
        checkpoint=reading.timeline.is_checkpoint(node.record_uid),
        external=elsewhere(library.home, node.metadata.external),
        trouble=tuple(trouble),
        around=_around(library, reading, node.metadata.workspaces),
    )


def _tool(library: Library, reading: Reading, row: Row, node: ToolNode, length: int) -> Pane:
    verdict = next(
        (each for each in reading.timeline.submissions() if each.record_uid == node.record_uid), None
    )
    texts = tool_texts(node)
    if verdict is not None and verdict.feedback:
        texts["feedback"] = verdict.feedback
    facts = [("tool", node.tool_name), ("outcome", row.entry.outcome or "no exit code")]
    return Pane(
        row=row,
        heading="tool call",
        on_path=reading.rows.layout.on_path[row.index],
        facts=_facts(row, *facts),
        texts={name: piece(text, name, length=length) for name, text in texts.items()},
        target=reading.rows.find(node.parent) if node.parent else None,
        verdict=verdict,
        external=elsewhere(library.home, node.metadata.external),
        trouble=("interrupted: whether it had an effect is unknown",) if node.interrupted else (),
        around=_around(library, reading, node.metadata.workspaces),
    )


def _event(library: Library, reading: Reading, row: Row, length: int) -> Pane:
    event = row.event
    open_call = "call under way" if reading.running else "unfinished call"
    target = reading.rows.find(event.target) if isinstance(event, RewindAsked | RewindDone) else None
    spans = event.workspaces if isinstance(event, OutsideChange) else {}
    return Pane(
        row=row,
        heading=open_call if row.uid is not None else _HEADINGS.get(row.entry.sort, ""),
        on_path=reading.rows.layout.on_path[row.index],
        facts=_facts(row),
        texts={name: piece(text, name, length=length) for name, text in event_texts(row).items()},
        target=target,
        around=_around(library, reading, spans),
        external=elsewhere(library.home, _reported(event)),
    )


def _called(row: Row) -> Called:
    node = row.node
    assert isinstance(node, ToolNode)
    texts = tool_texts(node)
    return Called(
        row=row,
        arguments=piece(texts["arguments"], "arguments", length=_CALLED),
        result=piece(texts["result"], "result", length=_CALLED) if "result" in texts else None,
        error=visible(texts.get("error", "")[:_CALLED]).text,
    )


def _facts(row: Row, *more: tuple[str, str]) -> tuple[tuple[str, str], ...]:
    found = [*more, ("segment", str(row.segment))]
    if row.node is not None and row.node.metadata.attempts > 1:
        found.append(("attempts", str(row.node.metadata.attempts)))
    return tuple((name, title(value, 400)) for name, value in found)


def _usage(node: LlmNode) -> Iterator[tuple[str, str]]:
    usage = usage_of([node])
    for name, count in (("tokens in", usage.tokens_in), ("tokens out", usage.tokens_out)):
        if count is not None:
            yield name, f"{count:,}"
    if usage.cost is not None:
        yield "cost", f"${usage.cost:.4f}"


def _around(library: Library, reading: Reading, spans: Mapping[str, WorkspaceSpan]) -> Around:
    span = spans.get(MAIN_WORKSPACE)
    if span is None:
        return Around()
    return Around(before=span.before_commit, after=span.after_commit, files=_files(library, reading, span))


def _files(library: Library, reading: Reading, span: WorkspaceSpan) -> Files:
    changes, trouble = span.diff_summary, ""
    if span.diff_total > len(changes) and span.before_commit and span.after_commit:
        try:
            changes = changes_between(library, reading, span.before_commit, span.after_commit)
        except AgentRewindError as error:
            trouble = f"the log names {len(changes)} of {span.diff_total} changed paths: {error}"
    return files_between(
        changes,
        partial=span.partial,
        left_out=span.left_out,
        known=span.after_commit is not None,
        trouble=trouble,
    )


def changes_between(
    library: Library, reading: Reading, before: CommitId, after: CommitId
) -> tuple[Change, ...]:
    """What differs between two snapshots of the run's workspace."""
    with library.snapshots(reading) as store:
        return store.diff(before, after)


def _reported(event: Event | None) -> list[JsonObject]:
    """What the report of a move tells of state outside the workspace."""
    told = event.report.get("external") if isinstance(event, RewindDone | Restored) else None
    return [each for each in told if isinstance(each, dict)] if isinstance(told, list) else []
