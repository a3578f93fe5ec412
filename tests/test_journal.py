"""One segment: appending, syncing, failing disks, torn tails, and reading around damage."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from agentrewind.codec import encode
from agentrewind.errors import DamagedError, ProtectedError, StorageError, UnsupportedFormatError, UsageError
from agentrewind.journal import SegmentWriter, create_segment, read_segment, segment_number, tail_reader
from agentrewind.records import Header, Note, Record
from tests.records import AT, finished, header, llm, started, tool


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run" / "segment-0000.jsonl"


def no_blob(data: bytes) -> str:
    raise AssertionError("nothing here is large")


def line(record: Record) -> bytes:
    return encode(record, put_blob=no_blob)


def filled(path: Path, *records: Record) -> bytes:
    create_segment(path, header())
    with SegmentWriter(path) as writer:
        for record in records:
            writer.append(record, durable=False)
    return path.read_bytes()


def found(path: Path) -> list[Record]:
    return [record for _, record in read_segment(path).records]


class TestCreating:
    def test_a_segment_holds_its_header_and_is_private(self, path: Path) -> None:
        create_segment(path, header())
        read = read_segment(path)
        assert (read.segment, read.header, read.records, read.damages) == (0, header(), (), ())
        assert path.stat().st_mode & 0o777 == 0o600
        assert path.parent.stat().st_mode & 0o777 == 0o700
        assert [item.name for item in path.parent.iterdir()] == [path.name]

    def test_an_existing_one_is_never_overwritten(self, path: Path) -> None:
        before = filled(path, llm(1))
        with pytest.raises(ProtectedError, match="never overwritten"):
            create_segment(path, header())
        assert path.read_bytes() == before
        assert [item.name for item in path.parent.iterdir()] == [path.name]

    def test_a_place_that_cannot_be_written_is_told(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_bytes(b"")
        with pytest.raises(StorageError, match="cannot make the directory"):
            create_segment(tmp_path / "file" / "run" / "segment-0000.jsonl", header())

    def test_names(self) -> None:
        assert segment_number(Path("/x/segment-0012.jsonl")) == 12
        assert segment_number(Path("/x/segment-12345.jsonl")) == 12345
        assert segment_number(Path("/x/.segment-0012.jsonl.ab.tmp")) is None


class TestAppending:
    def test_records_come_back_in_order_with_their_offsets(self, path: Path) -> None:
        data = filled(path, started(1), llm(1), tool(2))
        read = read_segment(path)
        assert [record for _, record in read.records] == [started(1), llm(1), tool(2)]
        for offset, record in read.records:
            assert data[offset:].startswith(line(record))

    def test_a_missing_segment_is_not_made(self, path: Path) -> None:
        with pytest.raises(DamagedError, match="is missing"):
            SegmentWriter(path)
        with pytest.raises(DamagedError, match="cannot be read"):
            read_segment(path)

    def test_a_record_that_cannot_be_written_leaves_the_file_as_it_was(self, path: Path) -> None:
        before = filled(path)
        bad = Note(topic="x", text="", at=AT, data={"a": {1}})  # type: ignore[dict-item]
        with SegmentWriter(path) as writer:
            with pytest.raises(UsageError, match=r"event\.data\.a"):
                writer.append(bad, durable=True)
            assert path.read_bytes() == before
            writer.append(llm(1), durable=True)
        assert found(path) == [llm(1)]

    def test_threads_share_a_writer(self, path: Path) -> None:
        create_segment(path, header())
        with SegmentWriter(path) as writer:

            def work(first: int) -> None:
                for number in range(first, first + 50):
                    writer.append(tool(number), durable=number % 25 == 0)

            threads = [threading.Thread(target=work, args=(first,)) for first in (1, 101, 201, 301)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        read = read_segment(path)
        assert read.damages == ()
        assert len(read.records) == 200

    def test_two_writers_take_turns(self, path: Path) -> None:
        create_segment(path, header())
        with SegmentWriter(path) as one, SegmentWriter(path) as two:
            for number in range(1, 9, 2):
                one.append(tool(number), durable=False)
                two.append(tool(number + 1), durable=False)
        assert found(path) == [tool(number) for number in range(1, 9)]

    def test_one_write_per_record(self, path: Path) -> None:
        """Counted by the kernel, as bytes and calls of this process."""
        create_segment(path, header())
        with SegmentWriter(path) as writer:
            writer.append(llm(1), durable=False)
            before = _write_calls()
            for number in range(2, 22):
                writer.append(llm(number), durable=False)
            assert _write_calls() - before == 20


def _write_calls() -> int:
    for row in Path("/proc/thread-self/io").read_text().splitlines():
        if row.startswith("syscw:"):
            return int(row.split()[1])
    raise AssertionError("the kernel does not count writes")


class TestFullDisk:
    """The limit on the size of a file makes the kernel cut writes short, as a full disk does."""

    SCRIPT = textwrap.dedent(
        """
        import resource, signal, sys
        from pathlib import Path
        from agentrewind.errors import StorageError
        from agentrewind.journal import SegmentWriter
        from tests.records import llm, tool

        path, room, again = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3] == "again"
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        writer = SegmentWriter(path)
        writer.append(llm(1), durable=True)
        size = path.stat().st_size
        resource.setrlimit(resource.RLIMIT_FSIZE, (size + room, resource.RLIM_INFINITY))
        for _ in range(2):
            try:
                writer.append(tool(2), durable=True)
            except StorageError as error:
                print(error)
            assert path.stat().st_size == size
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        if again:
            writer.append(tool(3), durable=True)
        """
    )

    @pytest.mark.parametrize("room", [0, 1, 100, 300])
    @pytest.mark.parametrize("again", ["again", "never"])
    def test_a_line_that_does_not_fit_is_taken_back(self, path: Path, room: int, again: str) -> None:
        create_segment(path, header())
        done = subprocess.run(
            [sys.executable, "-c", self.SCRIPT, str(path), str(room), again],
            capture_output=True,
            text=True,
            cwd=Path(__file__).parent.parent,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert done.stdout.count("cannot append to") == 2
        assert "make room" in done.stdout
        read = read_segment(path)
        assert read.damages == ()
        assert found(path) == ([llm(1), tool(3)] if again == "again" else [llm(1)])


class TestTornTails:
    def test_a_new_record_starts_on_a_fresh_line_whatever_was_cut(self, path: Path, tmp_path: Path) -> None:
        data = filled(path, llm(1), tool(2))
        last = data.rindex(b"\n", 0, -1) + 1
        for cut in range(last, len(data) + 1):
            torn = tmp_path / f"{cut}" / "segment-0000.jsonl"
            torn.parent.mkdir()
            torn.write_bytes(data[:cut])
            with SegmentWriter(torn) as writer:
                writer.append(finished("error"), durable=False)
                writer.append(started(3), durable=False)
            read = read_segment(torn)
            whole = [llm(1), tool(2)] if cut >= len(data) - 1 else [llm(1)]
            assert [record for _, record in read.records] == [*whole, finished("error"), started(3)]
            if last < cut < len(data) - 1:
                (damage,) = read.damages
                assert (damage.offset, damage.lost) == (last, False)
                assert damage.length == cut - last + 1
                assert "cut while it was being written" in str(damage)
            else:
                assert read.damages == ()

    def test_zeros_that_a_power_cut_left_are_no_record(self, path: Path) -> None:
        data = filled(path, llm(1))
        path.write_bytes(data + b"\0" * 5000)
        with SegmentWriter(path) as writer:
            writer.append(tool(2), durable=True)
        read = read_segment(path)
        assert [record for _, record in read.records] == [llm(1), tool(2)]
        assert [(damage.offset, damage.lost) for damage in read.damages] == [(len(data), False)]

    def test_a_tail_that_another_writer_left_is_seen_too(self, path: Path) -> None:
        filled(path, llm(1))
        with SegmentWriter(path) as writer:
            writer.append(tool(2), durable=False)
            with path.open("ab") as file:
                file.write(line(tool(3))[:100])
            writer.append(tool(4), durable=False)
        assert found(path) == [llm(1), tool(2), tool(4)]

    def test_a_long_torn_tail_costs_no_record(self, path: Path) -> None:
        filled(path, llm(1))
        with path.open("ab") as file:
            file.write(b'{"record_uid":"' + b"x" * 200_000)
        with SegmentWriter(path) as writer:
            writer.append(tool(2), durable=False)
        assert found(path) == [llm(1), tool(2)]


class TestReading:
    def test_a_newer_format_is_refused_by_number(self, path: Path) -> None:
        create_segment(path, replace(header(), format=2))
        with pytest.raises(UnsupportedFormatError, match="format 2, this version reads up to 1"):
            read_segment(path)
        path.write_bytes(b'{"kind":"header","format":3}\n')
        with pytest.raises(UnsupportedFormatError, match="format 3"):
            read_segment(path)

    def test_an_empty_file_and_a_lost_header_are_named(self, path: Path) -> None:
        data = filled(path, llm(1))
        path.write_bytes(b"")
        assert [damage.reason for damage in read_segment(path).damages] == ["the segment has no header"]
        path.write_bytes(data[data.index(b"\n") + 1 :])
        read = read_segment(path)
        assert read.header is None
        assert [record for _, record in read.records] == [llm(1)]
        assert [damage.reason for damage in read.damages] == ["the segment has no header"]

    def test_a_missing_blob_costs_its_node_only(self, path: Path) -> None:
        filled(path, llm(1), tool(2, output="x" * 40_000), tool(3))
        (only,) = (path.parent / "blobs").iterdir()
        only.unlink()
        read = read_segment(path)
        assert [record for _, record in read.records] == [llm(1), tool(3)]
        (damage,) = read.damages
        assert (damage.record_uid, damage.lost) == (tool(2).record_uid, True)
        assert "is missing" in damage.reason

    def test_a_second_header_is_named(self, path: Path) -> None:
        data = filled(path, llm(1))
        path.write_bytes(data + line(header(1)))
        read = read_segment(path)
        assert read.header == header()
        assert [damage.reason for damage in read.damages] == ["a header stands after other records"]

    def test_the_same_node_told_differently_is_named(self, path: Path) -> None:
        filled(path, tool(2, output="one"), tool(2, output="two"))
        read = read_segment(path)
        assert [record for _, record in read.records] == [tool(2, output="one")]
        assert [damage.reason for damage in read.damages] == ["rec_000002 was recorded before"]

    def test_line_ends_of_another_system_cost_nothing(self, path: Path) -> None:
        data = filled(path, llm(1), tool(2))
        path.write_bytes(data.replace(b"\n", b"\r\n"))
        read = read_segment(path)
        assert read.header == header()
        assert [record for _, record in read.records] == [llm(1), tool(2)]
        assert {damage.length for damage in read.damages} == {1}

    def test_a_line_inside_a_value_is_no_record(self, path: Path) -> None:
        inner = line(tool(9)).decode()
        filled(path, tool(1, output=inner), tool(2, output={"record_uid": "rec_000009", "kind": "tool"}))
        data = path.read_bytes()
        path.write_bytes(data.replace(b'"rec_000001"', b'"rec_000007"', 1))
        assert found(path)[0] == tool(2, output={"record_uid": "rec_000009", "kind": "tool"})


class TestFollowing:
    def test_records_appear_as_they_are_written(self, path: Path) -> None:
        tail = tail_reader(path)
        assert tail.poll() == ()
        create_segment(path, header())
        assert tail.poll() == (header(),)
        with SegmentWriter(path) as writer:
            writer.append(llm(1), durable=False)
            writer.append(tool(2), durable=False)
            assert tail.poll() == (llm(1), tool(2))
            assert tail.poll() == ()

    def test_a_half_line_waits_until_it_is_whole(self, path: Path) -> None:
        filled(path, llm(1))
        tail = tail_reader(path)
        tail.poll()
        new = line(tool(2))
        for byte in range(len(new) - 1):
            with path.open("ab") as file:
                file.write(new[byte : byte + 1])
            assert tail.poll() == ()
        with path.open("ab") as file:
            file.write(new[-1:])
        assert tail.poll() == (tool(2),)

    def test_damage_is_passed_over(self, path: Path) -> None:
        filled(path, llm(1))
        with path.open("ab") as file:
            file.write(b"\0" * 10 + line(tool(2)) + b"rubbish\n" + line(tool(3)))
        assert tail_reader(path).poll() == (header(), llm(1), tool(2), tool(3))


def test_a_closed_writer_says_so(path: Path) -> None:
    create_segment(path, header())
    writer = SegmentWriter(path)
    writer.close()
    writer.close()
    with pytest.raises(StorageError):
        writer.append(llm(1), durable=True)
    assert isinstance(read_segment(path).header, Header)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full")
def test_a_device_without_room_is_told() -> None:
    writer = SegmentWriter(Path("/dev/full"))
    with pytest.raises(StorageError, match="No space left on device"):
        writer.append(llm(1), durable=True)
    writer.close()


def test_after_a_failed_sync_nothing_more_is_taken() -> None:
    writer = SegmentWriter(Path("/dev/null"))
    writer.append(llm(1), durable=False)
    for record in (tool(2), tool(3)):
        with pytest.raises(StorageError, match="cannot make durable /dev/null"):
            writer.append(record, durable=True)
    writer.close()
