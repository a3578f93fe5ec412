"""`bisect`: the first node after which a check fails, found in copies, and the workspace left alone."""

from __future__ import annotations

import subprocess
import tempfile
import time
from pathlib import Path

import pytest

from tests.cli.desk import PROGRAM, Desk, tree

PLAN = [
    "sh echo 1 > good; echo > one",
    "sh echo 2 > two",
    "sh true",
    "sh rm good",
    "sh echo 4 > four",
    "sh touch good",
    "sh rm good; mkdir closed; touch closed/in; chmod 500 closed",
    "say done",
]


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> Desk:
    """A run in which `good` comes with rec_000002 and goes with rec_000008, to come and go once more."""
    desk = Desk(base=tmp_path_factory.mktemp("broken"))
    desk.workspace.mkdir()
    (desk.workspace / "good").touch()
    desk.json(*desk.run_arguments(PLAN), code=1)
    return desk


def _scratch() -> set[str]:
    return {path.name for path in Path(tempfile.gettempdir()).glob("agentrewind-check-*")}


def test_the_first_failing_node_is_found_and_named(broken: Desk) -> None:
    before, scratch = (tree(broken.workspace), tree(broken.home)), _scratch()
    found = broken.json("bisect", "last", "--check", "test -e good")
    assert (found["outcome"], found["first"], found["parent"]) == ("found", "rec_000008", "rec_000007")
    assert (found["states"], found["complete"], found["turns"], found["skipped"]) == (7, False, 0, [])
    judged = {each["after"]: each["passed"] for each in found["judged"]}
    assert judged[None] is True
    assert judged["rec_000008"] is False
    text = broken.call("bisect", "last", "--check", "test -e good").stdout
    assert "the check fails first after rec_000008" in text
    assert "$ rm good" in text
    assert (tree(broken.workspace), tree(broken.home)) == before
    assert _scratch() == scratch


def test_all_shows_that_a_check_is_not_monotone(broken: Desk) -> None:
    found = broken.json("bisect", "last", "--all", "--check", "test -e good")
    assert [each["passed"] for each in found["judged"]] == [True, True, True, False, False, True, False]
    assert (found["first"], found["turns"], found["complete"]) == ("rec_000008", 1, True)
    done = broken.call("bisect", "last", "--all", "--check", "test -e good")
    assert "not monotone: it passes again 1 time" in done.stdout
    assert done.returncode == 0


@pytest.mark.parametrize(
    ("check", "outcome", "words"),
    [
        ("false", "fails_at_start", "in the first state already"),
        ("test ! -e four", "found", "first after rec_000010"),
        ("true", "never_fails", "neither in the first state nor in the last one"),
        ("test -e missing/command && missing-command", "fails_at_start", "exit 1"),
    ],
)
def test_every_outcome_has_its_words(broken: Desk, check: str, outcome: str, words: str) -> None:
    found = broken.json("bisect", "last", "--check", check, code=0 if outcome == "found" else 1)
    assert found["outcome"] == outcome
    assert (found["first"] is not None) is (outcome == "found")
    done = broken.call("bisect", "last", "--check", check)
    assert words in done.stdout
    assert done.returncode == (0 if outcome == "found" else 1)


def test_never_is_said_of_every_state_only_with_all(broken: Desk) -> None:
    done = broken.call("bisect", "last", "--all", "--check", "echo said; true")
    assert "the check fails in no state" in done.stdout


def test_another_path_is_judged_up_to_its_node(told: Desk) -> None:
    """The abandoned branch deleted a file; the current path never did."""
    check = "test ! -e b.txt || test -e a.txt"
    assert told.json("bisect", "last", "--check", check, code=1)["outcome"] == "never_fails"
    found = told.json("bisect", "last", "--until", "rec_000006", "--check", check)
    assert (found["outcome"], found["first"]) == ("found", "rec_000004")
    assert told.call("bisect", "last", "--until", "rec_9", "--check", "true").returncode == 2


def test_a_check_that_takes_too_long_is_ended_and_fails(broken: Desk) -> None:
    mark = f"sleep 6{time.monotonic_ns() % 10**9}"
    began = time.monotonic()
    found = broken.json("bisect", "last", "--timeout", "1", "--check", f"{mark} & {mark}", code=1)
    assert time.monotonic() - began < 60
    assert [(each["exit_code"], each["passed"]) for each in found["judged"]] == [(None, False)]
    assert "out of time" in broken.call("bisect", "last", "--timeout", "0.5", "--check", mark).stdout
    left = subprocess.run(["pgrep", "-f", mark], capture_output=True, text=True, check=False).stdout.split()
    assert left == []
    assert broken.call("bisect", "last", "--timeout", "0", "--check", "true").returncode == 2


def test_what_a_check_leaves_running_is_ended_and_what_it_writes_is_not_seen_again(broken: Desk) -> None:
    mark = f"sleep 7{time.monotonic_ns() % 10**9}"
    check = f"test ! -e seen && touch seen && (nohup {mark} >/dev/null 2>&1 &)"
    assert broken.json("bisect", "last", "--all", "--check", check, code=1)["outcome"] == "never_fails"
    assert subprocess.run(["pgrep", "-f", mark], capture_output=True, check=False).stdout == b""
    assert not (broken.workspace / "seen").exists()


def test_the_check_sees_the_copy_at_the_recorded_path(broken: Desk) -> None:
    check = f"test -e {broken.workspace}/good"
    found = broken.json("bisect", "last", "--check", check)
    if found["at_recorded_path"]:
        assert found["first"] == "rec_000008"


def _where_no_mounts_are_allowed(desk: Desk, *arguments: str) -> subprocess.CompletedProcess[str]:
    script = 'echo 0 > /proc/sys/user/max_mnt_namespaces; exec "$@"'
    return subprocess.run(
        ["unshare", "-U", "-r", "sh", "-c", script, "sh", *PROGRAM, *arguments],
        env=desk.environment(),
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.skipif(
    subprocess.run(["unshare", "-U", "-r", "true"], capture_output=True, check=False).returncode != 0,
    reason="user namespaces are not allowed here",
)
def test_without_mounts_the_check_runs_elsewhere_and_that_is_said(broken: Desk) -> None:
    done = _where_no_mounts_are_allowed(broken, "bisect", "last", "--check", "test -e good")
    assert done.returncode == 0, done.stderr
    assert "first after rec_000008" in done.stdout
    assert "cannot be laid over the recorded path" in done.stdout
    refused = _where_no_mounts_are_allowed(
        broken, "bisect", "last", "--check", f"test -e {broken.workspace}/good"
    )
    assert refused.returncode == 2
    assert "relative to the workspace" in refused.stderr


def test_a_workspace_that_is_gone_needs_no_folder_at_its_place(rewound: Desk) -> None:
    rewound.workspace.rename(rewound.base / "moved")
    assert rewound.json("bisect", "last", "--check", "test ! -e b.txt")["first"] == "rec_000012"
    assert not rewound.workspace.exists()


def test_a_change_from_outside_is_nobodys(desk: Desk) -> None:
    """The provider writes to the workspace while it thinks: after a snapshot, before the next call."""
    touch = f"touch {desk.workspace}/outside {desk.home}/runs"
    desk.json(*desk.run_arguments(["sh true", touch, "sh echo 1 > inside", "say done"]), code=1)
    found = desk.json("bisect", "last", "--check", "test ! -e outside")
    assert (found["outcome"], found["outside"], found["first"]) == ("found", True, "rec_000003")
    text = desk.call("bisect", "last", "--check", "test ! -e outside").stdout
    assert "first at rec_000003, changed from outside" in text
    assert "while no tool call ran" in text
    lines = desk.json("blame", "last", "outside")["lines"]
    assert lines == [{"text": "from outside", "record_uid": "rec_000003", "outside": True}]
    assert desk.json("bisect", "last", "--check", "test ! -e inside")["first"] == "rec_000006"


def test_a_state_that_is_not_known_is_left_out_and_named(rewound: Desk) -> None:
    path = rewound.only_run().segment_path(1)
    lines = path.read_bytes().splitlines(keepends=True)
    place = next(n for n, line in enumerate(lines) if line.startswith(b'{"record_uid":"rec_000012"'))
    path.write_bytes(b"".join(lines[: place + 1]))
    found = rewound.json("bisect", "last", "--check", "test ! -e b.txt", code=1)
    assert found["skipped"] == ["after rec_000012: there is no snapshot"]
    assert "left out: after rec_000012" in rewound.call("bisect", "last", "--check", "true").stdout
