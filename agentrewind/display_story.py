"""Folds the records of a run, as they come in, into entries that can be shown as a tree.

Pure. It is fed by a follower of a live run as well as from a finished log.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import islice
from typing import TypeAlias, assert_never

import orjson

from agentrewind import graph_steps, nested
from agentrewind.display_text import file_name
from agentrewind.journal import SegmentRead
from agentrewind.records import (
    AttemptFailed,
    Event,
    Finished,
    ForkPoint,
    Header,
    Json,
    JsonObject,
    LlmNode,
    Node,
    NodeKind,
    Note,
    OutsideChange,
    ProcessesEnded,
    Record,
    RecordUid,
    Restored,
    Resumed,
    RewindAsked,
    RewindDone,
    SafetySnapshot,
    SnapshotTaken,
    Started,
    Submission,
    ToolNode,
    WorkspaceSpan,
)
from agentrewind.rewind.candidates import exit_code

_NAMED = 3

_Move: TypeAlias = RewindAsked | RewindDone | Restored | SafetySnapshot
_Remark: TypeAlias = OutsideChange | ProcessesEnded | Resumed | Note


class Sort(StrEnum):
    """What an entry is about; decides how it is coloured and indented."""

    ANSWER = "answer"
    CALL = "call"
    ACCEPTED = "accepted"
    REJECTED = "rejected"
    REWIND = "rewind"
    MEMORY = "memory"
    TROUBLE = "trouble"
    NOTE = "note"
    END = "end"


@dataclass(slots=True, kw_only=True)
class Entry:
    """A line of the tree. Text comes from agents and tools as it was; showing it makes it safe.

    Attributes:
        outcome: what came of it, empty while that is open.
        changed: how many paths it changed; `paths` names the first of them, repositories' own files aside.
        running: a call that was begun and whose end is not known.
        event: the record that it tells of, where that is no node.
    """

    sort: Sort
    text: str
    uid: RecordUid | None = None
    outcome: str = ""
    changed: int = 0
    paths: tuple[str, ...] = ()
    running: bool = False
    failed: bool = False
    event: Event | None = None


@dataclass(slots=True, kw_only=True)
class Branch:
    """The entries of one segment, and where it leaves an earlier one."""

    fork: ForkPoint | None = None
    entries: list[Entry] = field(default_factory=list)


class Story:
    """All segments of a run as branches of entries."""

    def __init__(self) -> None:
        self.header: Header | None = None
        self.branches: dict[int, Branch] = {}
        self.home: dict[RecordUid, int] = {}
        self._by_uid: dict[RecordUid, Entry] = {}
        self._submissions = 0

    @property
    def head(self) -> int:
        """The current segment."""
        return max(self.branches, default=0)

    @property
    def nodes(self) -> int:
        """How many calls have been begun."""
        return len(self._by_uid)

    def add(self, segment: int, record: Record) -> tuple[Entry, ...]:
        """Take in one record; returns the entries that are complete by it, in the order to show them."""
        branch = self.branches.setdefault(segment, Branch())
        match record:
            case Header():
                self.header = self.header or record
                own = record.forked_from is not None and record.forked_from.run_id == record.run_id
                branch.fork = record.forked_from if own else None
                return ()
            case LlmNode() | ToolNode():
                return (self._node(segment, record),)
            case _:
                return self._event(segment, record)

    def add_gap(self, segment: int, reason: str) -> None:
        """Something stood here that cannot be read."""
        branch = self.branches.setdefault(segment, Branch())
        branch.entries.append(Entry(sort=Sort.TROUBLE, text=f"gap in the log: {reason}"))

    def _node(self, segment: int, node: Node) -> Entry:
        entry = self._entry_of(segment, node.record_uid)
        entry.running = False
        if isinstance(node, LlmNode):
            entry.sort, entry.text = Sort.ANSWER, said(node.output)
        else:
            entry.sort, entry.text = Sort.CALL, called(node.tool_name, node.arguments)
        entry.outcome, entry.failed = _outcome(node)
        return entry

    def _entry_of(self, segment: int, uid: RecordUid) -> Entry:
        entry = self._by_uid.get(uid)
        if entry is None:
            entry = Entry(sort=Sort.CALL, text="", uid=uid)
            self._by_uid[uid] = entry
            self.home[uid] = segment
            self.branches[segment].entries.append(entry)
        return entry

    def _event(self, segment: int, event: Event) -> tuple[Entry, ...]:
        match event:
            case Started():
                self._started(segment, event)
            case AttemptFailed():
                entry = self._entry_of(segment, event.record_uid)
                entry.outcome = f"attempt {event.attempt} failed: {event.error.message or event.error.type}"
                return (Entry(sort=Sort.TROUBLE, text=entry.outcome, uid=entry.uid),)
            case SnapshotTaken():
                if (found := self._by_uid.get(event.record_uid)) is not None:
                    found.changed, found.paths = _paths(event.workspaces), _named(event.workspaces)
            case _:
                new = self._told(event)
                for entry in new:
                    entry.event = event
                self.branches[segment].entries += new
                return tuple(new)
        return ()

    def _started(self, segment: int, event: Started) -> None:
        entry = self._entry_of(segment, event.record_uid)
        entry.running = True
        if event.node_kind is NodeKind.LLM:
            entry.sort, entry.text = Sort.ANSWER, "the model is asked"
        else:
            entry.text = event.tool_name or "a tool"
        if event.attempt > 1:
            entry.outcome = f"attempt {event.attempt}"

    def _told(self, event: _Move | _Remark | Submission | Finished) -> list[Entry]:
        match event:
            case Submission():
                self._submissions += 1
                return [_verdict(event, self._submissions)]
            case Finished():
                failed = event.state != "accepted"
                return [Entry(sort=Sort.END, text=event.state, outcome=event.detail, failed=failed)]
            case RewindAsked() | RewindDone() | Restored() | SafetySnapshot():
                return _move(event)
            case _:
                return _remark(event)


def _move(event: _Move) -> list[Entry]:
    match event:
        case RewindAsked():
            text = f"goes back to {event.target}" + (f": {event.reason}" if event.reason else "")
            return [Entry(sort=Sort.REWIND, text=text)]
        case RewindDone():
            return _rewound(event)
        case Restored():
            return [Entry(sort=Sort.REWIND, text=_restored(event))]
        case SafetySnapshot():
            return []
        case _:
            assert_never(event)


def _remark(event: _Remark) -> list[Entry]:
    match event:
        case OutsideChange():
            texts = [f"{_paths(event.workspaces)} path(s) changed while no tool call ran"]
        case ProcessesEnded():
            texts = [f"ended: {each}" for each in event.ended]
        case Resumed():
            texts = [f"a fresh process goes on ({event.detail})"]
        case Note(topic=nested.TOPIC):
            texts = []  # what code printed stands in the next request
        case Note(topic=graph_steps.TOPIC, data={"record_uid": _}):
            texts = []  # shown with the node
        case Note():
            texts = [f"{event.topic}: {event.text}"]
        case _:
            assert_never(event)
    return [Entry(sort=Sort.NOTE, text=text) for text in texts]


def story_of(reads: Iterable[SegmentRead]) -> Story:
    """The story of all that can be read, gaps where they are."""
    story = Story()
    for read in reads:
        if read.header is not None:
            story.add(read.segment, read.header)
        damages = list(read.damages)
        for offset, record in read.records:
            while damages and damages[0].offset < offset:
                story.add_gap(read.segment, str(damages.pop(0)))
            story.add(read.segment, record)
        for damage in damages:
            story.add_gap(read.segment, str(damage))
    return story


def said(output: JsonObject | None) -> str:
    """What an answer says, or which tools it calls where it says nothing."""
    if output is None:
        return "no answer"
    content = output.get("content")
    if isinstance(content, list):
        content = " ".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    if isinstance(content, str) and content.strip():
        return content.strip()
    calls = output.get("tool_calls")
    names = [_name(call) for call in calls if isinstance(call, dict)] if isinstance(calls, list) else []
    return f"calls {', '.join(names)}" if names else "an empty answer"


def called(name: str, arguments: Json) -> str:
    """A tool call on a line: a shell command as such, everything else with its arguments."""
    if isinstance(arguments, dict):
        command = arguments.get("command")
        if isinstance(command, str) and len(arguments) == 1:
            return f"{name}  {command}" if name != "bash" else f"$ {command}"
        shown = ", ".join(f"{key}: {_brief(value)}" for key, value in arguments.items())
        return f"{name}({shown})"
    return f"{name}({_brief(arguments)})"


def _name(call: Mapping[str, Json]) -> str:
    function = call.get("function")
    return str(function.get("name", "?")) if isinstance(function, dict) else str(call.get("name", "?"))


def _brief(value: Json) -> str:
    if isinstance(value, str):
        return value
    try:
        return orjson.dumps(value).decode()
    except (TypeError, orjson.JSONEncodeError):
        return repr(value)


def _outcome(node: Node) -> tuple[str, bool]:
    if node.error is not None:
        return f"{node.error.type.rpartition(':')[2]}: {node.error.message}", True
    if isinstance(node, LlmNode):
        return (f"{node.metadata.attempts} attempts" if node.metadata.attempts > 1 else ""), False
    if node.interrupted:
        return "interrupted, effect unknown", True
    code = exit_code(node)
    return ("" if code is None else f"exit {code}"), code not in (None, 0)


def _verdict(event: Submission, number: int) -> Entry:
    if event.accepted:
        return Entry(sort=Sort.ACCEPTED, text=f"submission {number} accepted")
    where = f" at {event.criterion}" if event.criterion else ""
    again = f" ({event.repeated} times in a row)" if event.repeated > 1 else ""
    first = event.feedback.strip().partition("\n")[0]
    return Entry(sort=Sort.REJECTED, text=f"submission {number} rejected{where}{again}", outcome=first)


def _rewound(event: RewindDone) -> list[Entry]:
    found = [Entry(sort=Sort.REWIND, text=f"rewind to {event.target}", outcome=moved(event.report))]
    message = event.report.get("memory_message")
    if isinstance(message, str):
        found.append(Entry(sort=Sort.MEMORY, text=message))
    return found


def _restored(event: Restored) -> str:
    where = f" to {event.record_uid}" if event.record_uid else ""
    by = {"undo": "undo", "person": "restore by a person"}.get(event.by, "files put back")
    return f"{by}{where}: {moved(event.report)}"


def moved(report: Mapping[str, Json]) -> str:
    """What a restore did, in figures."""
    if isinstance(left := report.get("environment"), str):
        return f"files {left}"
    parts = []
    for name in ("created", "modified", "deleted"):
        paths = report.get(name)
        if isinstance(paths, list) and paths:
            parts.append(f"{len(paths)} {name}")
    return ", ".join(parts) or "no file had changed"


def _paths(spans: Mapping[str, WorkspaceSpan]) -> int:
    return sum(span.diff_total or len(span.diff_summary) for span in spans.values())


def _named(spans: Mapping[str, WorkspaceSpan]) -> tuple[str, ...]:
    paths = (change.path for span in spans.values() for change in span.diff_summary)
    own = (path for path in paths if b".git" not in path.split(b"/"))
    return tuple(file_name(path) for path in islice(own, _NAMED))
