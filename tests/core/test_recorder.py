"""The order of lines around a call, and who is said to have changed what."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from agentrewind.clock import SystemClock
from agentrewind.errors import StorageError
from agentrewind.journal import SegmentWriter, create_segment, read_segment
from agentrewind.recorder import Recorder
from agentrewind.records import (
    AttemptFailed,
    Change,
    CommitId,
    ErrorRecord,
    InputId,
    LlmNode,
    MessageList,
    OutsideChange,
    Record,
    RecordUid,
    SnapshotTaken,
    Started,
    ToolNode,
)
from agentrewind.tickets import SHOWN_CHANGES, LlmFacts
from agentrewind.workspace.policy import Policy
from agentrewind.workspace.snapshots import SnapshotStore
from agentrewind.workspace.tracker import Snapshot, Workspace
from tests.records import header

FACTS = LlmFacts(
    conversation="main",
    client="plain",
    model="m",
    parameters={},
    messages=MessageList(base=None, keep=0, append=()),
    tools=None,
)
ASKED, OTHER = InputId("sha256:1"), InputId("sha256:2")
FAILED = ErrorRecord(type="builtins:RuntimeError", message="overloaded")


class Journal:
    """A real segment; remembers which appends were durable and can be told to fail."""

    def __init__(self, path: Path) -> None:
        create_segment(path, header())
        self.path = path
        self.durable: list[str] = []
        self.full = False
        self._writer = SegmentWriter(path)

    def append(self, record: Record, *, durable: bool) -> None:
        if self.full:
            raise StorageError("the disk is full")
        self._writer.append(record, durable=durable)
        if durable:
            self.durable.append(type(record).__name__)

    def close(self) -> None:
        self._writer.close()

    @property
    def lines(self) -> list[Record]:
        return [record for _, record in read_segment(self.path).records]

    @property
    def kinds(self) -> list[str]:
        return [f"{type(line).__name__} {getattr(line, 'record_uid', '')}".strip() for line in self.lines]


@dataclass
class Slow:
    """A real workspace whose snapshots wait until they may begin, and say which thread took them."""

    files: Workspace
    gate: threading.Event = field(default_factory=threading.Event)
    taken: list[tuple[str, str]] = field(default_factory=list)

    def snapshot(self, *, label: str, hurried: bool) -> Snapshot:
        assert self.gate.wait(10)
        taken = self.files.snapshot(label=label)
        self.taken.append((label, threading.current_thread().name))
        return taken

    def catch_up(self) -> None:
        self.files.catch_up()

    def changes(self, before: CommitId, after: CommitId) -> tuple[Change, ...]:
        return self.files.changes(before, after)


@dataclass
class Desk:
    root: Path
    journal: Journal
    snapshots: Slow
    recorder: Recorder

    def llm(self, asked: InputId = ASKED) -> LlmNode:
        return self.recorder.end_llm(self.recorder.begin_llm(asked), FACTS, {"content": "x"})

    def tool(self, action: Callable[[], object] = lambda: None, *, call_id: str = "call_1") -> ToolNode:
        ticket = self.recorder.begin_tool(
            name="bash", call_id=call_id, arguments={}, input_id=OTHER, parent=None, ordinal=0
        )
        action()
        return self.recorder.end_tool(ticket, output="done", error=None)

    def fail(self, asked: InputId = ASKED) -> None:
        self.recorder.fail_llm(self.recorder.begin_llm(asked), FACTS, FAILED)

    def write(self, name: str, text: str = "x") -> Callable[[], object]:
        return lambda: (self.root / name).write_text(text)

    def spans(self) -> dict[str, list[tuple[str, bytes]]]:
        """What each snapshot event says that its node changed."""
        return {
            event.record_uid: [
                (change.status, change.path) for change in event.workspaces["ws0"].diff_summary
            ]
            for event in self.journal.lines
            if isinstance(event, SnapshotTaken)
        }

    def outside(self) -> list[tuple[str | None, list[bytes]]]:
        return [
            (event.after, [change.path for change in event.workspaces["ws0"].diff_summary])
            for event in self.journal.lines
            if isinstance(event, OutsideChange)
        ]


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    root = tmp_path / "workspace"
    root.mkdir()
    files = Workspace(
        root=root,
        store=SnapshotStore.open(tmp_path / "snapshots.git"),
        policy=Policy.default(),
        ref="refs/agentrewind/tests/segment-0000",
        clock=SystemClock(),
    )
    snapshots, journal = Slow(files), Journal(tmp_path / "segment-0000.jsonl")
    snapshots.gate.set()
    numbers = iter(range(1, 1000))
    recorder = Recorder(
        journal=journal,
        snapshots=snapshots,
        clock=SystemClock(),
        next_uid=lambda: RecordUid(f"rec_{next(numbers):06d}"),
        processes=lambda: ((17, 3),),
    )
    yield Desk(root, journal, snapshots, recorder)
    journal.full = False
    recorder.close()
    files.close()
    journal.close()


def test_intent_then_outcome_then_the_state_after(desk: Desk) -> None:
    desk.llm()
    desk.tool(desk.write("a"))
    desk.llm(OTHER)
    assert desk.journal.kinds == [
        "Started rec_000001",
        "LlmNode rec_000001",
        "SnapshotTaken rec_000001",
        "Started rec_000002",
        "ToolNode rec_000002",
        "Started rec_000003",
        "SnapshotTaken rec_000002",
        "LlmNode rec_000003",
    ]
    assert desk.journal.durable == ["Started", "Started", "Started"]
    assert desk.spans() == {"rec_000001": [], "rec_000002": [("A", b"a")]}


def test_the_intent_is_durable_before_the_tool_runs_and_names_the_processes(desk: Desk) -> None:
    def look() -> None:
        last = desk.journal.lines[-1]
        assert isinstance(last, Started)
        assert (last.tool_name, last.processes) == ("bash", ((17, 3),))
        assert desk.journal.durable == ["Started"]

    desk.tool(look)


def test_each_node_begins_where_the_one_before_it_ended(desk: Desk) -> None:
    for number in range(3):
        desk.tool(desk.write("a", str(number)))
    desk.recorder.settle("end")
    before = [
        line.metadata.workspaces["ws0"].before_commit
        for line in desk.journal.lines
        if isinstance(line, ToolNode)
    ]
    after = [
        line.workspaces["ws0"].after_commit for line in desk.journal.lines if isinstance(line, SnapshotTaken)
    ]
    assert before[1:] == after[:-1]
    assert len({*before, *after}) == 4


def test_the_snapshot_is_taken_while_the_model_answers(desk: Desk) -> None:
    desk.snapshots.gate.clear()
    ticket = desk.recorder.begin_llm(ASKED)
    # the call is under way and its snapshot has not even begun
    assert desk.journal.kinds == ["Started rec_000001"]
    desk.write("a")()
    desk.snapshots.gate.set()
    time.sleep(0.05)
    assert desk.snapshots.taken[0][0] == "before rec_000001"
    assert desk.snapshots.taken[0][1] != threading.current_thread().name
    node = desk.recorder.end_llm(ticket, FACTS, {})
    assert node.metadata.workspaces["ws0"].before_commit is not None


@pytest.mark.parametrize("ending", ["answers", "fails"])
def test_an_answer_is_not_given_before_the_snapshot_is_done(desk: Desk, ending: str) -> None:
    desk.snapshots.gate.clear()
    ticket = desk.recorder.begin_llm(ASKED)
    threading.Timer(0.1, desk.snapshots.gate.set).start()
    began = time.monotonic()
    if ending == "answers":
        desk.recorder.end_llm(ticket, FACTS, {})
    else:
        desk.recorder.fail_llm(ticket, FACTS, FAILED)
    assert time.monotonic() - began > 0.05
    assert len(desk.snapshots.taken) == 1


def test_a_tool_of_another_thread_waits_for_the_snapshot_of_a_call_under_way(desk: Desk) -> None:
    desk.snapshots.gate.clear()
    ticket = desk.recorder.begin_llm(ASKED)
    ran = threading.Event()
    thread = threading.Thread(target=lambda: desk.tool(ran.set))
    thread.start()
    assert not ran.wait(0.1)
    desk.snapshots.gate.set()
    thread.join(5)
    assert ran.is_set()
    desk.recorder.end_llm(ticket, FACTS, {})


def test_the_latency_is_that_of_the_call_and_not_of_the_snapshot(desk: Desk) -> None:
    desk.snapshots.gate.clear()
    ticket = desk.recorder.begin_llm(ASKED)
    threading.Timer(0.3, desk.snapshots.gate.set).start()
    metadata = desk.recorder.end_llm(ticket, FACTS, {}).metadata
    assert metadata.latency_ms < 200
    assert 200_000 < (metadata.snapshot_us or 0) < 5_000_000
    desk.tool(desk.write("a"))
    (node,) = (line for line in desk.journal.lines if isinstance(line, ToolNode))
    assert node.metadata.snapshot_us is not None


# --- changes from outside ---


def test_what_changes_while_only_the_model_works_came_from_outside(desk: Desk) -> None:
    desk.llm()
    desk.write("by-a-person")()
    desk.llm(OTHER)
    assert desk.outside() == [("rec_000001", [b"by-a-person"])]


def test_what_changes_between_a_tool_and_the_next_call_is_said_to_be_the_tools(desk: Desk) -> None:
    desk.tool(desk.write("a"))
    desk.write("late")()
    desk.llm()
    assert desk.outside() == []
    assert desk.spans()["rec_000001"] == [("A", b"a"), ("A", b"late")]


def test_a_change_after_the_tools_state_is_known_came_from_outside(desk: Desk) -> None:
    desk.tool(desk.write("a"))
    desk.recorder.settle("submission")
    desk.write("b")()
    desk.llm()
    assert desk.outside() == [("rec_000001", [b"b"])]


def test_nothing_is_outside_where_nothing_changed_or_nothing_was_known(desk: Desk) -> None:
    desk.write("there before")()
    desk.llm()
    desk.llm(OTHER)
    desk.recorder.settle("end")
    assert desk.outside() == []


def test_after_a_restart_a_change_is_outside_unless_a_tool_had_run(tmp_path: Path, desk: Desk) -> None:
    first = desk.recorder.settle("first").commit
    desk.write("meanwhile")()

    def again(uid: str, *, quiet: bool) -> None:
        recorder = Recorder(
            journal=desk.journal,
            snapshots=desk.snapshots,
            clock=SystemClock(),
            next_uid=lambda: RecordUid("rec_000009"),
            processes=tuple,
            last=first,
            last_uid=RecordUid(uid),
            unsettled=[(RecordUid(uid), first)],
        )
        if quiet:
            recorder.expect_nothing_of([RecordUid(uid)])
        recorder.settle("again")
        recorder.close()

    again("rec_000001", quiet=True)
    assert desk.outside() == [("rec_000001", [b"meanwhile"])]
    again("rec_000002", quiet=False)
    assert len(desk.outside()) == 1


# --- attempts ---


def test_attempts_of_an_equal_request_are_one_node(desk: Desk) -> None:
    desk.fail()
    desk.fail()
    node = desk.llm()
    assert (node.record_uid, node.metadata.attempts, node.error) == ("rec_000001", 3, None)
    started = [line for line in desk.journal.lines if isinstance(line, Started)]
    assert [(each.record_uid, each.attempt) for each in started] == [("rec_000001", n) for n in (1, 2, 3)]
    assert [line.attempt for line in desk.journal.lines if isinstance(line, AttemptFailed)] == [1, 2]
    assert desk.journal.durable.count("AttemptFailed") == 2


@pytest.mark.parametrize("follower", ["llm", "tool"])
def test_a_call_that_was_given_up_is_closed_by_what_follows(desk: Desk, follower: str) -> None:
    desk.fail()
    desk.fail()
    if follower == "llm":
        desk.llm(OTHER)
    else:
        desk.tool()
    nodes = [line for line in desk.journal.lines if isinstance(line, LlmNode | ToolNode)]
    assert [node.record_uid for node in nodes] == ["rec_000001", "rec_000002"]
    failed = nodes[0]
    assert isinstance(failed, LlmNode)
    assert (failed.error, failed.output, failed.metadata.attempts) == (FAILED, None, 2)
    assert failed.metadata.workspaces["ws0"].before_commit is not None
    # the same request later is a new node
    assert desk.llm().metadata.attempts == 1


def test_a_call_that_failed_last_stays_open_so_that_a_resumed_run_makes_it_again(desk: Desk) -> None:
    desk.fail()
    desk.recorder.settle("end")
    assert not [line for line in desk.journal.lines if isinstance(line, LlmNode)]


# --- what else ---


def test_a_full_disk_refuses_the_intent_and_no_tool_runs(desk: Desk) -> None:
    desk.tool()
    desk.journal.full = True
    with pytest.raises(StorageError):
        desk.tool(lambda: pytest.fail("ran"))
    with pytest.raises(StorageError):
        desk.recorder.begin_llm(ASKED)
    desk.journal.full = False
    # a number that was left out would be taken for a line that is gone
    assert (desk.llm().record_uid, desk.tool().record_uid) == ("rec_000002", "rec_000003")


def test_a_snapshot_that_fails_while_the_model_answers_is_told_at_its_end(desk: Desk) -> None:
    desk.tool(desk.write("a"))
    desk.snapshots.gate.clear()
    ticket = desk.recorder.begin_llm(ASKED)
    desk.journal.full = True
    desk.snapshots.gate.set()
    with pytest.raises(StorageError):
        desk.recorder.end_llm(ticket, FACTS, {})


def test_long_lists_of_changes_are_cut_and_counted(desk: Desk) -> None:
    def many() -> None:
        for number in range(SHOWN_CHANGES + 7):
            desk.write(f"file-{number}")()

    desk.tool(many)
    desk.recorder.settle("end")
    (event,) = [line for line in desk.journal.lines if isinstance(line, SnapshotTaken)]
    span = event.workspaces["ws0"]
    assert (len(span.diff_summary), span.diff_total) == (SHOWN_CHANGES, SHOWN_CHANGES + 7)


def test_uids_ascend_whichever_thread_asks(desk: Desk) -> None:
    threads = [threading.Thread(target=desk.llm, args=(InputId(f"sha256:{n}"),)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    started = [line.record_uid for line in desk.journal.lines if isinstance(line, Started)]
    assert started == sorted(started)
    assert len({line.record_uid for line in desk.journal.lines if isinstance(line, LlmNode)}) == 6
