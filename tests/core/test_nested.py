"""Sealed bytes are this machine's only, and notes on code actions say what they were given."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentrewind.blobs import Blobs
from agentrewind.clock import SystemClock
from agentrewind.errors import DamagedError
from agentrewind.nested import TOPIC, CodeRun, CodeRuns, Sealed
from agentrewind.records import JsonObject, Note, Record, RecordUid


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
