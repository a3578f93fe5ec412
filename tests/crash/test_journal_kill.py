"""A process is killed while it appends: all that it had been told is written is there afterwards."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from agentrewind.journal import create_segment, read_segment
from agentrewind.records import Record, ToolNode
from agentrewind.run_store import Run, RunStore
from tests.records import header, tool, uid

ROOT = Path(__file__).parent.parent.parent

WRITER = textwrap.dedent(
    """
    # appends records one by one and acknowledges each on standard output
    import os, sys
    from pathlib import Path
    from agentrewind.run_store import Run
    from tests.records import started, tool

    run, first, durable = Run(Path(sys.argv[1])), int(sys.argv[2]), sys.argv[3] == "durable"
    writer = run.writer(0)
    for number in range(first, first + 100_000):
        writer.append(started(number), durable=durable)
        output = "x" * (40_000 if number % 9 == 0 else number % 700)
        writer.append(tool(number, output=output), durable=False)
        os.write(1, b"%d\\n" % number)
    """
)

KILLED_AT = textwrap.dedent(
    """
    # ends itself, as by SIGKILL, before or after the nth call that changes the disk
    import os, signal, sys
    from pathlib import Path

    left, sides = int(sys.argv[2]), sys.argv[3]

    def deadly(name):
        real = getattr(os, name)
        def call(*args, **options):
            global left
            left -= 1
            if left == 0 and sides == "before":
                os.kill(os.getpid(), signal.SIGKILL)
            if left == 0 and sides == "half" and name == "write":
                real(args[0], args[1][: len(args[1]) // 2])
                os.kill(os.getpid(), signal.SIGKILL)
            found = real(*args, **options)
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return found
        setattr(os, name, call)

    acknowledge = os.write
    for name in ("write", "fdatasync", "fsync", "link", "rename", "replace", "unlink", "ftruncate"):
        deadly(name)

    from agentrewind.run_store import RunStore
    from tests.records import RUN, header, started, tool

    store = RunStore(Path(sys.argv[1]))
    run = store.create(header())
    acknowledge(1, b"run\\n")
    with run.writer(0) as writer:
        for number in range(1, 4):
            writer.append(started(number), durable=True)
            writer.append(tool(number, output="x" * (40_000 if number == 2 else 10)), durable=True)
            acknowledge(1, b"%d\\n" % number)
    run.write_rewind(1, {"target": "rec_000001"})
    acknowledge(1, b"rewind\\n")
    run.create_segment(header(1))
    acknowledge(1, b"segment\\n")
    """
)


def python(script: str, *arguments: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-c", script, *arguments], stdout=subprocess.PIPE, cwd=ROOT, bufsize=0
    )


def nodes(records: tuple[tuple[int, Record], ...]) -> list[int]:
    return [int(record.record_uid[4:]) for _, record in records if isinstance(record, ToolNode)]


@pytest.mark.parametrize("mode", ["durable", "plain"])
def test_killed_at_random_every_acknowledged_record_is_there(tmp_path: Path, mode: str) -> None:
    run = RunStore(tmp_path).create(header())
    chance = random.Random(20260131)
    first = 1
    for _ in range(6):
        child = python(WRITER, str(run.directory), str(first), mode)
        assert child.stdout is not None
        said = child.stdout.readline()
        time.sleep(chance.uniform(0, 0.05))
        child.send_signal(signal.SIGKILL)
        rest, _ = child.communicate()
        assert child.returncode == -signal.SIGKILL
        acknowledged = [int(row) for row in (said + rest).splitlines(keepends=True) if row.endswith(b"\n")]
        read = read_segment(run.segment_path(0), get_blob=run.blobs.get)
        present = nodes(read.records)
        assert present == sorted(set(present))
        assert set(acknowledged) <= set(present)
        assert len(present) <= acknowledged[-1] + 1
        assert not any(damage.lost for damage in read.damages)
        first = int(run.timeline().next_uid()[4:])
    assert run.timeline().path()[0] == tool(1, output="x")


@pytest.mark.parametrize("side", ["before", "half", "after"])
def test_killed_at_every_write_the_run_reopens_with_all_that_was_acknowledged(
    tmp_path: Path, side: str
) -> None:
    survived = 0
    for nth in range(1, 60):
        home = tmp_path / str(nth)
        child = python(KILLED_AT, str(home), str(nth), side)
        said, _ = child.communicate()
        acknowledged = said.decode().split()
        _check_reopened(home, acknowledged)
        if child.returncode == 0:
            survived = nth
            break
        assert child.returncode == -signal.SIGKILL
    assert survived > 15


def _check_reopened(home: Path, acknowledged: list[str]) -> None:
    runs = RunStore(home).runs()
    if not runs:
        assert acknowledged == []
        return
    (run,) = runs
    timeline = run.timeline()
    done = [int(word) for word in acknowledged if word.isdigit()]
    present = [int(node.record_uid[4:]) for node in timeline.own_nodes(0)]
    assert present[: len(done)] == done
    assert len(present) <= len(done) + 1
    assert not any(damage.lost for damage in timeline.damages)
    if "rewind" in acknowledged:
        assert run.read_rewind(1) == {"target": "rec_000001"}
    if "segment" in acknowledged:
        assert timeline.head == 1
    _goes_on(run)


def _goes_on(run: Run) -> None:
    timeline = run.timeline()
    number = int(timeline.next_uid()[4:])
    with run.writer(0) as writer:
        writer.append(tool(number), durable=True)
    again = run.timeline()
    assert again.nodes[uid(number)] == tool(number)
    assert len(again.nodes) == len(timeline.nodes) + 1


def test_a_killed_creation_leaves_nothing_in_the_way(tmp_path: Path) -> None:
    path = tmp_path / "segment-0000.jsonl"
    (tmp_path / f".{path.name}.0123456789ab.tmp").write_bytes(b'{"kind":"hea')
    create_segment(path, header())
    assert read_segment(path).header == header()
    assert os.access(path, os.R_OK)
