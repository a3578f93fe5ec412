"""The commands of backups, as a person types them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.backup.bench import Bench


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    """A bench whose store is the home's, with one lost file and one call that nobody understands."""
    made = Bench(base=tmp_path / "bench", store_at=tmp_path / "home" / "backup")
    made.write("one.txt", "one\n")
    made.do("rm one.txt")
    made.do("./unknown", node="rec_000003")
    return made


def command(bench: Bench, *words: str) -> subprocess.CompletedProcess[str]:
    home = bench.store.directory.parent
    return subprocess.run(
        [sys.executable, "-m", "agentrewind.cli", "backup", *words],
        env={"PATH": os.environ["PATH"], "HOME": str(bench.base), "AGENTREWIND_HOME": str(home)},
        capture_output=True,
        text=True,
        check=False,
    )


def asked(bench: Bench, *words: str, code: int = 0) -> Any:
    done = command(bench, *words, "--json")
    assert done.returncode == code, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_a_file_is_listed_shown_restored_and_taken_away_again(bench: Bench) -> None:
    lost = bench.out / "one.txt"
    listed = asked(bench, "log")
    assert [(each["what"], each["state"], each["restorable"]) for each in listed] == [
        (str(lost), "preserved", True),
        ("./unknown", "not covered", False),
    ]
    entry = listed[0]["id"]
    assert any("write back" in line for line in asked(bench, "show", "last")["plan"])
    (planned,) = asked(bench, "restore", entry, "--dry-run")
    assert not lost.exists()
    assert planned["id"] == entry
    (result,) = asked(bench, "restore", entry)
    assert result["state"] == "restored"
    assert lost.read_text() == "one\n"
    assert any("remove" in line for line in asked(bench, "undo", "--dry-run")[0]["plan"])
    assert lost.exists()
    (undone,) = asked(bench, "undo")
    assert undone["state"] == "restored"
    assert not lost.exists()
    asked(bench, "undo")
    assert lost.exists()


def test_what_changed_since_stops_it_with_its_own_code(bench: Bench) -> None:
    lost = bench.out / "one.txt"
    lost.write_text("by a person\n")
    (result,) = asked(bench, "restore", "last", code=5)
    assert "changed after the call" in result["detail"][0]
    assert lost.read_text() == "by a person\n"
    asked(bench, "restore", "last", "--force")
    assert lost.read_text() == "one\n"
    asked(bench, "undo")
    assert lost.read_text() == "by a person\n"


def test_what_was_never_preserved_cannot_be_restored(bench: Bench) -> None:
    entry = asked(bench, "log")[1]["id"]
    (result,) = asked(bench, "restore", entry, code=1)
    assert result["state"] == "not restorable"


def test_usage_is_told(bench: Bench) -> None:
    done = command(bench, "restore", "nothing-like-it")
    assert done.returncode == 2
    assert "backup log" in done.stderr
    assert command(bench, "undo").returncode == 2


def test_verify_finds_what_is_damaged(bench: Bench) -> None:
    assert asked(bench, "verify")["problems"] == []
    payloads = sorted((bench.store.directory / "blobs").iterdir())
    payloads[0].write_bytes(b"altered")
    payloads[1].unlink()
    problems = asked(bench, "verify", code=4)["problems"]
    assert any("altered" in line for line in problems)
    assert any("missing" in line for line in problems)


def test_for_people(bench: Bench) -> None:
    assert "not covered" in command(bench, "log").stdout
    assert "rm one.txt" in command(bench, "show", "last").stdout
    assert "would write back" in command(bench, "restore", "last", "--dry-run").stdout
    assert "restored" in command(bench, "restore", "last").stdout


@pytest.mark.parametrize("one_more", [(), ("last",)], ids=["undo", "undo last"])
def test_last_means_all_of_the_last_call(bench: Bench, one_more: tuple[str, ...]) -> None:
    lost = [bench.write(name, name) for name in ("r1", "r2", "r3")]
    bench.do("rm r1 r2 r3", node="rec_000005")

    def there() -> list[bool]:
        return [path.exists() for path in lost]

    results = asked(bench, "restore", "last")
    assert sorted(each["what"] for each in results) == [str(path) for path in lost]
    assert {each["call"] for each in results} == {"rm r1 r2 r3"}
    assert there() == [True] * 3
    assert not (bench.out / "one.txt").exists()
    asked(bench, "undo", *one_more)
    assert there() == [False] * 3
    asked(bench, "undo", *one_more)
    assert there() == [True] * 3


def test_last_is_no_older_call_where_the_last_one_changed_nothing(bench: Bench) -> None:
    bench.write("stays", "x")
    bench.do("rm stays; printf x >stays; touch -d @1600000000.123456789 stays", node="rec_000005")
    before = bench.log.read().entries
    bench.do("chmod 644 stays", node="rec_000007")
    made = [each for each in bench.entries() if each.id not in before]
    assert [each.state.value for each in made] == ["unchanged"]
    told = command(bench, "restore", "last")
    assert (told.returncode, "chmod 644 stays changed nothing" in told.stdout) == (0, True)
    assert [each["state"] for each in asked(bench, "restore", "last")] == ["unchanged"]
    assert not (bench.out / "one.txt").exists()


def test_the_call_is_named(bench: Bench) -> None:
    for words in (("--dry-run",), ()):
        told = command(bench, "restore", "last", *words).stdout
        assert "of the call bash: rm one.txt" in told
        assert "nothing was preserved for the later call bash: ./unknown" in told


def test_only_what_moved_can_be_taken_back(bench: Bench) -> None:
    for payload in (bench.store.directory / "blobs").iterdir():
        payload.unlink()
    told = command(bench, "restore", "last")
    assert told.returncode == 1
    assert "takes it back" not in told.stdout


def test_no_credential_is_kept_or_shown(bench: Bench) -> None:
    for words in (
        "curl -u bob:s3cr3t",
        'curl -H "Authorization: Bearer s3cr3t"',
        "PGPASSWORD=s3cr3t psql",
        "mysql -ps3cr3t",
        "tool --password s3cr3t",
        "curl https://me:s3cr3t@host",
    ):
        bench.do(f"true {words}; rm nothing; ./unknown {words}; touch new", node="rec_000005")
    assert len(bench.entries()) > 12
    for given in (("log",), ("log", "--json"), ("show", "last"), ("restore", "last")):
        assert "s3cr3t" not in command(bench, *given).stdout
    assert b"s3cr3t" not in (bench.store.directory / "log.jsonl").read_bytes()
    assert asked(bench, "explain", "./unknown --password s3cr3t; ./unknown --password s3cr3t")["masked"] == 1


@pytest.mark.parametrize(
    ("sign", "shown"),
    [
        ("\x01", "\\x01"),
        ("\n", "\\n"),
        ("\t", "\\t"),
        ("\x1b[2K", "\\x1b[2K"),
        ("\u202e", "\\u202e"),
        ("\u200b", "\\u200b"),
    ],
)
def test_every_sign_of_a_name_is_seen(bench: Bench, sign: str, shown: str) -> None:
    bench.write(f"k{sign}k", "x")
    order = f"rm '../out/k{sign}k'"
    assert f"k{shown}k" in command(bench, "explain", order, "--cwd", str(bench.out)).stdout
    bench.do(order, node="rec_000005")
    for words in (
        ("log",),
        ("show", "last"),
        ("restore", "last", "--dry-run"),
        ("restore", "last"),
        ("undo",),
    ):
        told = command(bench, *words).stdout
        assert f"k{shown}k" in told, words
        assert f"k{sign}k" not in told, words
