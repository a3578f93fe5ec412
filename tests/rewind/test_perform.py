"""A rewind between two processes: what it leaves, and that it happens once wherever it is cut off."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from agentrewind.errors import DamagedError
from agentrewind.opening import opened_workspace
from agentrewind.options import Ablation, RunOptions
from agentrewind.processes import Identity, Process, identity_of
from agentrewind.records import (
    Change,
    CommitId,
    Header,
    JsonObject,
    OutsideChange,
    ProcessesEnded,
    RewindAsked,
    RewindDone,
    SafetySnapshot,
)
from agentrewind.replayer import Mode
from agentrewind.rewind.perform import Quiet, Rewinding, complete_opening
from agentrewind.rewind.resume import chain, resume_point
from agentrewind.rewind.signal import RewindSignal
from agentrewind.run_store import Run
from agentrewind.workspace.restore import RestoreReport
from agentrewind.workspace.tracker import Snapshot, Workspace
from tests.capture.plain import START, Provider, ask, grown, says
from tests.core.stage import CLOCK, Stage, nothing_runs

TARGET = "rec_000003"


def abandoned(directory: Path, **options: object) -> Stage:
    """A run that has asked to go back to its second answer, after spoiling files."""
    stage = Stage.create(directory, options=RunOptions(task="mend", **options))  # type: ignore[arg-type]
    (stage.root / "kept").write_text("from the start")
    with stage.live() as layer:
        first = ask(layer, Provider([says("first")]), START)
        layer.run_tool("bash", {"n": 1}, lambda: (stage.root / "good").write_text("work"))
        messages = grown(START, first)
        second = ask(layer, Provider([says("secret words of the abandoned branch")]), messages)

        def spoil() -> None:
            (stage.root / "kept").unlink()
            (stage.root / "good").write_text("spoilt")
            (stage.root / "secret-file").write_text("x")

        layer.run_tool("bash", {"n": 2}, spoil)
        ask(layer, Provider(), grown(messages, second))
        with pytest.raises(RewindSignal):
            layer.run_tool("backtrack_commit", {"record_uid": TARGET, "memory_summary": "lesson"}, dict)
    return stage


def files(stage: Stage) -> dict[str, str]:
    return {path.name: path.read_text() for path in stage.root.iterdir()}


GOOD = {"kept": "from the start", "good": "work"}
SPOILT = {"good": "spoilt", "secret-file": "x"}


def test_files_and_log_are_at_the_target(tmp_path: Path) -> None:
    stage = abandoned(tmp_path)
    before = stage.bytes_on_disk
    report = stage.rewind()
    assert files(stage) == GOOD
    timeline = stage.timeline
    assert timeline.head == 1
    assert timeline.pending_rewind() is None
    assert [node.record_uid for node in timeline.path()] == ["rec_000001", "rec_000002"]
    fork = timeline.headers[1].forked_from
    assert fork is not None
    assert (fork.segment, fork.record_uid, fork.inclusive) == (0, TARGET, False)
    # a rewind deletes no record
    assert (
        stage.run.segment_path(0).read_bytes().startswith(before[: before.rindex(b'"rewind_asked"')][:-200])
    )
    assert report["verified"] is True
    done = [event for event in timeline.events(1) if isinstance(event, RewindDone)]
    assert [(each.segment, each.target, each.report) for each in done] == [(1, TARGET, report)]
    assert stage.run.read_rewind(1)["report"] == report


def test_the_state_before_is_kept_and_can_be_had_back(tmp_path: Path) -> None:
    stage = abandoned(tmp_path)
    (stage.root / "by-a-person").write_text("after the last call")
    report = stage.rewind()
    assert "by-a-person" not in files(stage)
    with opened_workspace(stage.place, stage.timeline, clock=CLOCK) as workspace:
        workspace.restore(CommitId(str(report["safety_commit"])))
    assert files(stage) == SPOILT | {"by-a-person": "after the last call"}


def test_the_memory_says_what_matters_and_nothing_of_the_abandoned_branch(tmp_path: Path) -> None:
    stage = abandoned(tmp_path)
    text = str(stage.rewind()["memory_message"])
    assert text.count("lesson") == 1
    assert "3 path(s) in the workspace were put back" in text
    assert "secret" not in text
    assert "spoil" not in text


def test_the_next_process_takes_up_at_the_checkpoint(tmp_path: Path) -> None:
    stage = abandoned(tmp_path)
    stage.rewind()
    point = resume_point(stage.timeline)
    assert point.mode is Mode.REWIND
    assert point.checkpoint is not None
    assert point.checkpoint.record_uid == TARGET
    assert point.beyond.unfinished == ()
    assert point.memory is not None
    assert point.memory.index == len(stage.timeline.messages(point.checkpoint.record_uid))
    assert point.last_commit == point.checkpoint.metadata.workspaces["ws0"].before_commit
    with stage.live() as layer:
        first = ask(layer, Provider(), START)
        layer.run_tool("bash", {"n": 1}, lambda: pytest.fail("ran twice"))
        ask(layer, Provider(), grown(START, first))
    later = resume_point(stage.timeline)
    assert (later.mode, later.checkpoint) == (Mode.RESUME, None)
    assert later.memory == point.memory
    assert not [event for event in stage.records if isinstance(event, OutsideChange)]
    replay = resume_point(stage.timeline, replay=True)
    assert (replay.mode, replay.checkpoint, len(replay.prefix)) == (Mode.REPLAY, None, 3)
    assert chain(stage.timeline, 1) == [1, 0]


def test_a_rewind_in_a_rewound_suffix_leaves_from_there(tmp_path: Path) -> None:
    stage = abandoned(tmp_path)
    stage.rewind()
    with stage.live() as layer:
        first = ask(layer, Provider(), START)
        layer.run_tool("bash", {"n": 1}, lambda: pytest.fail("ran twice"))
        messages = grown(START, first)
        second = ask(layer, Provider(), messages)
        layer.run_tool("bash", {"n": 3}, lambda: (stage.root / "more").write_text("x"))
        messages = grown(messages, second)
        ask(layer, Provider(), messages)
        uid = stage.timeline.own_nodes()[-1].record_uid
        layer.run_tool("bash", {"n": 4}, lambda: (stage.root / "wrong").write_text("x"))
        ask(layer, Provider(), grown(messages, second))
        with pytest.raises(RewindSignal):
            layer.run_tool("backtrack_commit", {"record_uid": uid, "memory_summary": "second"}, dict)
    report = stage.rewind()
    assert files(stage) == GOOD | {"more": "x"}
    assert chain(stage.timeline, 2) == [2, 1, 0]
    text = str(report["memory_message"])
    assert text.index("[1] lesson") < text.index("[2] second")
    assert resume_point(stage.timeline).checkpoint == stage.timeline.node(uid)


@pytest.mark.parametrize(
    ("ablation", "state", "memory"),
    [(Ablation.ENVIRONMENT, SPOILT, True), (Ablation.MEMORY, GOOD, False)],
)
def test_a_part_of_the_rewind_can_be_left_out(
    tmp_path: Path, ablation: Ablation, state: dict[str, str], *, memory: bool
) -> None:
    stage = abandoned(tmp_path, ablations=frozenset({ablation}))
    report = stage.rewind()
    assert files(stage) == state
    assert (report["memory_message"] is not None) == memory
    if memory:
        assert "NOT put back" in str(report["memory_message"])
    assert (resume_point(stage.timeline).memory is not None) == memory


def test_excluded_files_stay_and_the_agent_is_told(tmp_path: Path) -> None:
    stage = Stage.create(tmp_path)
    with stage.live() as layer:
        first = ask(layer, Provider(), START)
        layer.run_tool("bash", {"n": 1}, lambda: (stage.root / ".env").write_text("TOKEN=1"))
        ask(layer, Provider(), grown(START, first))
        with pytest.raises(RewindSignal):
            layer.run_tool("backtrack_commit", {"record_uid": "rec_000001", "memory_summary": "lesson"}, dict)
    report = stage.rewind()
    assert files(stage) == {".env": "TOKEN=1"}
    assert ".env" in str(report["kept"])
    assert "Not put back, still as they were last: .env" in str(report["memory_message"])


def test_processes_of_the_prefix_are_kept_and_named_and_the_others_are_counted(tmp_path: Path) -> None:
    stage = Stage.create(tmp_path)
    server = subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(60)"])
    try:
        identity = identity_of(server.pid)
        assert identity is not None
        with stage.live() as layer:
            first = ask(layer, Provider(), START)
            ask(layer, Provider(), grown(START, first))
            with pytest.raises(RewindSignal):
                layer.run_tool(
                    "backtrack_commit", {"record_uid": "rec_000001", "memory_summary": "lesson"}, dict
                )
        given: list[frozenset[Identity]] = []
        went_on: list[str] = []

        def quiet(keep: frozenset[Identity]) -> Quiet:
            given.append(keep)
            assert files(stage) == {}
            kept, ended = Process(*identity, "serve --port 80"), Process(999_999, 1, "watch")
            return Quiet(ended=[ended], kept=[kept], go_on=lambda: went_on.append("on"))

        report = stage.rewind(quiet)
    finally:
        server.kill()
        server.wait()
    assert identity in given[0]
    assert went_on == ["on"]
    assert report["still_running"] == [f"{identity[0]} (serve --port 80)"]
    text = str(report["memory_message"])
    assert f"Still running, started before this point: {identity[0]} (serve --port 80)." in text
    assert "1 process(es) started after this point were ended." in text
    assert "watch" not in text
    ended = [event for event in stage.timeline.events(0) if isinstance(event, ProcessesEnded)]
    assert [event.ended for event in ended] == [("999999 (watch)",)]


@pytest.mark.parametrize("left", [0, 1, 3])
def test_where_all_jobs_end_none_is_kept_and_the_memory_says_the_same_however_many_there_were(
    tmp_path: Path, left: int
) -> None:
    stage = abandoned(tmp_path, jobs_end=True)

    def quiet(keep: frozenset[Identity]) -> Quiet:
        assert keep == frozenset()
        return Quiet(ended=[Process(999_000 + n, 1, "job") for n in range(left)], kept=[], go_on=lambda: None)

    text = str(stage.rewind(quiet)["memory_message"])
    assert "Whatever your commands had left running has ended" in text
    assert "process(es)" not in text
    assert "Still running" not in text


def test_suspended_processes_go_on_although_the_rewind_fails(tmp_path: Path) -> None:
    stage = abandoned(tmp_path)
    went_on: list[str] = []

    def quiet(_keep: frozenset[Identity]) -> Quiet:
        return Quiet(ended=(), kept=(), go_on=lambda: went_on.append("on"))

    with pytest.raises(Killed):
        cut_off(stage, 3, quiet)
    assert went_on == ["on"]
    assert stage.timeline.pending_rewind() is not None


def test_a_target_that_is_lost_refuses_the_rewind_and_touches_nothing(tmp_path: Path) -> None:
    stage = abandoned(tmp_path)
    path = stage.run.segment_path(0)
    lines = path.read_bytes().splitlines(keepends=True)
    lost = [line for line in lines if b'"kind":"llm"' in line and b'"record_uid":"rec_000003"' in line]
    assert len(lost) == 1
    path.write_bytes(b"".join(line if line not in lost else b"#" * (len(line) - 1) + b"\n" for line in lines))
    with pytest.raises(DamagedError, match=TARGET):
        stage.rewind()
    assert files(stage) == SPOILT
    assert stage.timeline.pending_rewind() is not None


# --- cut off anywhere ---


class Killed(BaseException):
    """In the place of `kill -9`: nothing catches it."""


@dataclass
class Steps:
    """Counts what a rewind does to the disk, and cuts it off before or after a step."""

    left: int

    def step(self, action: Callable[[], object]) -> object:
        self._tick()
        result = action()
        self._tick()
        return result

    def _tick(self) -> None:
        if self.left == 0:
            raise Killed
        self.left -= 1


class CutRun(Run):
    """A run whose files are written step by step."""

    steps: Steps

    def write_rewind(self, number: int, document: JsonObject) -> Path:
        found = self.steps.step(lambda: super(CutRun, self).write_rewind(number, document))
        assert isinstance(found, Path)
        return found

    def create_segment(self, header: Header) -> Path:
        found = self.steps.step(lambda: super(CutRun, self).create_segment(header))
        assert isinstance(found, Path)
        return found


@dataclass
class CutFiles:
    """The workspace, step by step."""

    inner: Workspace
    steps: Steps

    def snapshot(self, *, label: str) -> Snapshot:
        found = self.steps.step(lambda: self.inner.snapshot(label=label))
        assert isinstance(found, Snapshot)
        return found

    def changes(self, before: CommitId, after: CommitId) -> tuple[Change, ...]:
        return self.inner.changes(before, after)

    def restore(self, commit: CommitId) -> RestoreReport:
        found = self.steps.step(lambda: self.inner.restore(commit))
        assert isinstance(found, RestoreReport)
        return found

    def pin(self, commit: CommitId, ref: str) -> None:
        self.steps.step(lambda: self.inner.pin(commit, ref))


def cut_off(stage: Stage, after: int, quiet: Callable[[frozenset[Identity]], Quiet] = nothing_runs) -> None:
    """Perform the rewind that is pending, or finish its opening, up to a step."""
    complete_opening(stage.run, stage.timeline, CLOCK)
    timeline, steps = stage.timeline, Steps(after)
    asked = timeline.pending_rewind()
    if asked is None:
        return
    run = CutRun(stage.run.directory)
    run.steps = steps
    with opened_workspace(stage.place, timeline, clock=CLOCK) as workspace:
        Rewinding(
            run=run,
            timeline=timeline,
            asked=asked,
            files=CutFiles(workspace, steps),
            options=RunOptions.from_json(timeline.header.options),
            make_quiet=quiet,
            clock=CLOCK,
        ).perform()


@pytest.mark.parametrize("first", range(10))
def test_wherever_it_is_cut_off_it_is_finished_once(tmp_path: Path, first: int) -> None:
    stage = abandoned(tmp_path)
    with pytest.raises(Killed):
        cut_off(stage, first)
    if stage.timeline.head == 0:
        # once more, at another step; with the safety snapshot there are six of them left
        with pytest.raises(Killed):
            cut_off(stage, (first + 1) % 6)
    cut_off(stage, 1000)
    complete_opening(stage.run, stage.timeline, CLOCK)
    assert files(stage) == GOOD
    timeline = stage.timeline
    assert timeline.head == 1
    assert timeline.pending_rewind() is None
    everything = [event for number in timeline.segments for event in timeline.events(number)]
    assert [type(event) for event in everything].count(RewindAsked) == 1
    assert [type(event) for event in everything].count(RewindDone) == 1
    safety = [event for event in everything if isinstance(event, SafetySnapshot)]
    assert len(safety) == 1
    assert safety[0].workspaces["ws0"].before_commit is not None
    memory = resume_point(timeline).memory
    assert memory is not None
    assert memory.text.count("lesson") == 1
    # what was there before the first attempt can still be had
    with opened_workspace(stage.place, timeline, clock=CLOCK) as workspace:
        workspace.restore(safety[0].workspaces["ws0"].before_commit)
    assert files(stage) == SPOILT


def test_all_its_steps_are_cut_off_above(tmp_path: Path) -> None:
    stage = abandoned(tmp_path)
    with pytest.raises(Killed):
        cut_off(stage, 9)
    stage = abandoned(tmp_path / "again")
    cut_off(stage, 10)
    assert stage.timeline.head == 1


def test_a_segment_without_its_first_event_is_completed_from_the_rewinds_file(tmp_path: Path) -> None:
    stage = abandoned(tmp_path)
    with pytest.raises(Killed):
        cut_off(stage, 9)
    assert stage.timeline.head == 1
    assert stage.timeline.events(1) == ()
    assert complete_opening(stage.run, stage.timeline, CLOCK)
    assert not complete_opening(stage.run, stage.timeline, CLOCK)
    (done,) = stage.timeline.events(1)
    assert isinstance(done, RewindDone)
    assert done.report == stage.run.read_rewind(1)["report"]


def test_without_the_rewinds_file_that_is_damage(tmp_path: Path) -> None:
    stage = abandoned(tmp_path)
    with pytest.raises(Killed):
        cut_off(stage, 9)
    stage.run.rewind_path(1).unlink()
    with pytest.raises(DamagedError):
        complete_opening(stage.run, stage.timeline, CLOCK)


def test_a_first_segment_needs_no_completion(tmp_path: Path) -> None:
    stage = Stage.create(tmp_path)
    assert not complete_opening(stage.run, stage.timeline, CLOCK)
    assert resume_point(stage.timeline).fresh
