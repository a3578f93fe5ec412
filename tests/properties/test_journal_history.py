"""Law: a run of records, rewinds, undos, fresh starts and kills agrees with plain lists."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass, field, replace
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from agentrewind.records import ForkPoint, JsonObject, LlmNode, RecordUid, RewindAsked
from agentrewind.run_store import RunStore
from tests.records import asked, done, fork_at, header, llm, metadata, started, tool, uid


@dataclass
class Branch:
    """What a segment amounts to: all nodes that lead to its end, and the notes in force."""

    path: list[int] = field(default_factory=list)
    notes: list[RewindAsked] = field(default_factory=list)


class History(RuleBasedStateMachine):
    """Acts on a real run on disk and on plain lists at the same time."""

    def __init__(self) -> None:
        super().__init__()
        self.home = Path(tempfile.mkdtemp())
        self.run = RunStore(self.home).create(header())
        self.branches = [Branch()]
        self.homes: dict[int, int] = {}
        self.messages: dict[int, list[JsonObject]] = {}
        self.whole: set[int] = set()
        self.unfinished: list[int] = []
        self.last = 0

    def teardown(self) -> None:
        shutil.rmtree(self.home)

    @property
    def head(self) -> int:
        return len(self.branches) - 1

    @property
    def path(self) -> list[int]:
        return self.branches[-1].path

    def _next(self) -> int:
        self.last += 1
        assert self.run.timeline().next_uid() == uid(self.last)
        return self.last

    @rule(drop=st.integers(0, 3), add=st.integers(0, 2), whole=st.booleans())
    def model_call(self, drop: int, add: int, whole: bool) -> None:
        number = self._next()
        before = [earlier for earlier in self.path if earlier in self.messages]
        base = before[-1] if before else None
        known = [] if base is None else self.messages[base]
        keep = max(0, len(known) - drop)
        new: list[JsonObject] = [{"n": number, "place": place} for place in range(add)]
        meta = metadata(number, partial=() if whole else ("a",))
        with self.run.writer(self.head) as writer:
            writer.append(started(number), durable=False)
            writer.append(llm(number, base=base, keep=keep, append=tuple(new), meta=meta), durable=False)
        self.messages[number] = known[:keep] + new
        if whole:
            self.whole.add(number)
        self._finished(number)

    @rule()
    def tool_call(self) -> None:
        number = self._next()
        with self.run.writer(self.head) as writer:
            writer.append(started(number), durable=False)
            writer.append(replace(tool(number), parent=None), durable=False)
        self._finished(number)

    def _finished(self, number: int) -> None:
        self.path.append(number)
        self.homes[number] = self.head

    @rule(cut=st.integers(1, 60))
    def killed_in_a_call(self, cut: int) -> None:
        number = self._next()
        with self.run.writer(self.head) as writer:
            writer.append(started(number), durable=False)
        with self.run.segment_path(self.head).open("ab") as file:
            file.write(b'{"record_uid":"rec_000001","kind":"tool","input_id":"sha256:0000"'[:cut])
        self.unfinished.append(number)

    @precondition(lambda self: any(number in self.messages for number in self.path))
    @rule(data=st.data(), noted=st.booleans())
    def rewind(self, data: st.DataObject, noted: bool) -> None:
        target = data.draw(st.sampled_from([number for number in self.path if number in self.messages]))
        segment = len(self.branches)
        decision = replace(asked(segment, target), memory=f"lesson {segment}" if noted else "")
        with self.run.writer(self.head) as writer:
            writer.append(decision, durable=False)
        assert self.run.timeline().pending_rewind() == decision
        path = self.path[: self.path.index(target)]
        notes = [*self.branches[-1].notes, *([decision] if noted else [])]
        self._open(fork_at(target, segment=self.homes[target]), path, notes)
        with self.run.writer(self.head) as writer:
            writer.append(done(segment, target), durable=False)

    @rule(data=st.data())
    def undo(self, data: st.DataObject) -> None:
        number = data.draw(st.integers(0, self.head))
        branch = self.branches[number]
        last = branch.path[-1] if branch.path else None
        point = fork_at(last, segment=number, inclusive=True)
        self._open(point, list(branch.path), list(branch.notes))

    @rule()
    def fresh_start(self) -> None:
        self._open(None, [], [])

    def _open(self, point: ForkPoint | None, path: list[int], notes: list[RewindAsked]) -> None:
        self.run.create_segment(header(len(self.branches), fork=point))
        self.branches.append(Branch(path=path, notes=notes))
        self.unfinished = []

    @invariant()
    def the_timeline_agrees(self) -> None:
        line = self.run.timeline()
        assert line.head == self.head
        for number, branch in enumerate(self.branches):
            assert [node.record_uid for node in line.path(number)] == [uid(each) for each in branch.path]
            assert line.memories(number) == tuple(branch.notes)
        for number, home in self.homes.items():
            assert line.segment_of(uid(number)) == home
            assert line.on_path(uid(number)) == (number in self.path)
        for number, messages in self.messages.items():
            assert line.messages(uid(number)) == tuple(messages)
        checkpoints = [number for number in self.path if number in self.messages and number in self.whole]
        assert _uids(line.checkpoints()) == [uid(number) for number in checkpoints]
        assert [each.record_uid for each in line.started_unfinished()] == list(map(uid, self.unfinished))
        assert line.pending_rewind() is None
        assert line.gaps() == ()


def _uids(nodes: tuple[LlmNode, ...]) -> list[RecordUid]:
    return [node.record_uid for node in nodes]


TestHistory = History.TestCase
TestHistory.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
