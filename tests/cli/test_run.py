"""`run`: what it reports, what it refuses, and that a run can always be gone on with."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.cli.desk import CHECK, HARNESS, PROGRAM, REWINDING, Desk


def test_the_report_of_a_run_with_a_rewind(told: Desk) -> None:
    run = told.only_run()
    report = json.loads(told.call("list", "--json").stdout)[0]
    assert report["run_id"] == run.run_id
    assert (report["state"], report["rewinds"], report["harness"]) == ("accepted", 1, HARNESS)
    assert told.files() == {"a.txt": b"one\n", "b.txt": b"two\n"}


def test_progress_goes_to_standard_output_line_by_line_without_a_terminal(desk: Desk) -> None:
    done = desk.call(*desk.run_arguments(*REWINDING), "--check", CHECK)
    assert done.returncode == 0, done.stderr
    text = done.stdout
    assert "\x1b" not in text
    for part in ("submission 1 rejected at both", "↶ rewind to rec_", "Keep a.txt.", "submission 2 accepted"):
        assert part in text
    assert text.index("rejected at both") < text.index("↶ rewind") < text.index("submission 2 accepted")
    assert f"agentrewind log {desk.only_run().run_id}" in text
    assert str(desk.only_run().directory) in text


def test_a_run_goes_on_when_nobody_reads_its_progress(desk: Desk) -> None:
    arguments = shlex.join([*PROGRAM, *desk.run_arguments(*REWINDING), "--check", CHECK])
    done = subprocess.run(
        ["bash", "-c", f"{arguments} | head -n 1"], env=desk.environment(), capture_output=True, check=False
    )
    assert b"Traceback" not in done.stderr
    assert desk.json("list")[0]["state"] == "accepted"


def test_a_run_goes_on_when_its_output_cannot_be_written(desk: Desk) -> None:
    arguments = shlex.join([*PROGRAM, *desk.run_arguments(["sh echo one > a.txt", "submit"])])
    done = subprocess.run(
        ["bash", "-c", f"{arguments} > /dev/full"], env=desk.environment(), capture_output=True, check=False
    )
    assert done.returncode == 1
    assert done.stderr == b"error: the output cannot be written: No space left on device\n"
    assert desk.json("list")[0]["state"] == "accepted"


@pytest.mark.parametrize("no_color", ["1", None])
def test_a_live_tree_shows_nothing_that_a_terminal_would_obey(desk: Desk, no_color: str | None) -> None:
    evil = "\x1b[2J\x1b]0;owned\x07\x1b[31;45m[bold]rot[/bold]\u202e\r\x9b1A"
    plan = [f"sh printf '%s' '{evil}' > '{evil}'", f"say {evil}"]
    command = shlex.join([*PROGRAM, *desk.run_arguments(plan)])
    done = subprocess.run(
        ["script", "-qec", f"stty cols 120 rows 40; {command}", "/dev/null"],
        env=desk.environment(TERM="xterm-256color", NO_COLOR=no_color),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 1, done.stdout
    assert "[bold]rot[/bold]" in done.stdout
    assert not set(done.stdout) & set("\x07\u202e\x9b")
    for sequence in ("\x1b[2J", "\x1b]", "\x1b[31;45m"):
        assert sequence not in done.stdout
    coloured = re.search(r"\x1b\[[0-9;]*3[0-7]m", done.stdout) is not None
    assert coloured is (no_color is None)


def test_a_rejected_run_ends_with_code_1(desk: Desk) -> None:
    report = desk.json(*desk.run_arguments(["submit"] * 6), "--check", "echo no; exit 1", code=1)
    assert (report["state"], report["accepted"], report["submissions"]) == ("rejected", False, 5)


def test_a_provider_that_fails_is_told_in_one_message_and_the_run_goes_on(desk: Desk) -> None:
    down = desk.base / "down"
    down.touch()
    plan = ["sh echo one > a.txt", f"fail {down}", "say done"]
    done = desk.call(*desk.run_arguments(plan))
    assert done.returncode == 1
    run_id = desk.only_run().run_id
    assert "the provider is down" in done.stderr
    assert f"agentrewind run --resume {run_id}" in done.stderr
    assert "Traceback" not in done.stderr + done.stdout
    down.unlink()
    before = desk.live_calls()
    report = desk.json("run", "--resume", "last", code=1)
    assert (report["run_id"], report["state"]) == (run_id, "stopped")
    assert desk.live_calls() == before + 1


def test_the_task_can_stand_in_a_file(desk: Desk) -> None:
    arguments = desk.run_arguments(["submit"])
    (desk.base / "task.json").write_text(arguments[-1])
    report = desk.json(*arguments[:-1], "@task.json")
    assert report["accepted"] is True


@pytest.mark.parametrize("missing", ["--harness", "--model", "--workspace", "--task"])
def test_what_is_missing_is_named(desk: Desk, missing: str) -> None:
    arguments = desk.run_arguments(["submit"])
    place = arguments.index(missing)
    done = desk.call(*arguments[:place], *arguments[place + 2 :])
    assert done.returncode == 2
    assert missing in done.stderr
    assert not desk.home.exists()


@pytest.mark.parametrize(
    ("workspace", "code", "says"),
    [
        ("nowhere", 2, "does not exist"),
        ("file", 2, "not a directory"),
        ("/", 5, "never taken as a workspace"),
        ("user", 5, "home directory"),
        (".", 5, "home directory"),
    ],
)
def test_workspaces_that_are_refused(desk: Desk, workspace: str, code: int, says: str) -> None:
    (desk.base / "file").touch()
    (desk.base / "user").mkdir()
    done = desk.call("run", "--harness", HARNESS, "--model", "m", "--workspace", workspace, "--task", "{}")
    assert done.returncode == code, done.stderr
    assert says in done.stderr
    assert "Traceback" not in done.stderr


def test_the_store_is_never_inside_the_workspace(desk: Desk) -> None:
    arguments = desk.run_arguments(["submit"])
    inside = desk.environment(AGENTREWIND_HOME=str(desk.workspace / "store"))
    done = desk.call(*arguments, environment=inside)
    assert done.returncode == 5
    assert "AGENTREWIND_HOME" in done.stderr
    assert list(desk.workspace.iterdir()) == []


@pytest.mark.parametrize("harness", ["no-such", "no.such.module:Adapter"])
def test_an_unknown_harness_names_the_known_ones(desk: Desk, harness: str) -> None:
    desk.workspace.mkdir()
    done = desk.call(
        "run", "--harness", harness, "--model", "m", "--workspace", str(desk.workspace), "--task", "x"
    )
    assert done.returncode == 2
    assert "mini-swe-agent" in done.stderr


def test_a_missing_task_file_is_named(desk: Desk) -> None:
    done = desk.call(*desk.run_arguments([])[:-1], "@nothing.txt")
    assert done.returncode == 2
    assert "nothing.txt" in done.stderr


def test_a_bad_pattern_is_named(desk: Desk) -> None:
    done = desk.call(*desk.run_arguments(["submit"]), "--exclude", "/")
    assert done.returncode == 2
    assert "'/'" in done.stderr


def test_resume_takes_no_setting_of_a_new_run(desk: Desk) -> None:
    done = desk.call("run", "--resume", "last", "--model", "other")
    assert done.returncode == 2
    assert "--model" in done.stderr


def test_a_finished_run_is_not_resumed(told: Desk) -> None:
    assert told.json("run", "--resume", "last", code=2)["error"]["type"] == "UsageError"


def test_patterns_and_switches_reach_the_run(desk: Desk) -> None:
    desk.json(
        *desk.run_arguments(["submit"]),
        *("--exclude", "*.secret", "--volatile", "out", "--max-rewinds", "3", "--memory-role", "user"),
        *("--ablate", "memory", "--ablate", "environment", "--config", "a=1", "--config", "b=2"),
    )
    header = desk.only_run().timeline().header
    policy = header.workspaces["ws0"].policy
    assert "*.secret" in str(policy["excluded"])
    assert "out" in str(policy["volatile"])
    assert header.options["max_rewinds"] == 3
    assert header.options["memory_role"] == "user"
    assert header.options["ablations"] == ["environment", "memory"]
    assert header.options["settings"] == {"config": ["a=1", "b=2"]}


def _start(desk: Desk, *arguments: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [*PROGRAM, *arguments],
        cwd=desk.base,
        env=desk.environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )


def _wait_for(path: Path) -> None:
    for _ in range(1000):
        if path.exists():
            return
        time.sleep(0.01)
    raise AssertionError(f"{path} never came")


def test_a_live_run_is_running_owns_its_workspace_and_is_stopped_by_ctrl_c(desk: Desk) -> None:
    plan = ["sh echo one > a.txt", "sh touch started; sleep 30", "say done"]
    child = _start(desk, *desk.run_arguments(plan), "--json")
    try:
        _wait_for(desk.workspace / "started")
        assert desk.json("list")[0]["state"] == "running"
        second = desk.call(*desk.run_arguments(["submit"]))
        assert second.returncode == 5
        assert "in use by" in second.stderr
        refused = desk.call("restore", "last", "rec_000001", "--in-place")
        assert refused.returncode == 5, refused.stderr
        os.killpg(child.pid, signal.SIGINT)  # as a terminal does it
        out, err = child.communicate(timeout=30)
    finally:
        child.kill()
    assert b"Traceback" not in err
    assert f"agentrewind run --resume {desk.only_run().run_id}".encode() in err
    assert child.returncode == 130
    report = json.loads(out)
    assert report["state"] == "stopped"
    assert desk.json("list")[0]["state"] == "stopped"
    assert desk.json("list")[0]["detail"] == report["detail"]
    assert desk.json("run", "--resume", "last", code=1)["state"] == "stopped"


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (["--", "python", "agent.py", "--json"], "--workspace"),
        (["--workspace", ".", "--harness", HARNESS, "--", "python", "agent.py"], "--harness"),
        (["--workspace", ".", "--model", "m", "--", "python", "agent.py"], "--model"),
        (["--workspace", ".", "--task", "t", "--", "python", "agent.py"], "--task"),
        (["--workspace", ".", "--config", "a=1", "--", "python", "agent.py"], "--config"),
        (["--resume", "last", "--", "python", "agent.py"], "COMMAND"),
    ],
)
def test_a_command_of_ones_own_says_what_it_needs(desk: Desk, given: list[str], says: str) -> None:
    done = desk.call("run", *given)
    assert done.returncode == 2
    assert says in done.stderr
    assert done.stdout == ""
