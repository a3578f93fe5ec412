"""What a call only removes is kept by links: nothing is copied, and it comes back."""

from __future__ import annotations

import mmap
import os
from dataclasses import replace
from pathlib import Path

import pytest

from agentrewind.backup.entries import State
from agentrewind.backup.kinds import files_targets
from tests.backup.bench import Bench


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    # the size from which on it is so, small enough for a test
    monkeypatch.setattr(files_targets, "LINKED", 1000)
    made = Bench(base=tmp_path)
    for number in range(30):
        made.write(f"images/{number % 3}/{number}.png", f"picture {number} " * 20, mode=0o640)
    (made.out / "images" / "link").symlink_to("0/0.png")
    return made


def test_what_is_removed_comes_back_and_nothing_was_copied(bench: Bench) -> None:
    before = bench.facts()
    bench.do(f"rm -rf '{bench.out}/images'")
    assert not (bench.out / "images").exists()
    store = bench.store.directory
    assert len(list((store / "links").iterdir())) == 30
    assert sum(path.stat().st_size for path in (store / "blobs").iterdir()) < 30 * 200

    [result] = bench.take_back()

    assert result.state is State.RESTORED, result.detail
    assert bench.facts() == before


def test_what_was_written_into_under_another_name_is_not_called_restored(bench: Bench) -> None:
    other = bench.base / "other name"
    os.link(bench.out / "images" / "0" / "0.png", other)
    bench.do(f"rm -rf '{bench.out}/images'")
    with other.open("a") as file:
        file.write("written later")

    [result] = bench.take_back()

    assert result.state is not State.RESTORED
    assert any("another name" in line for line in result.detail)
    # all the others are back
    assert len([path for path in (bench.out / "images").rglob("*.png") if path.is_file()]) == 29


def test_what_a_call_writes_is_copied_whatever_its_size(bench: Bench) -> None:
    target = bench.out / "images" / "1" / "1.png"
    before = target.read_text()
    bench.do(f"echo short > '{target}'")
    assert target.read_text() == "short\n"
    assert not (bench.store.directory / "links").exists()
    bench.take_back()
    assert target.read_text() == before


def test_on_another_file_system_it_is_copied(bench: Bench) -> None:
    elsewhere = Path("/dev/shm")
    if not elsewhere.is_dir() or elsewhere.stat().st_dev == bench.out.stat().st_dev:
        pytest.skip("there is no other file system here")
    folder = elsewhere / f"agentrewind-{os.getpid()}"
    (folder / "sub").mkdir(parents=True)
    (folder / "sub" / "large").write_text("x" * 5000)
    before = bench.facts(folder)
    bench.do(f"rm -rf '{folder}'")
    assert not folder.exists()
    [result] = bench.take_back()
    assert result.state is State.RESTORED, result.detail
    found = bench.facts(folder)
    bench.run(f"rm -rf '{folder}'")
    assert {path: replace(fact, mtime_ns=0) for path, fact in found.items()} == {
        path: replace(fact, mtime_ns=0) for path, fact in before.items()
    }


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    """Files that are worth a link, where they are nobody else's."""
    monkeypatch.setattr(files_targets, "SOLE_FILES", 4)
    made = Bench(base=tmp_path)
    for name in ("a", "b", "c", "d"):
        made.write(f"logs/{name}", f"{name}\n")
    return made


def links(bench: Bench) -> int:
    return len(list((bench.store.directory / "links").glob("*")))


def test_what_is_nobody_elses_is_kept_by_a_link_whatever_its_size(small: Bench) -> None:
    before = small.facts()
    small.do(f"rm -rf '{small.out}/logs'")
    assert links(small) == 4
    [result] = small.take_back()
    assert result.state is State.RESTORED, result.detail
    assert small.facts() == before


@pytest.mark.parametrize("how", ["open", "mapped", "another name"])
def test_what_somebody_could_write_into_is_copied(small: Bench, how: str) -> None:
    path, other = small.out / "logs" / "a", small.base / "other name"
    before = small.facts()
    if how == "another name":
        os.link(path, other)
    with path.open("r+b") as file:
        mapped = mmap.mmap(file.fileno(), 0) if how == "mapped" else None
        if how != "open":
            file.close()
        small.do(f"rm -rf '{small.out}/logs'")
        assert links(small) == 3
        if mapped is not None:
            mapped[:1] = b"x"
            mapped.close()
        elif how == "open":
            file.write(b"written later")
    if how == "another name":
        other.write_text("written later")

    [result] = small.take_back()

    assert result.state is State.RESTORED, result.detail
    assert {each: fact.content for each, fact in small.facts().items()} == {
        each: fact.content for each, fact in before.items()
    }


@pytest.mark.parametrize("more", ["echo more >> logs/a", "chmod 600 logs/a", "./unknown"])
def test_a_call_that_does_more_than_removing_is_preserved_for_by_copies(small: Bench, more: str) -> None:
    before = small.facts()
    small.do(f"{more}; rm -rf '{small.out}/logs'")
    assert links(small) == 0
    results = small.take_back()
    assert all(result.back for result in results if result.entry.target), results
    assert small.facts() == before
