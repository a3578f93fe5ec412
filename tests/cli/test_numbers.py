"""Options that take a number, a size or an age."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import click
import pytest

from agentrewind.cli import agentrewind
from agentrewind.commands.gc import read_age, read_size
from agentrewind.commands.given_number import GivenNumber
from agentrewind.errors import UsageError
from runner.cli import runner
from tests.cli.test_paths import commands


def test_no_limit_is_infinite_or_no_number() -> None:
    taken = [
        (name, parameter)
        for name, command in (*commands(agentrewind, "agentrewind"), *commands(runner, "runner"))
        for parameter in command.params
        if isinstance(parameter.type, click.FloatRange | click.types.FloatParamType)
    ]
    assert len(taken) >= 4
    for name, parameter in taken:
        assert isinstance(parameter.type, GivenNumber), (name, parameter.name)
        for text in ("nan", "inf", "-inf", "1e999", "x", ""):
            with pytest.raises(click.BadParameter):
                parameter.type.convert(text, parameter, None)


@pytest.mark.parametrize("text", ["", "M", "-1M", "٣M", "1e9", "nan", "inf", "1 M 2", "0x10"])
def test_what_is_no_size_or_age_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="looks like"):
        read_size(text, option="--budget")
    with pytest.raises(UsageError, match="looks like"):
        read_age(text.replace("M", "d"))


@pytest.mark.parametrize("given", [("nosuch", "simulated:careless"), ("address-split", "simulated:nobody")])
def test_a_cell_of_what_does_not_exist_leaves_nothing(given: tuple[str, str], tmp_path: Path) -> None:
    program = Path(sys.executable).parent / "runner"
    task, model = given
    done = subprocess.run(
        [program, "run", task, "--model", model], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "called" in done.stderr
    assert list(tmp_path.iterdir()) == []
