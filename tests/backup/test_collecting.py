"""Dropping backups: none that a kept run, an undo or an interrupted restore needs, whatever is killed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentrewind.backup import collecting
from agentrewind.backup.collecting import Limits, collect_backups, foresee_backups
from agentrewind.backup.entries import Entry, RestoreBegun, RestoreEnded, State, last_restore
from agentrewind.backup.kind import Captured
from agentrewind.backup.log import BackupLog
from agentrewind.backup.sizes import backup_sizes
from agentrewind.backup.store import BackupStore
from agentrewind.backup.values import Target
from agentrewind.clock import SystemClock
from agentrewind.errors import UsageError
from tests.backup.bench import Bench
from tests.backup.test_log import entry
from tests.crash.changes import killed_at, numbers

CLOCK = SystemClock()
RUNS = ("kept", "fork", "gone")
FOREVER = Limits()


@dataclass
class House:
    """A home with a run that is kept, one that was forked from it, and the backups of these and of others."""

    home: Path

    def __post_init__(self) -> None:
        self.directory = self.home / "backup"
        self.log, self.store = BackupLog(self.directory, CLOCK), BackupStore(self.directory)
        for name in ("kept", "fork"):
            (self.home / "runs" / name).mkdir(parents=True, exist_ok=True)

    def preserve(self, run_id: str | None, content: str, *, day: int = 1, **given: Any) -> Entry:
        with self.store.in_use():
            name = self.store.put(content.encode())
            made = entry(
                self.log,
                run_id=run_id,
                at=f"2026-01-{day:02}T08:00:00.000Z",
                call=f"call {os.urandom(4).hex()}",
                target=Target(kind="files", name=f"/{content}", detail={}),
                captured=Captured(manifest={}, blobs=(name,), bytes=len(content)),
                **given,
            )
            self.log.append(made)
        return made

    def restore(self, what: Entry, content: str, *, ended: bool, day: int) -> Entry:
        """A restore of it that was begun, and ended or not."""
        safety = self.preserve(what.run_id, content, day=day, undoes=what.id)
        by = f"person {safety.id}"
        self.log.append(RestoreBegun(id=what.id, by=by, safety=safety.id, at=""))
        if ended:
            self.log.append(RestoreEnded(id=what.id, by=by, state=State.RESTORED, detail=(), at=""))
        return safety

    def mention(self, run: str, what: Entry) -> None:
        path = self.home / "runs" / run / "segment-0000.jsonl"
        path.write_text(json.dumps({"kind": "tool", "metadata": {"external": [{"id": what.id}]}}) + "\n")

    def entries(self) -> dict[str, Entry]:
        found = BackupLog(self.directory, CLOCK).read()
        assert found == self.log.read(), "one that has read before sees the same"
        return found.entries

    def check(self, entries: dict[str, Entry]) -> None:
        """Every entry has its payloads."""
        for each in entries.values():
            for name in each.captured.blobs if each.captured else ():
                self.store.check(name)

    def payloads(self) -> set[str]:
        return {path.name for path in (self.directory / "blobs").glob("*")}

    def collect(self, limits: Limits = FOREVER) -> list[str]:
        return [each.id for each in collect_backups(self.home, limits, clock=CLOCK).entries]


CONTENTS = st.sampled_from(["a", "b", "c", "d"])
STEPS = st.tuples(
    st.sampled_from([*RUNS, None]),
    CONTENTS,
    st.sampled_from(["nothing", "restored", "interrupted", "mentioned by the fork"]),
)
LIMITS = st.builds(
    Limits,
    since=st.one_of(st.none(), st.integers(1, 9).map(lambda day: f"2026-01-{day:02}T09:00:00.000Z")),
    bytes=st.one_of(st.none(), st.integers(0, 4)),
)


@settings(deadline=None, max_examples=20)
@given(steps=st.lists(STEPS, max_size=7), limits=LIMITS, damaged=st.booleans())
def test_what_is_needed_stays_and_all_else_of_runs_that_are_gone_goes(
    tmp_path_factory: pytest.TempPathFactory,
    steps: list[tuple[str | None, str, str]],
    limits: Limits,
    damaged: bool,
) -> None:
    house = House(tmp_path_factory.mktemp("house") / "home")
    needed: set[str] = set()
    for day, (run_id, content, what) in enumerate(steps, 1):
        made = house.preserve(run_id, content, day=day)
        if what == "mentioned by the fork":
            house.mention("fork", made)
            needed = {*needed, made.id} if run_id == "gone" else needed
        elif what != "nothing":
            safety = house.restore(made, content + "'", ended=what == "restored", day=day)
            needed |= {made.id, safety.id} if what == "interrupted" else set()
    if damaged and steps:
        lost = house.preserve("gone", "only a damaged line names it")
        path = house.directory / "log.jsonl"
        path.write_bytes(path.read_bytes().replace(lost.call.encode(), b"CALL" + lost.call[4:].encode()))
    before = house.entries()
    # the last mention alone is in the fork's file
    named = (house.home / "runs" / "fork" / "segment-0000.jsonl").exists()
    text = (house.home / "runs" / "fork" / "segment-0000.jsonl").read_text() if named else ""
    needed = {
        each for each in needed if before[each].state is State.UNKNOWN or before[each].undoes or each in text
    }
    undo = {each.id for each in last_restore(before.values())}
    foreseen = [each.id for each in foresee_backups(house.home, limits, clock=CLOCK).entries]

    dropped = house.collect(limits)

    assert dropped == foreseen
    after = house.entries()
    assert after == {each: found for each, found in before.items() if each not in dropped}
    house.check(after)
    assert not {*needed, *undo} & {*dropped}
    for each in dropped:
        assert before[each].run_id in ("gone", None)
        safeties = {other.id for other in before.values() if other.undoes == each}
        assert safeties <= {*dropped}, "what a restore preserved goes with its entry"
    if limits == FOREVER:
        assert all(before[each].run_id == "gone" for each in dropped)
    held = {*needed, *undo, *(before[each].undoes for each in undo)}
    gone = {each for each, found in before.items() if found.run_id == "gone"}
    assert {each for each in gone - {*dropped} if before[each].undoes is None} <= held
    named_now = {name.removeprefix("sha256:") for found in after.values() for name in found.captured.blobs}  # type: ignore[union-attr]
    assert named_now <= house.payloads()
    assert len(house.payloads() - named_now) <= (1 if damaged else 0), "a damaged line keeps what it names"
    assert house.collect(limits) == []


def test_old_ones_of_no_run_go_by_age_and_the_oldest_by_size(tmp_path: Path) -> None:
    house = House(tmp_path / "home")
    one, two, three = (house.preserve(None, "x" * 100 + str(day), day=day) for day in (1, 2, 3))
    kept = house.preserve("kept", "y" * 1000, day=1)
    assert house.collect() == []
    assert house.collect(Limits(since="2026-01-02T00:00:00.000Z")) == [one.id]
    assert house.collect(Limits(bytes=150)) == [two.id]
    assert set(house.entries()) == {three.id, kept.id}
    sizes = backup_sizes(house.home, clock=CLOCK)
    assert (sizes.of_run, sizes.of_runs, sizes.of_hooks) == ({"kept": 1000}, 1000, 101)


def test_a_payload_that_was_dropped_is_kept_again_by_who_had_kept_it_before(tmp_path: Path) -> None:
    house = House(tmp_path / "home")
    house.preserve("gone", "the same")
    assert len(house.collect()) == 1
    assert house.payloads() == set()
    house.preserve("kept", "the same")
    assert house.collect() == []
    house.check(house.entries())


def test_a_reader_that_has_read_before_begins_again_even_where_the_log_grew(tmp_path: Path) -> None:
    house = House(tmp_path / "home")
    reader = BackupLog(house.directory, CLOCK)
    house.preserve("gone", "one")
    assert len(reader.read().entries) == 1
    house.collect()
    two, three = house.preserve("kept", "two"), house.preserve("kept", "three")
    assert list(reader.read().entries) == [two.id, three.id]


def test_what_is_appended_while_entries_are_dropped_is_in_the_log(tmp_path: Path) -> None:
    house = House(tmp_path / "home")
    gone, new = house.preserve("gone", "one"), entry(house.log, run_id="kept")
    writer = threading.Thread(target=house.log.append, args=(new,))

    def choose(entries: Mapping[str, Entry]) -> list[str]:
        writer.start()
        writer.join(0.3)  # it has opened the file that is about to be replaced, and waits for its lock
        assert writer.is_alive()
        return [gone.id]

    BackupLog(house.directory, CLOCK).drop(choose)
    writer.join()
    assert list(BackupLog(house.directory, CLOCK).read().entries) == [new.id]


def test_what_a_failed_capture_left_is_swept_and_stops_no_later_one(tmp_path: Path) -> None:
    house = House(tmp_path / "home")
    house.preserve("kept", "kept")
    (tmp_path / "file").write_text("no entry names it")
    with house.store.in_use():
        house.store.put_file(tmp_path / "file")
        house.store.scratch()
    assert collect_backups(house.home, FOREVER, clock=CLOCK).bytes == len("no entry names it")
    assert not (house.directory / "scratch").exists()
    house.store.settle()
    house.check(house.entries())


def test_while_a_call_is_preserved_for_nothing_is_dropped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(collecting, "PATIENCE", 0.1)
    house = House(tmp_path / "home")
    house.preserve("gone", "gone")
    with house.store.in_use():
        assert collect_backups(house.home, FOREVER, clock=CLOCK).busy
        assert len(house.entries()) == 1
    assert len(house.collect()) == 1


def test_a_restore_of_what_is_gone_says_so(tmp_path: Path) -> None:
    bench = Bench(base=tmp_path, store_at=tmp_path / "home" / "backup")
    bench.write("one.txt", "one\n")
    bench.do("rm one.txt")
    ids = [each.id for each in bench.entries()]
    collect_backups(tmp_path / "home", FOREVER, clock=CLOCK)
    assert bench.entries() == []
    with pytest.raises(UsageError, match="no backup is called"):
        bench.take_back(*ids)


def test_calls_go_on_while_backups_are_dropped(tmp_path: Path) -> None:
    """A hook at work beside one collection after the other: what it preserved comes back."""
    bench = Bench(base=tmp_path, store_at=tmp_path / "home" / "backup")
    home = bench.store.directory.parent
    hook = replace(bench.backups, run_id=None)
    other = replace(bench.backups, run_id="gone", store=BackupStore(bench.store.directory))
    stop = threading.Event()

    def collect() -> None:
        while not stop.is_set():
            collect_backups(home, FOREVER, clock=CLOCK)

    collector = threading.Thread(target=collect)
    collector.start()
    try:
        for number in range(12):
            path = bench.write(f"{number % 3}.txt", f"{number % 2}\n")
            assert not other.before(bench.call(f"rm {path.name}"), f"rec_{number}").blocked
            guarded = hook.before(bench.call(f"rm {path.name}"), f"rec_{number}")
            assert not guarded.blocked
            path.unlink()
            hook.after(guarded)
    finally:
        stop.set()
        collector.join()
    collect_backups(home, FOREVER, clock=CLOCK)
    found = bench.log.read()
    assert found.damages == ()
    assert [each.run_id for each in found.entries.values()] == [None] * 12
    results = bench.take_back(bench.entries()[-1].id)
    assert [result.state for result in results] == [State.RESTORED], results
    for each in found.entries.values():
        assert each.captured is not None
        for name in each.captured.blobs:
            bench.store.check(name)


def test_a_collection_killed_anywhere_loses_nothing_that_is_kept(tmp_path: Path) -> None:
    for number in numbers():
        house = House(tmp_path / str(number))
        kept = [house.preserve("kept", "shared"), house.preserve(None, "of a hook")]
        house.restore(kept[0], "before it", ended=True, day=2)
        for content in ("shared", "other", "third"):
            house.preserve("gone", content)
        everything = house.entries()
        left = {each for each, found in everything.items() if found.run_id != "gone"}

        killed = killed_at(number, partial(house.collect, FOREVER))  # type: ignore[arg-type]

        found = house.entries()
        assert set(found) in (left, set(everything)), "all that goes does so in one act"
        house.check(found)
        house.preserve("kept", "written after the kill")
        house.collect()
        found = house.entries()
        assert len(found) == len(left) + 1
        house.check(found)
        assert len(house.payloads()) == 4
        assert not list(house.directory.glob(".*.tmp"))
        shutil.rmtree(house.home)
        if not killed:
            assert number > 5
            return


def test_gc_names_what_goes_and_what_would(tmp_path: Path) -> None:
    house = House(tmp_path / "home")
    gone, old, new = house.preserve("gone", "a"), house.preserve(None, "b"), house.preserve(None, "c")
    shutil.rmtree(house.home / "runs")
    limits = ("--backup-age", "1h")
    told = gc(house.home, "--dry-run", *limits)
    assert (told["dry_run"], [each["id"] for each in told["backups_dropped"]]) == (
        True,
        [gone.id, old.id, new.id],
    )
    assert len(house.entries()) == 3
    told = gc(house.home)
    assert [each["id"] for each in told["backups_dropped"]] == [gone.id]
    assert (told["backup_bytes_freed"], told["hook_backup_bytes"]) == (1, 2)


def gc(home: Path, *words: str) -> Any:
    done = subprocess.run(
        [sys.executable, "-m", "agentrewind.cli", "gc", *words, "--json"],
        env={"PATH": os.environ["PATH"], "AGENTREWIND_HOME": str(home)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])
