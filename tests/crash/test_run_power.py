"""The machine stops in the midst of a run, and the run goes on without the snapshots that were lost."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from agentrewind.clock import SystemClock
from agentrewind.fold import LOST
from agentrewind.forking import Edits as ForkEdits
from agentrewind.forking import make_fork
from agentrewind.records import MAIN_WORKSPACE, CommitId, LlmNode, Note, RecordUid, RewindAsked, ToolNode
from agentrewind.run_files import COPY
from agentrewind.workspace.maintenance import collect
from agentrewind.workspace.power import BOOT, losses
from agentrewind.workspace.refs import SYNCED
from agentrewind.workspace.restore import restore_into
from agentrewind.workspace.snapshots import SnapshotStore
from agentrewind.workspace.soundness import verify
from harness_adapters.scripted import ScriptedAnswer, ScriptedRequest
from tests.crash.run_story import SMALL, agents, play, wait_for_the_dead
from tests.e2e.stage import Stage, finish
from tests.e2e.steps import CANDIDATES, marked

TURNS = 5
NOTE = "NOTE_TO_SELF"


class Edits:
    """Writes one file anew in every turn; then looks where it could go back to, and submits.

    The power fails while the model is asked for what follows the last edit.
    """

    def __init__(self) -> None:
        self.stage: Stage | None = None
        self.supervisor: subprocess.Popen[bytes] | None = None

    def __call__(self, request: ScriptedRequest) -> ScriptedAnswer:
        turn = sum(message["role"] == "assistant" for message in request.messages)
        if turn < TURNS:
            return ScriptedAnswer(
                f"turn {turn}", [("sh", {"command": marked(f"{turn}", f"echo {turn} > f")})]
            )
        if self.supervisor is not None and self.stage is not None:
            for pid in [self.supervisor.pid, *agents(self.stage)]:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            self.supervisor = None
        looks = ScriptedAnswer("look", [(CANDIDATES, {"reason": "lost?"})])
        return looks if turn == TURNS else ScriptedAnswer("end", [("sh", {"command": "echo submit"})])


def lose(git_dir: Path, packs: slice) -> None:
    """As if these packs, in the order of their making, had not reached the disk."""
    for pack in sorted(git_dir.glob("objects/pack/*.pack"), key=lambda path: path.stat().st_mtime_ns)[packs]:
        pack.unlink()
        pack.with_suffix(".idx").unlink()
    # a ref is noted as synced once all that it leads to is
    for synced in (git_dir / SYNCED).rglob("segment-*"):
        synced.unlink()
    (git_dir / BOOT).write_text("an earlier start\n")


@pytest.mark.slow
@pytest.mark.parametrize(
    "packs", [slice(-2, None), slice(2, 4), slice(0, None)], ids=["newest", "some", "all"]
)
def test_the_run_goes_on_and_tells_what_is_lost(tmp_path: Path, packs: slice) -> None:
    policy = Edits()
    with play(tmp_path / "stage", policy=policy) as stage:
        policy.stage, policy.supervisor = stage, stage.launch(task="x", harness=SMALL)
        finish(policy.supervisor)
        wait_for_the_dead(stage)
        (git_dir,) = stage.home.glob("workspaces/*/snapshots.git")
        lose(git_dir, packs)
        with contextlib.closing(SnapshotStore.open(git_dir)) as store:
            left = {CommitId(oid.hex()) for oid in store.ids()}
        before = {node.record_uid: _before(node) for node in stage.timeline.path()}
        gone = [uid for uid, known in before.items() if known not in left]
        assert gone
        again = stage.resume()
        timeline = stage.timeline
        assert timeline.state() == "accepted", again
        assert stage.read("f") == f"{TURNS - 1}\n"
        assert stage.marks == [str(turn) for turn in range(TURNS)]
        (note,) = [event for event in timeline.events() if isinstance(event, Note) and event.topic == LOST]
        assert note.data["nodes"] == gone
        assert note.text in (stage.run.directory / "agent.log").read_text()
        _check_candidates(stage, before, gone)
        assert all(node.metadata.workspaces[MAIN_WORKSPACE].after_commit for node in timeline.path())
        with contextlib.closing(SnapshotStore.open(git_dir)) as store:
            assert verify(store) == losses(store) != []
            collect(store)  # keeps what is whole, also behind a hole
            assert verify(store) == []
            for uid, known in before.items():
                if uid not in gone and known is not None:
                    assert restore_into(store, known, tmp_path / uid).verified


@pytest.mark.slow
def test_a_rewind_whose_target_is_lost_names_the_way_out(tmp_path: Path) -> None:
    policy = Edits()
    with play(tmp_path / "stage", policy=policy) as stage:
        policy.stage, policy.supervisor = stage, stage.launch(task="x", harness=SMALL)
        finish(policy.supervisor)
        wait_for_the_dead(stage)
        checkpoints = stage.timeline.checkpoints()
        target = checkpoints[-1].record_uid
        asked = RewindAsked(
            segment=1,
            target=target,
            memory=NOTE,
            reason="",
            asked_by=None,
            by="person",
            at="2026-01-01T00:00:00Z",
        )
        with stage.run.writer(0) as writer:
            writer.append(asked, durable=True)
        (git_dir,) = stage.home.glob("workspaces/*/snapshots.git")
        lose(git_dir, slice(-2, None))
        with contextlib.closing(SnapshotStore.open(git_dir)) as store:
            left = {CommitId(oid.hex()) for oid in store.ids()}
        whole = [turn for turn, node in enumerate(checkpoints) if _before(node) in left]
        assert whole[-1] < len(checkpoints) - 1
        kept = checkpoints[whole[-1]].record_uid
        again = stage.resume()
        name, message = again.error
        assert name == "DamagedError"
        assert f"agentrewind fork {stage.run.run_id} {kept}" in message
        made = make_fork(stage.run, kept, ForkEdits(), home=stage.home, clock=SystemClock())
        assert (made.directory / COPY / "f").read_text() == f"{whole[-1] - 1}\n"


def _check_candidates(stage: Stage, before: dict[RecordUid, CommitId | None], gone: list[RecordUid]) -> None:
    """Only what can be gone back to is offered."""
    (asked,) = [
        node for node in stage.timeline.path() if isinstance(node, ToolNode) and node.tool_name == CANDIDATES
    ]
    offered = {each["record_uid"] for each in json.loads(str(asked.output))["candidates"]}
    llm = {node.record_uid for node in stage.timeline.path() if isinstance(node, LlmNode)}
    assert offered == {uid for uid in before if uid in llm and uid not in gone}


def _before(node: LlmNode | ToolNode) -> CommitId | None:
    return node.metadata.workspaces[MAIN_WORKSPACE].before_commit
