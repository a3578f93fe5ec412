"""The backup log: nothing that was written is lost, whatever is torn, altered or written side by side."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentrewind.backup.entries import CallEnded, Entry, RestoreBegun, RestoreEnded, State
from agentrewind.backup.kind import Captured
from agentrewind.backup.log import BackupLog
from agentrewind.backup.rewinding import External, told
from agentrewind.backup.store import BackupStore
from agentrewind.backup.values import Target, Tier
from agentrewind.clock import SystemClock
from agentrewind.errors import DamagedError, UnsupportedFormatError, UsageError
from agentrewind.sealed_line import seal


def entry(log: BackupLog, **given: object) -> Entry:
    fields: dict[str, object] = {
        "id": log.new_id(),
        "at": "2026-01-31T08:00:00.000Z",
        "run_id": "run",
        "node": "rec_000001",
        "tool": "bash",
        "call": "rm x",
        "tier": Tier.PAIR,
        "rule": "files.rm",
        "target": Target(kind="files", name="/x", detail={"paths": [b"/\xff"]}),
        "captured": Captured(manifest={"trees": []}, blobs=("sha256:0",), bytes=3, notes=("note",)),
        "cwd": "/",
        "home": "/",
        "before": "f0",
    }
    return Entry(**{**fields, **given})  # type: ignore[arg-type]


def test_what_is_written_is_read(tmp_path: Path) -> None:
    log = BackupLog(tmp_path / "backup", SystemClock())
    one, two = entry(log), entry(log, state=State.NOT_COVERED, target=None, captured=None)
    log.append(one)
    log.append(two)
    found = log.read()
    assert list(found.entries.values()) == [one, two]
    assert found.damages == ()
    assert stat.S_IMODE((tmp_path / "backup" / "log.jsonl").stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "backup").stat().st_mode) == 0o700


def test_what_became_of_an_entry_is_folded_in(tmp_path: Path) -> None:
    log = BackupLog(tmp_path, SystemClock())
    one = entry(log)
    log.append(one)
    log.append(CallEnded(id=one.id, fingerprint="f1"))
    assert log.entry(one.id).after == "f1"
    log.append(RestoreBegun(id=one.id, by="a", safety=None, at=""))
    assert (log.entry(one.id).state, log.entry(one.id).by) == (State.UNKNOWN, {"a": None})
    log.append(RestoreEnded(id=one.id, by="a", state=State.PARTLY, detail=("y",), at=""))
    assert (log.entry("last").state, log.entry(one.id).detail) == (State.PARTLY, ("y",))
    log.append(RestoreEnded(id=one.id, by="b", state=State.RESTORED, detail=(), at=""))
    assert not log.entry(one.id).restorable
    with pytest.raises(UsageError, match="no backup is called 'last'"):
        log.entry("last")


def test_a_call_that_changed_nothing_leaves_nothing_to_restore(tmp_path: Path) -> None:
    log = BackupLog(tmp_path, SystemClock())
    one = entry(log)
    log.append(one, CallEnded(id=one.id, fingerprint="f0"))
    assert log.entry(one.id).state is State.UNCHANGED


@settings(deadline=None, max_examples=60)
@given(cut=st.integers(0, 4000), more=st.integers(0, 3))
def test_a_log_cut_anywhere_opens_as_a_prefix_and_takes_what_follows(
    tmp_path_factory: pytest.TempPathFactory, cut: int, more: int
) -> None:
    log = BackupLog(tmp_path_factory.mktemp("log"), SystemClock())
    entries = [entry(log) for _ in range(4)]
    for each in entries:
        log.append(each)
    path = log._path
    data = path.read_bytes()
    path.write_bytes(data[: min(cut, len(data))])
    whole = list(log.read().entries)
    assert whole == [each.id for each in entries][: len(whole)]
    later = [entry(log) for _ in range(more)]
    for each in later:
        log.append(each)
    found = log.read()
    assert found.damages == ()
    kept = [each for each in found.entries if each not in {item.id for item in later}]
    assert kept[: len(whole)] == whole
    assert len(kept) <= len(whole) + 1  # a line that lacked its newline alone was whole
    assert [each for each in found.entries if each not in kept] == [each.id for each in later]


def test_an_altered_line_is_named_and_the_others_are_read(tmp_path: Path) -> None:
    log = BackupLog(tmp_path, SystemClock())
    one, two = entry(log), entry(log)
    log.append(one)
    log.append(two)
    data = log._path.read_bytes()
    log._path.write_bytes(data.replace(b'"rm x"', b'"rm y"', 1))
    found = log.read()
    assert list(found.entries) == [two.id]
    assert len(found.damages) == 1
    assert "line 2" in found.damages[0]
    assert "checksum" in found.damages[0]


def test_what_another_process_appends_is_read_on(tmp_path: Path) -> None:
    log, other = BackupLog(tmp_path, SystemClock()), BackupLog(tmp_path, SystemClock())
    one, two = entry(log), entry(log)
    log.append(one)
    assert list(other.read().entries) == [one.id]
    log.append(two)
    log.append(CallEnded(id=one.id, fingerprint="f1"))
    assert other.read() == BackupLog(tmp_path, SystemClock()).read()
    assert other.entry(one.id).after == "f1"
    log._path.unlink()
    assert other.read().entries == {}


def test_a_rewind_says_that_lines_could_not_be_read(tmp_path: Path) -> None:
    log = BackupLog(tmp_path / "backup", SystemClock())
    log.append(entry(log))
    log.append(entry(log))
    log._path.write_bytes(log._path.read_bytes().replace(b'"rm x"', b'"rm y"', 1))
    external = External(
        home=tmp_path, run_id="other", workspace=tmp_path, environment={}, clock=SystemClock()
    )
    found = external.take_back(["rec_000001"], by="rewind")
    assert [(each["kind"], each["state"]) for each in found] == [("log", "not restorable")]
    assert "1 damaged line(s) of the backup log" in "".join(told(found))


def test_a_newer_format_is_refused_by_number(tmp_path: Path) -> None:
    (tmp_path / "log.jsonl").write_bytes(seal(b'{"kind":"header","format":99}'))
    with pytest.raises(UnsupportedFormatError, match="99"):
        BackupLog(tmp_path, SystemClock()).read()


WRITE = """
import sys
from pathlib import Path
from agentrewind.backup.log import BackupLog
from agentrewind.clock import SystemClock
from tests.backup.test_log import entry
log = BackupLog(Path(sys.argv[1]), SystemClock())
for _ in range(40):
    log.append(entry(log, node=sys.argv[2]))
"""


def test_several_processes_write_at_once(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITE, str(tmp_path), f"n{number}"], env=environment)
        for number in range(3)
    ]
    assert [writer.wait(timeout=60) for writer in writers] == [0, 0, 0]
    found = BackupLog(tmp_path, SystemClock()).read()
    assert found.damages == ()
    assert sorted(each.node or "" for each in found.entries.values()) == sorted(["n0", "n1", "n2"] * 40)


def test_payloads_are_private_shared_and_checked(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.write_bytes(b"x" * 3_000_000)
    source.chmod(0o644)
    with BackupStore(tmp_path / "backup") as store:
        name = store.put_file(source)
        assert name == store.put_file(source)
        assert store.get(name) == source.read_bytes()
        store.check(name)
        kept = tmp_path / "backup" / "blobs" / name.removeprefix("sha256:")
        assert stat.S_IMODE(kept.stat().st_mode) == 0o600
        assert kept.stat().st_ino != source.stat().st_ino
        source.write_bytes(b"y")
        store.check(name)
        kept.write_bytes(b"z")
        with pytest.raises(DamagedError, match="altered"):
            store.check(name)
        source.write_bytes(b"x" * 3_000_000)
        assert store.put_file(source) == name  # a damaged payload is written again
        store.check(name)
        scratch = store.scratch()
        (scratch / "dump").write_bytes(b"")
    assert not scratch.exists()


def test_many_files_are_durable_together(tmp_path: Path) -> None:
    with BackupStore(tmp_path / "backup") as store:
        for number in range(20):
            (tmp_path / f"{number}").write_bytes(b"%d" % number)
            store.put_file(tmp_path / f"{number}")
        store.settle()
        store.settle()
