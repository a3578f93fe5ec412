"""What a person is told where a command of their own ends, is rejected, or cannot begin."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from agentrewind.durable import make_directory
from agentrewind.errors import StorageError
from tests.cli.desk import Desk


def _run(desk: Desk, code: str, *options: str) -> list[str]:
    desk.workspace.mkdir(exist_ok=True)
    return ["run", "--workspace", str(desk.workspace), *options, "--", sys.executable, "-c", code]


def test_the_check_judges_a_command_that_made_no_call(desk: Desk) -> None:
    done = desk.call(*_run(desk, "pass", "--check", "touch CHECKED; yes | head -c 4000; exit 1"))
    assert (done.returncode, (desk.workspace / "CHECKED").exists()) == (1, True)
    told = [line for line in done.stdout.splitlines() if line.startswith("rejected:")]
    assert len(told) == 1
    assert len(told[0]) < 700
    assert sum(line == "y" for line in done.stdout.splitlines()) == 0


def test_a_command_that_fails_is_told_with_its_last_words(desk: Desk) -> None:
    done = desk.call(*_run(desk, "import nosuch"))
    assert done.returncode == 1
    assert "No module named 'nosuch'" in done.stderr
    assert str(desk.only_run().directory / "agent.log") in done.stderr


def test_damage_that_only_the_agents_process_meets_ends_as_damage(desk: Desk) -> None:
    code = "import agentrewind; raise agentrewind.DamagedError('gone')"
    assert desk.call(*_run(desk, code)).returncode == 4


def test_a_command_that_is_no_program_leaves_no_run(desk: Desk) -> None:
    desk.workspace.mkdir()
    for program in ("no-such-program", "./no-such-program"):
        done = desk.call("run", "--workspace", str(desk.workspace), "--", program)
        assert (done.returncode, "resume" in done.stderr) == (2, False)
        assert program in done.stderr
        assert not (desk.home / "runs").exists()


def test_a_run_without_an_agent_names_both_ways(desk: Desk) -> None:
    desk.workspace.mkdir()
    done = desk.call("run", "--workspace", str(desk.workspace))
    assert (done.returncode, "-- COMMAND" in done.stderr) == (2, True)


def test_a_file_in_the_place_of_the_store_is_told_as_that(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    for path in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(StorageError, match="a file is in the way") as raised:
            make_directory(path)
        assert "resume" not in str(raised.value)


def test_names_of_files_are_written_out(rewound: Desk) -> None:
    done = rewound.call("blame", "last", "a\nb\x1b[31m")
    assert (done.returncode, "a\\nb\\x1b[31m" in done.stderr) == (2, True), done.stderr
