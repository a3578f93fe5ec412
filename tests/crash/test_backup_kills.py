"""A restore of outside state killed at each of its changes: never begun twice, lost, or called done."""

from __future__ import annotations

import shutil
from functools import partial
from pathlib import Path

import pytest

from agentrewind.backup.entries import State
from tests.backup.bench import Bench
from tests.crash.changes import killed_at
from tests.workspace.disk import differences

LOST = "rm -r tree; echo changed > one.txt; echo new > new.txt"


def furnish(bench: Bench) -> None:
    bench.write("one.txt", "one\n")
    bench.write("tree/a", "a\n", 0o755)
    bench.write("tree/deep/b", "b\n")
    (bench.out / "tree" / "twin").hardlink_to(bench.out / "tree" / "a")


def restore(bench: Bench, ids: list[str]) -> None:
    bench.take_back(*ids, by="rewind")


def lose(bench: Bench) -> None:
    bench.do(LOST)


@pytest.mark.parametrize("first", range(1, 5))
def test_a_restore_killed_anywhere(tmp_path: Path, first: int) -> None:
    """Every fourth change of a restore, beginning with `first`."""
    number = first
    while True:
        base = tmp_path / str(number)
        bench = Bench(base=base)
        furnish(bench)
        before = bench.facts()
        bench.do(LOST)
        after = bench.facts()
        ids = [entry.id for entry in bench.entries()]
        killed = killed_at(number, partial(restore, bench, ids))
        begun = {entry.id for entry in bench.entries() if entry.by.get("rewind", State.FAILED) is None}
        results = {result.entry.id: result for result in bench.take_back(*ids, by="rewind")}
        assert bench.log.read().damages == ()
        assert {each for each in ids if results[each].state is State.UNKNOWN} == begun
        assert all(result.back for each, result in results.items() if each not in begun)
        safeties = [entry.undoes for entry in bench.entries() if entry.undoes]
        for each in begun:
            # what was there before the restore can still be brought, whatever the kill left
            assert safeties.count(each) == 1
            safety = results[each].safety
            assert safety is not None
            (undone,) = bench.restoring.restore([safety], by="undo", force=True)
            assert undone.back, undone.detail
        if begun:
            bench.take_back(*begun, by="again", force=True)
        assert differences(before, bench.facts()) == []
        assert after != before
        bench.store.close()
        shutil.rmtree(base)
        if not killed:
            return
        number += 4


@pytest.mark.parametrize("first", range(1, 3))
def test_a_backup_killed_anywhere_leaves_no_entry_without_its_payloads(tmp_path: Path, first: int) -> None:
    """Every second change of a capture, beginning with `first`."""
    number = first
    while True:
        base = tmp_path / str(number)
        bench = Bench(base=base)
        furnish(bench)
        before = bench.facts()
        killed = killed_at(number, partial(lose, bench))
        found = bench.log.read()
        assert found.damages == ()
        for entry in found.entries.values():
            assert entry.captured is not None
            for name in entry.captured.blobs:
                bench.store.check(name)
        if found.entries:
            assert all(result.back for result in bench.take_back(force=True))
        assert differences(before, bench.facts()) == []
        bench.store.close()
        shutil.rmtree(base)
        if not killed:
            return
        number += 2
