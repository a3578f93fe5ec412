"""Hard commands, one a line, and what of each does not only read."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.backup.understanding.reading import verdict

LINES = Path(__file__).with_name("hard_commands.txt").read_text(encoding="utf-8").splitlines()
CASES = [line.split("  =>  ") for line in LINES if "  =>  " in line]


def test_there_are_many() -> None:
    assert len(CASES) >= 400
    assert len({command for command, _ in CASES}) == len(CASES)


@pytest.mark.parametrize(("command", "expected"), CASES, ids=range(len(CASES)))
def test_a_hard_command_is_judged_by_its_parts(command: str, expected: str) -> None:
    text = command.replace("\\\\", "\0").replace("\\n", "\n").replace("\0", "\\")
    assert verdict(text) == expected
