"""The shell that the settings name takes the place of this machine's, and is closed in the end."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentrewind.adapters import Assignment
from agentrewind.errors import UsageError
from agentrewind.records import JsonObject
from harness_adapters.shell import LocalShell, ShellResult, open_shell, own_shell


class Echo:
    closed = False
    directory = "/elsewhere"

    def __init__(self, workspace: Path, settings: JsonObject) -> None:
        self.settings = settings

    def run(self, command: str, timeout: float | None) -> ShellResult:
        return ShellResult(output=f"{command} within {timeout}", exit_code=0)

    def close(self) -> None:
        self.closed = True


def assigned(workspace: Path, settings: JsonObject) -> Assignment:
    return Assignment(task="mend", model="m", workspace=workspace, settings=settings)


def test_without_a_setting_commands_run_here(tmp_path: Path) -> None:
    with open_shell(assigned(tmp_path, {})) as shell:
        assert isinstance(shell, LocalShell)
        assert shell.directory == str(tmp_path)
        assert shell.run("pwd; exit 3", None) == ShellResult(output=f"{tmp_path}\n", exit_code=3)
        assert shell.run("sleep 9", 0.1).exit_code == 124


def test_the_setting_names_another_shell_which_gets_the_rest_of_it(tmp_path: Path) -> None:
    named: JsonObject = {"use": f"{__name__}:Echo", "network": False}
    assignment = assigned(tmp_path, {"shell": named})
    assert own_shell(assignment)
    with open_shell(assignment) as shell:
        assert isinstance(shell, Echo)
        assert shell.settings == named
        assert shell.run("pwd", 2.0).output == "pwd within 2.0"
    assert shell.closed


@pytest.mark.parametrize("named", [{"use": "tests.nowhere:shell"}, {"use": "os:nothing"}, {}, "os"])
def test_a_shell_that_is_not_there_is_a_wrong_setting(tmp_path: Path, named: JsonObject) -> None:
    with pytest.raises(UsageError, match="shell"), open_shell(assigned(tmp_path, {"shell": named})):
        pass
