"""A person's restores and undos, in any order: the files are always those of a model made of plain values."""

from __future__ import annotations

import shutil
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agentrewind.clock import SystemClock
from agentrewind.commands.soundness import Examination
from agentrewind.errors import OutsideChangesError
from agentrewind.manual import Machine, Outside, _done, _opened, restore_in_place, undo
from agentrewind.manual_history import state_at
from agentrewind.records import NodeKind, RecordUid
from agentrewind.run_store import Run
from tests import records
from tests.cli.desk import Desk, tell_story

NODES = ("rec_000001", "rec_000003", "rec_000005", "rec_000011", "rec_000013")
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("restore"), st.sampled_from(NODES)),
        st.tuples(st.just("undo"), st.just("")),
        st.tuples(st.just("edit"), st.sampled_from(["a.txt", "mine.txt"])),
    ),
    max_size=7,
)


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Desk:
    desk = Desk(base=tmp_path_factory.mktemp("story"))
    tell_story(desk)
    shutil.copytree(desk.home, desk.base / "kept-home")
    shutil.copytree(desk.workspace, desk.base / "kept-workspace")
    return desk


def _fresh(desk: Desk) -> Run:
    """The run as it was told, for each example."""
    for kept, used in (("kept-home", desk.home), ("kept-workspace", desk.workspace)):
        shutil.rmtree(used)
        shutil.copytree(desk.base / kept, used)
    return desk.only_run()


STATES = {
    "rec_000001": {},
    "rec_000003": {"a.txt": b"one\n"},
    "rec_000005": {"b.txt": b"two\n"},
    "rec_000011": {"a.txt": b"one\n"},
    "rec_000013": {"a.txt": b"one\n", "b.txt": b"two\n"},
}


@settings(max_examples=14, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(STEPS)
def test_restores_and_undos_do_what_a_model_does(story: Desk, steps: list[tuple[str, str]]) -> None:
    run = _fresh(story)
    machine = Machine(home=story.home, user_home=None, clock=SystemClock())
    present: dict[str, bytes] = story.files()
    before = STATES["rec_000005"]  # the state from which the agent went back
    for number, (act, what) in enumerate(steps):
        if act == "edit":
            text = f"edited {number}"
            (story.workspace / what).write_text(text)
            present = {**present, what: text.encode()}
        elif act == "undo":
            undo(run, outside=Outside.REVERT, machine=machine)
            present, before = before, present
        else:
            restore_in_place(run, what, after=False, outside=Outside.REVERT, dry_run=False, machine=machine)
            present, before = STATES[what], present
        assert story.files() == present
    timeline = run.timeline()
    assert not timeline.damages
    assert timeline.pending_rewind() is None


@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sets(st.sampled_from(["a.txt", "b.txt", "new.txt", "dir/new.txt"]), min_size=1))
def test_what_somebody_outside_changed_is_never_lost_unasked(story: Desk, touched: set[str]) -> None:
    run = _fresh(story)
    machine = Machine(home=story.home, user_home=None, clock=SystemClock())
    for name in touched:
        path: Path = story.workspace / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("mine")
    before = story.files()
    with pytest.raises(OutsideChangesError) as stopped:
        restore_in_place(run, "rec_000001", after=False, outside=Outside.STOP, dry_run=False, machine=machine)
    assert set(stopped.value.paths) == touched
    assert story.files() == before
    done = restore_in_place(
        run, "rec_000001", after=False, outside=Outside.KEEP, dry_run=False, machine=machine
    )
    assert set(done.outside) == touched
    assert story.files() == dict.fromkeys(touched, b"mine")
    undo(run, outside=Outside.KEEP, machine=machine)
    assert story.files() == before


KEEPING = [
    ("restore rec_000003, undo", 0),
    ("restore rec_000003, undo, undo", 1),
    ("undo, restore rec_000013", 0),
    ("undo, undo", 0),
    ("restore rec_000003, undo, restore rec_000013, undo", 1),
    ("restore rec_000013, restore rec_000003, undo, undo", 0),
]


@pytest.mark.parametrize(("moves", "edited"), KEEPING)
def test_what_was_kept_once_is_never_lost_later(story: Desk, moves: str, edited: int) -> None:
    """Whatever a person moved meanwhile: only what a tool call made goes unasked."""
    run = _fresh(story)
    machine = Machine(home=story.home, user_home=None, clock=SystemClock())
    for number, move in enumerate(moves.split(", ")):
        if number == edited:
            (story.workspace / "mine.txt").write_text("mine")
        act, _, node = move.partition(" ")
        if act == "undo":
            undo(run, outside=Outside.KEEP, machine=machine)
        else:
            restore_in_place(run, node, after=False, outside=Outside.KEEP, dry_run=False, machine=machine)
        assert number < edited or story.files()["mine.txt"] == b"mine"
    for node in ("rec_000001", "rec_000003"):
        with pytest.raises(OutsideChangesError) as stopped:
            restore_in_place(run, node, after=False, outside=Outside.STOP, dry_run=False, machine=machine)
        assert stopped.value.paths == ("mine.txt",)
    assert story.files()["mine.txt"] == b"mine"


def test_what_was_reverted_stands_in_nobodys_way_until_it_is_back(story: Desk) -> None:
    run = _fresh(story)
    machine = Machine(home=story.home, user_home=None, clock=SystemClock())
    (story.workspace / "b.txt").write_text("mine")
    for node, outside in (("rec_000003", Outside.REVERT), ("rec_000013", Outside.STOP)):
        restore_in_place(run, node, after=False, outside=outside, dry_run=False, machine=machine)
        assert story.files() == STATES[node]
    undo(run, outside=Outside.STOP, machine=machine)
    assert story.files() == STATES["rec_000003"]


def test_a_call_that_was_cut_short_hides_no_later_change(story: Desk) -> None:
    run = _fresh(story)
    machine = Machine(home=story.home, user_home=None, clock=SystemClock())
    with run.writer(run.timeline().head) as writer:
        begun = replace(records.started(99, NodeKind.TOOL), tool_name="bash")
        writer.append(begun, durable=True)
    (story.workspace / "half").write_text("what the call left")
    restore_in_place(run, "rec_000003", after=False, outside=Outside.STOP, dry_run=False, machine=machine)
    assert story.files() == STATES["rec_000003"]
    (story.workspace / "mine.txt").write_text("mine")
    with pytest.raises(OutsideChangesError):
        restore_in_place(run, "rec_000001", after=False, outside=Outside.STOP, dry_run=False, machine=machine)


def test_what_is_refused_or_only_planned_makes_no_folder(story: Desk) -> None:
    run = _fresh(story)
    machine = Machine(home=story.home, user_home=None, clock=SystemClock())
    shutil.rmtree(story.workspace)
    for dry_run in (True, False):
        with nullcontext() if dry_run else pytest.raises(OutsideChangesError):
            restore_in_place(
                run, "rec_000003", after=False, outside=Outside.STOP, dry_run=dry_run, machine=machine
            )
        assert not story.workspace.exists()
    with pytest.raises(OutsideChangesError):
        undo(run, outside=Outside.STOP, machine=machine)
    assert not story.workspace.exists()
    restore_in_place(run, "rec_000001", after=False, outside=Outside.STOP, dry_run=False, machine=machine)
    assert story.files() == {}
    assert story.workspace.is_dir()


def test_what_was_set_aside_goes_back_with_an_undo_and_unasked_with_nothing_else(story: Desk) -> None:
    run = _fresh(story)
    machine = Machine(home=story.home, user_home=None, clock=SystemClock())
    (story.workspace / "a.txt").unlink()
    (story.workspace / "a.txt").mkdir()
    (story.workspace / "a.txt" / "mine").write_text("mine")
    keep = frozenset({b"a.txt/mine"})
    before = story.files()
    with _opened(run, machine) as hands:
        taken = hands.files.snapshot(label="before")
        hands.write_safety(taken)
        commit = state_at(hands.timeline, "rec_000003", after=False)
        done = _done(commit, hands.files.restore(commit, keep=keep), verified=True)
        hands.write_restored(hands.timeline.head, done, record_uid=RecordUid("rec_000003"), by="person")
    assert story.files() == {"a.txt": b"one\n", "a.txt.kept-by-agentrewind/mine": b"mine"}
    with pytest.raises(OutsideChangesError):
        restore_in_place(run, "rec_000001", after=False, outside=Outside.STOP, dry_run=False, machine=machine)
    assert Examination(story.home).run(run).sound
    undo(run, outside=Outside.STOP, machine=machine)
    assert story.files() == before
