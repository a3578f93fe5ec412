"""Runs on disk: created whole, found by id or prefix, listed newest first, damaged ones too."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from agentrewind.durable import write_file
from agentrewind.errors import (
    DamagedError,
    ProtectedError,
    StorageError,
    UnknownRunError,
    UnsupportedFormatError,
    UsageError,
)
from agentrewind.records import JsonObject, RunId
from agentrewind.run_store import RunStore
from tests.records import RUN, asked, done, fork_at, header, llm, tool, uid


@pytest.fixture
def store(tmp_path: Path) -> RunStore:
    return RunStore(tmp_path / "home")


def names(store: RunStore) -> list[str]:
    return [run.run_id for run in store.runs()]


class TestStore:
    def test_a_run_is_created_whole_and_private(self, store: RunStore) -> None:
        run = store.create(header())
        assert run.run_id == RUN
        assert run.directory == store.home / "runs" / RUN
        for folder in (store.home, store.home / "runs", run.directory):
            assert folder.stat().st_mode & 0o777 == 0o700
        assert run.timeline().header == header()
        assert [path.name for path in (store.home / "runs").iterdir()] == [RUN]

    def test_an_id_in_use_is_refused_and_the_run_untouched(self, store: RunStore) -> None:
        run = store.create(header())
        with run.writer(0) as writer:
            writer.append(llm(1), durable=True)
        with pytest.raises(ProtectedError, match="exists already"):
            store.create(header())
        assert len(run.timeline().nodes) == 1
        assert names(store) == [RUN]

    def test_an_empty_folder_is_not_taken_over(self, store: RunStore) -> None:
        (store.home / "runs" / RUN).mkdir(parents=True)
        with pytest.raises(ProtectedError, match="exists already"):
            store.create(header())

    @pytest.mark.parametrize("run_id", ["", "last", "..", "a/b", ".hidden", "a\nb", "x" * 200, "/abs"])
    def test_an_id_that_is_no_plain_name_is_refused(self, store: RunStore, run_id: str) -> None:
        with pytest.raises(UsageError, match="cannot name a run"):
            store.create(header(run_id=RunId(run_id)))
        assert not store.home.exists()
        with pytest.raises(UnknownRunError):
            store.open(run_id)

    def test_a_home_that_cannot_be_made_is_told(self, tmp_path: Path) -> None:
        (tmp_path / "home").write_bytes(b"")
        with pytest.raises(StorageError, match="cannot make the directory"):
            RunStore(tmp_path / "home").create(header())

    def test_runs_open_by_id_or_by_the_only_beginning(self, store: RunStore) -> None:
        for name in ("20260101-aa", "20260101-ab", "20260202-cc"):
            store.create(header(run_id=RunId(name)))
        assert store.open("20260101-aa").run_id == "20260101-aa"
        assert store.open("202602").run_id == "20260202-cc"
        with pytest.raises(UnknownRunError) as several:
            store.open("20260101")
        assert set(several.value.nearest) == {"20260101-aa", "20260101-ab"}
        with pytest.raises(UnknownRunError, match="did you mean 20260202-cc"):
            store.open("20260202-cd")
        with pytest.raises(UnknownRunError):
            store.open("")

    def test_runs_are_listed_newest_first_damaged_ones_too(self, store: RunStore) -> None:
        assert store.runs() == ()
        for name, day in (("b", "01"), ("a", "03"), ("c", "02")):
            store.create(replace(header(run_id=RunId(name)), created_at=f"2026-01-{day}T00:00:00.000Z"))
        assert names(store) == ["a", "c", "b"]
        (store.home / "runs" / "c" / "segment-0000.jsonl").write_bytes(b"\0\xff rubbish")
        os.utime(store.home / "runs" / "c", (0, 0))
        (store.home / "runs" / "empty").mkdir()
        os.utime(store.home / "runs" / "empty", (1, 1))
        assert names(store) == ["a", "b", "empty", "c"]

    def test_leftovers_of_a_killed_creation_are_not_listed(self, store: RunStore) -> None:
        store.create(header())
        (store.home / "runs" / ".0123.tmp").mkdir()
        assert names(store) == [RUN]


class TestRun:
    def test_segments_are_read_in_order(self, store: RunStore) -> None:
        run = store.create(header())
        with run.writer(0) as writer:
            for record in (llm(1), tool(2), llm(3), asked(1, 3)):
                writer.append(record, durable=False)
        assert run.create_segment(header(1, fork=fork_at(3))) == run.segment_path(1)
        with run.writer(1) as writer:
            writer.append(done(1, 3), durable=True)
            writer.append(llm(4, base=1, keep=1), durable=False)
        assert run.segment_numbers() == (0, 1)
        assert [read.segment for read in run.segments_read()] == [0, 1]
        line = store.open(RUN).timeline()
        assert [node.record_uid for node in line.path()] == [uid(1), uid(2), uid(4)]
        assert run.segment_path(1).stat().st_mode & 0o777 == 0o600

    def test_a_missing_segment_is_named(self, store: RunStore) -> None:
        run = store.create(header())
        run.create_segment(header(2))
        assert [damage.reason for damage in run.segments_read()[1].damages] == ["the segment is missing"]
        assert run.timeline().segments == (0, 1, 2)

    def test_a_run_without_segments_is_damaged(self, store: RunStore) -> None:
        run = store.create(header())
        run.segment_path(0).unlink()
        with pytest.raises(DamagedError, match="has no segments"):
            run.timeline()
        assert run.created_at()

    def test_a_newer_run_is_listed_and_refused_by_number(self, store: RunStore) -> None:
        store.create(replace(header(), format=9))
        (run,) = store.runs()
        with pytest.raises(UnsupportedFormatError, match="format 9"):
            run.timeline()

    def test_a_header_of_another_run_is_refused(self, store: RunStore) -> None:
        run = store.create(header())
        with pytest.raises(UsageError, match="a header of run other cannot open"):
            run.create_segment(header(1, run_id=RunId("other")))

    def test_large_payloads_stand_beside_the_segments(self, store: RunStore) -> None:
        run = store.create(header())
        tools: list[JsonObject] = [{"description": "d" * 2000}]
        with run.writer(0) as writer:
            for number in range(1, 40):
                writer.append(llm(number, tools=list(tools)), durable=False)
        assert len(list((run.directory / "blobs").iterdir())) == 1
        node = run.timeline().nodes[uid(39)]
        assert node == llm(39, tools=list(tools))
        sizes = [path.stat().st_size for path in run.directory.rglob("*") if path.is_file()]
        assert run.size_bytes() == sum(sizes)

    def test_rewind_files_come_back_as_they_were(self, store: RunStore) -> None:
        run = store.create(header())
        document: JsonObject = {"target": "rec_000003", "paths": [b"\xff", "\ud800"], "n": 2**70}
        path = run.write_rewind(1, document)
        assert path == run.rewind_path(1) == run.directory / "rewind-0001.json"
        assert path.stat().st_mode & 0o777 == 0o600
        assert run.read_rewind(1) == document
        run.write_rewind(1, {})
        assert run.read_rewind(1) == {}

    def test_damaged_rewind_files_are_named(self, store: RunStore) -> None:
        run = store.create(header())
        with pytest.raises(DamagedError, match=r"rewind-0001\.json cannot be read"):
            run.read_rewind(1)
        path = run.write_rewind(1, {"target": "rec_000003"})
        path.write_bytes(path.read_bytes().replace(b"000003", b"000004"))
        with pytest.raises(DamagedError, match=r"rewind-0001\.json is damaged: the line was altered"):
            run.read_rewind(1)

    def test_a_folder_that_is_gone_cannot_be_written(self, tmp_path: Path) -> None:
        with pytest.raises(StorageError, match="cannot write"):
            write_file(tmp_path / "gone" / "file", b"x")
