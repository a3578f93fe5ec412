"""Stories of state outside the workspace: lost and brought back by a rewind, blocked, in conflict, killed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agentrewind.backup.entries import Entry, State
from agentrewind.backup.log import BackupLog
from agentrewind.clock import SystemClock
from agentrewind.manual import Machine, Outside, restore_in_place, undo
from agentrewind.records import RewindDone, ToolNode
from harness_adapters.scripted import ScriptedAnswer, ScriptedRequest, Step
from tests.crash.test_run_kills import killer
from tests.e2e.laws import check_laws
from tests.e2e.stage import Stage, finish
from tests.e2e.steps import back, look, results, story, submit, work

pytestmark = pytest.mark.slow

BACKUP: dict[str, Any] = {"backup": {}}


def entries(stage: Stage) -> list[Entry]:
    return list(BackupLog(stage.home / "backup", SystemClock()).read().entries.values())


def of_calls(stage: Stage) -> dict[str, Entry]:
    """What calls changed, but for the marks that every command leaves."""
    return {
        entry.name: entry
        for entry in entries(stage)
        if entry.undoes is None and str(stage.side) not in entry.name
    }


@pytest.fixture
def outside(stage: Stage) -> Path:
    """A directory outside the workspace with something in it."""
    made = stage.base / "outside"
    (made / "deep").mkdir(parents=True)
    (made / "config.ini").write_text("original\n")
    (made / "deep" / "photo.raw").write_bytes(bytes(range(256)) * 100)
    (made / "deep" / "photo.raw").chmod(0o640)
    return made


def test_a_file_lost_outside_is_back_after_the_rewind(stage: Stage, outside: Path) -> None:
    stage.policy = story(
        work("a", "echo a > a"),
        work("b", f"rm -r {outside}/deep; echo changed > {outside}/config.ini; echo new > {outside}/new"),
        look(),
        back("b", "NOTE_A"),
        NOTE_A=[work("c", f"cat {outside}/config.ini"), submit()],
    )
    ended = stage.start(**BACKUP)
    assert (ended.code, ended.result["rewinds"]) == (0, 1)
    assert (outside / "deep" / "photo.raw").read_bytes() == bytes(range(256)) * 100
    assert (outside / "deep" / "photo.raw").stat().st_mode & 0o777 == 0o640
    assert (outside / "config.ini").read_text() == "original\n"
    assert not (outside / "new").exists()
    (listed,) = [json.loads(each) for each in results(stage.arrivals[3].request)[-1:]]
    external = {each["what"]: each for each in listed["candidates"][0]["external"]}
    assert external[str(outside / "deep")]["restorable"] is True
    memory = stage.arrivals[4].request.messages[-1]["content"]
    assert f"Outside the workspace, back as they were at this point: {outside}/" in memory
    found = of_calls(stage)
    assert {entry.state for name, entry in found.items() if name.startswith(str(outside))} == {State.RESTORED}
    (done,) = [event for event in stage.timeline.events(1) if isinstance(event, RewindDone)]
    assert str(outside / "config.ini") in {each["what"] for each in done.report["external"]}  # type: ignore[union-attr,index,call-overload]
    check_laws(stage)


def test_what_cannot_come_back_is_said(stage: Stage, outside: Path) -> None:
    (outside / "script.sh").write_text(f"rm {outside}/deep/photo.raw\n")
    stage.policy = story(
        work("a", "echo a > a"),
        work("b", f"sh {outside}/script.sh"),
        work("c", f"echo agent > {outside}/config.ini"),
        _by_a_person(outside, look()),
        back("b", "NOTE_A"),
        NOTE_A=[work("d"), submit()],
    )
    ended = stage.start(**BACKUP)
    assert ended.code == 0
    (listed,) = [json.loads(each) for each in results(stage.arrivals[4].request)[-1:]]
    external = [each for entry in listed["candidates"] for each in entry["external"]]
    assert [each["state"] for each in external if not each["kind"]] == ["not covered"]
    memory = stage.arrivals[5].request.messages[-1]["content"]
    assert f"Outside the workspace, NOT put back: {outside}/config.ini" in memory
    assert "changed after the call" in memory
    assert "1 call(s) of the abandoned path may have changed something outside" in memory
    assert (outside / "config.ini").read_text() == "by a person\n"
    check_laws(stage)


def _by_a_person(outside: Path, answer: ScriptedAnswer) -> Step:
    def step(_request: ScriptedRequest) -> ScriptedAnswer:
        (outside / "config.ini").write_text("by a person\n")
        return answer

    return step


def test_a_call_whose_backup_fails_does_not_run(stage: Stage, outside: Path) -> None:
    stage.policy = story(
        work("a", f"rm -rf {stage.home}"),
        work("b", f"rm {outside}/config.ini"),
        submit(),
    )
    ended = stage.start(**BACKUP)
    assert ended.code == 0
    blocked = results(stage.arrivals[1].request)[0]
    assert "blocked: nothing was run" in blocked
    assert "own store" in blocked
    assert stage.marks == ["b"]
    nodes = [node for node in stage.timeline.path() if isinstance(node, ToolNode)]
    assert nodes[0].metadata.external == ()
    assert [each["what"] for each in nodes[1].metadata.external if each["kind"]] == [
        str(stage.side),
        str(outside / "config.ini"),
    ]


def test_calls_that_nobody_understands_can_be_refused(stage: Stage) -> None:
    stage.policy = story(work("a", "python3 -c 'print(1)' > x; ./unknown"), submit())
    ended = stage.start(backup={"on_unknown": "block"})
    assert ended.code == 0
    assert "blocked: nothing was run" in results(stage.arrivals[1].request)[0]
    assert stage.marks == []


def test_without_the_option_nothing_is_preserved(stage: Stage, outside: Path) -> None:
    stage.policy = story(work("a", f"rm {outside}/config.ini"), submit())
    assert stage.start().code == 0
    assert entries(stage) == []


def test_undo_brings_external_state_again_and_a_second_one_takes_it_back(stage: Stage, outside: Path) -> None:
    stage.policy = story(
        work("a", "echo a > a"),
        work("b", f"echo changed > {outside}/config.ini; rm -r {outside}/deep"),
        look(),
        back("b", "NOTE_A"),
        NOTE_A=[submit()],
    )
    assert stage.start(**BACKUP).code == 0
    machine = Machine(
        home=stage.home, user_home=stage.user_home, clock=SystemClock(), environment=stage.environment
    )
    done = undo(stage.run, outside=Outside.STOP, machine=machine)
    assert {each["state"] for each in done.external} <= {"restored", "unchanged"}
    assert (outside / "config.ini").read_text() == "changed\n"
    assert not (outside / "deep").exists()
    undo(stage.run, outside=Outside.STOP, machine=machine)
    assert (outside / "config.ini").read_text() == "original\n"
    assert (outside / "deep" / "photo.raw").exists()
    undo(stage.run, outside=Outside.STOP, machine=machine)
    assert (outside / "config.ini").read_text() == "changed\n"


def test_a_person_takes_external_state_back_when_told_to(stage: Stage, outside: Path) -> None:
    stage.policy = story(
        work("a", "echo a > a"),
        work("b", f"echo changed > {outside}/config.ini"),
        submit(),
    )
    assert stage.start(**BACKUP).code == 0
    machine = Machine(
        home=stage.home, user_home=stage.user_home, clock=SystemClock(), environment=stage.environment
    )
    node = [each.record_uid for each in stage.timeline.checkpoints()][1]
    left = restore_in_place(
        stage.run, node, after=False, outside=Outside.STOP, dry_run=False, machine=machine
    )
    assert str(outside / "config.ini") in {each["what"] for each in left.external}
    assert (outside / "config.ini").read_text() == "changed\n"
    done = restore_in_place(
        stage.run, node, after=False, outside=Outside.STOP, dry_run=False, machine=machine, external=True
    )
    assert {each["state"] for each in done.external} == {"restored"}
    assert (outside / "config.ini").read_text() == "original\n"
    undo(stage.run, outside=Outside.STOP, machine=machine)
    assert (outside / "config.ini").read_text() == "changed\n"


KILLS = (45, 65, 85)


@pytest.mark.parametrize("call", KILLS)
def test_a_supervisor_killed_in_a_rewind_restores_nothing_twice(
    stage: Stage, outside: Path, call: int
) -> None:
    """Killed at a call after the rewind was asked for, and resumed: back, or said to be unknown."""
    stage.policy = story(
        work("b", f"echo changed > {outside}/config.ini; rm -r {outside}/deep"),
        look(),
        back("b", "NOTE_A"),
        NOTE_A=[submit()],
    )
    # the supervisor's calls before the rewind are few; from there on each is one of its steps
    order = killer(stage, process=1, call=call)
    killed = finish(stage.launch(task="x", supervisor_environment=order, **BACKUP))
    if killed.code >= 0:
        assert killed.code == 0
    else:
        assert stage.resume().code == 0
    begun: list[str] = []
    for entry in of_calls(stage).values():
        begun += [label for label in entry.by if label.startswith("rewind")]
        assert entry.state in (State.RESTORED, State.UNKNOWN, State.UNCHANGED), entry
        if entry.state is State.UNKNOWN:
            memory = stage.arrivals[-1].request.messages[-1]["content"]
            assert f"in an unknown state: {entry.name}" in memory
        elif entry.name == str(outside / "config.ini"):
            assert (outside / "config.ini").read_text() == "original\n"
    safeties = [entry.undoes for entry in entries(stage) if entry.undoes is not None]
    assert len(safeties) == len(set(safeties)), "a restore was begun twice"
