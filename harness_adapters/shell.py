"""A shell in the workspace: the tool of agents whose harness brings none."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

NAME = "bash"
DESCRIPTION = (
    "Run a command with bash in the workspace. Answers with JSON: `exit_code`, and `output` with what it "
    "printed (standard output and standard error together). Every command has a shell of its own."
)
COMMAND_DESCRIPTION = "The command, as one would type it."
TIMEOUT_S = 600.0

_SHOWN = 30_000
_TIMED_OUT = 124
_NOT_STARTED = 126


@dataclass(frozen=True, slots=True, kw_only=True)
class ShellResult:
    """What a command gave. Bytes that are no UTF-8 stand in `output` as escapes."""

    output: str
    exit_code: int

    def text(self) -> str:
        """As the agent reads it."""
        return json.dumps({"exit_code": self.exit_code, "output": self.output}, ensure_ascii=False)


def run_command(command: str, *, directory: Path, timeout: float = TIMEOUT_S) -> ShellResult:
    """Run a command and wait for its shell, not for what it left running in the background.

    A command that takes longer than `timeout` seconds is killed with all of its process group. Very long
    output loses its middle, and says so. What cannot be started has exit code 126.
    """
    # a file and no pipe: a background job would keep a pipe open
    with tempfile.TemporaryFile() as printed:
        try:
            process = subprocess.Popen(
                ["bash", "-c", command],
                cwd=directory,
                stdin=subprocess.DEVNULL,
                stdout=printed,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            return ShellResult(output=f"the command cannot be started: {error}", exit_code=_NOT_STARTED)
        try:
            code = process.wait(timeout)
        except subprocess.TimeoutExpired:
            _kill(process)
            late = f"\n[killed: it took longer than {timeout:g} seconds]"
            return ShellResult(output=_read(printed) + late, exit_code=_TIMED_OUT)
        except BaseException:
            _kill(process)
            raise
        return ShellResult(output=_read(printed), exit_code=code)


def exit_code_in(text: str) -> int | None:
    """The exit code in a tool's answer that is a JSON object and holds one under its usual names."""
    if not text.startswith("{"):
        return None
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    for name in ("exit_code", "returncode"):
        code = found.get(name)
        if type(code) is int:
            return code
    return None


def _kill(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _read(printed: BinaryIO) -> str:
    printed.seek(0)
    text = printed.read().decode("utf-8", "backslashreplace")
    if len(text) <= _SHOWN:
        return text
    half = _SHOWN // 2
    return f"{text[:half]}\n[… {len(text) - 2 * half} characters left out …]\n{text[-half:]}"
