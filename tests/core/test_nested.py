"""Sealed bytes are this machine's only, and notes on code actions say what they were given."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentrewind.blobs import Blobs
from agentrewind.clock import SystemClock
from agentrewind.errors import DamagedError
from agentrewind.nested import TOPIC, CodeRun, CodeRuns, Sealed, code_notes
from agentrewind.records import (
    FORMAT,
    ForkPoint,
    Header,
    InputId,
    JsonObject,
    LlmNode,
    MessageList,
    Metadata,
    NodeKind,
    Note,
    Record,
    RecordUid,
    RunId,
    Started,
)
from agentrewind.run_store import RunStore


def sealed(base: Path, machine: str) -> Sealed:
    return Sealed(store=Blobs(base / "blobs"), key=base / machine / "machine.key")


def test_sealed_bytes_come_back_on_the_machine_that_wrote_them(tmp_path: Path) -> None:
    reference = sealed(tmp_path, "here").keep(b"variables")
    assert sealed(tmp_path, "here").load(reference) == b"variables"
    assert (tmp_path / "here" / "machine.key").stat().st_mode & 0o777 == 0o600


def test_bytes_of_another_machine_are_never_handed_out(tmp_path: Path) -> None:
    reference = sealed(tmp_path, "there").keep(b"a program of somebody's")
    sealed(tmp_path, "here").keep(b"so that there is a key")
    for machine in ("here", "without-any-key"):
        with pytest.raises(DamagedError, match="never loaded"):
            sealed(tmp_path, machine).load(reference)
    assert not (tmp_path / "without-any-key").exists()


@given(name=st.text(), seal=st.text())
def test_a_made_up_seal_is_refused(tmp_path_factory: pytest.TempPathFactory, name: str, seal: str) -> None:
    base = tmp_path_factory.mktemp("made-up")
    with pytest.raises(DamagedError):
        sealed(base, "here").load({"blob": name, "seal": seal})


def test_a_seal_belongs_to_its_bytes(tmp_path: Path) -> None:
    here = sealed(tmp_path, "here")
    one, two = here.keep(b"one"), here.keep(b"two")
    with pytest.raises(DamagedError, match="never loaded"):
        here.load({"blob": one["blob"], "seal": two["seal"]})


CARRIED: st.SearchStrategy[JsonObject | None] = st.none() | st.just({"blob": "b", "seal": "s"})
RUNS = st.builds(
    CodeRun,
    parent=st.integers(1, 9).map(lambda number: RecordUid(f"rec_{number:06d}")),
    logs=st.text(),
    output=st.text(),
    error=st.none() | st.tuples(st.text(), st.text()),
    final=st.booleans(),
    carried=CARRIED,
)


@given(run=RUNS)
def test_a_note_gives_the_code_action_back(run: CodeRun) -> None:
    assert CodeRun.from_json(run.to_json()) == run


@given(runs=st.lists(RUNS))
def test_what_is_kept_is_found_again(tmp_path_factory: pytest.TempPathFactory, runs: list[CodeRun]) -> None:
    base = tmp_path_factory.mktemp("kept")
    written: list[tuple[Note, bool]] = []

    def write(record: Record, durable: bool) -> None:
        assert isinstance(record, Note)
        assert record.topic == TOPIC
        written.append((record, durable))

    def opened(notes: list[Note]) -> CodeRuns:
        return CodeRuns(notes=notes, write=write, sealed=sealed(base, "here"), clock=SystemClock())

    kept = opened([])
    for run in runs:
        kept.keep(run)
    again = opened([note for note, _ in written])
    for parent in {run.parent for run in runs}:
        last = [run for run in runs if run.parent == parent][-1]
        assert kept.recorded(parent) == again.recorded(parent) == last
    assert [durable for _, durable in written] == [run.carried is not None for run in runs]
    assert kept.recorded(RecordUid("rec_000099")) is None


def header(segment: int, fork: ForkPoint | None) -> Header:
    return Header(
        format=FORMAT,
        run_id=RunId("run"),
        segment=segment,
        forked_from=fork,
        created_at="now",
        workspaces={},
        harness=None,
        model=None,
        versions={},
    )


def fork(segment: int, uid: str | None, *, inclusive: bool = False) -> ForkPoint:
    return ForkPoint(
        run_id=RunId("run"),
        segment=segment,
        record_uid=RecordUid(uid) if uid else None,
        inclusive=inclusive,
    )


def llm(number: int) -> list[Record]:
    uid, input_id = RecordUid(f"rec_{number:06d}"), InputId(f"sha256:{number:064d}")
    node = LlmNode(
        record_uid=uid,
        input_id=input_id,
        conversation="main",
        client="none",
        model="m",
        parameters={},
        messages=MessageList(base=None, keep=0, append=()),
        tools=None,
        output={"content": "x"},
        error=None,
        metadata=Metadata(created_at="now", latency_ms=0),
    )
    return [Started(record_uid=uid, node_kind=NodeKind.LLM, input_id=input_id, at="now"), node]


def noted(number: int) -> Record:
    run = CodeRun(parent=RecordUid(f"rec_{number:06d}"), logs="", output="", error=None, final=False)
    return Note(topic=TOPIC, text="", at="now", data=run.to_json())


SEGMENTS: dict[str, list[tuple[ForkPoint | None, list[Record]]]] = {
    "1 2": [(None, [*llm(1), noted(1), *llm(2), noted(2)])],
    # the action of 1 held 2, and a rewind came back to 2: it has not ended on this path
    "": [(None, [*llm(1), *llm(2), noted(1)]), (fork(0, "rec_000002"), [])],
    "1": [(None, [*llm(1), noted(1), *llm(2), noted(2)]), (fork(0, "rec_000002"), [])],
    "1 3": [(None, [*llm(1), noted(1), *llm(2), noted(2)]), (fork(0, "rec_000002"), [*llm(3), noted(3)])],
    # an undo: the end of 2's action belongs to 2
    "1 2 4": [
        (None, [*llm(1), noted(1), *llm(2), noted(2)]),
        (fork(0, "rec_000001"), [*llm(3), noted(3)]),
        (fork(0, "rec_000002", inclusive=True), [*llm(4), noted(4)]),
    ],
    # a node of an older segment than the one named, and none of that segment's own
    "1 4": [
        (None, [*llm(1), noted(1), *llm(2), noted(2)]),
        (fork(0, "rec_000002"), [*llm(3), noted(3)]),
        (fork(1, "rec_000002"), [*llm(4), noted(4)]),
    ],
    "1 5": [
        (None, [*llm(1), noted(1), *llm(2), noted(2)]),
        (fork(0, "rec_000002"), [*llm(3), noted(3)]),
        (fork(1, None), [*llm(5), noted(5)]),
    ],
}


@pytest.mark.parametrize("expected", SEGMENTS)
def test_only_actions_that_ended_on_the_path_count(tmp_path: Path, expected: str) -> None:
    first, *others = SEGMENTS[expected]
    run = RunStore(tmp_path).create(header(0, first[0]))
    for number, (left, _) in enumerate(others, start=1):
        run.create_segment(header(number, left))
    for number, (_, records) in enumerate([first, *others]):
        with run.writer(number) as writer:
            for record in records:
                writer.append(record, durable=False)
    notes = code_notes(run.timeline())
    parents = sorted(int(str(note.data["parent"])[4:]) for note in notes)
    assert parents == [int(each) for each in expected.split()]
