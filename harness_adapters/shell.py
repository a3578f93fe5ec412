"""A shell in the workspace: the tool of agents whose harness brings none, here or where the settings say."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Protocol

from agentrewind.adapters import Assignment, resolve
from agentrewind.errors import UsageError
from agentrewind.records import JsonObject

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


class Shell(Protocol):
    """Where an agent's commands run: on this machine, or in a sandbox that outlives each of them."""

    @property
    def directory(self) -> str:
        """The workspace as a command sees it."""
        ...

    def run(self, command: str, timeout: float | None) -> ShellResult:
        """Run a command, for so many seconds at most; None: for as long as it takes."""
        ...

    def close(self) -> None:
        """End the shell, and what it left running if it is its own."""
        ...


class LocalShell:
    """This machine's own; what a command leaves running lives on."""

    def __init__(self, workspace: Path) -> None:
        self._workspace = workspace

    @property
    def directory(self) -> str:
        return str(self._workspace)

    def run(self, command: str, timeout: float | None) -> ShellResult:
        """As `run_command`."""
        return run_command(command, directory=self._workspace, timeout=timeout)

    def close(self) -> None:
        """Nothing is kept."""


class OpenShell(Protocol):
    """What the setting `shell` names: makes the shell of one agent process."""

    def __call__(self, workspace: Path, settings: JsonObject, /) -> Shell: ...


@contextmanager
def open_shell(assignment: Assignment) -> Iterator[Shell]:
    """The shell that the setting `shell` describes, or this machine's, closed at the end.

    The setting is `{"use": "package.module:function", …}`; the function is an `OpenShell` and gets all of it.
    Raises UsageError where there is no such function.
    """
    settings = assignment.settings.get("shell")
    if settings is None:
        shell: Shell = LocalShell(assignment.workspace)
    else:
        shell = _resolved(settings)(assignment.workspace, settings if isinstance(settings, dict) else {})
    try:
        yield shell
    finally:
        shell.close()


def own_shell(assignment: Assignment) -> bool:
    """The settings name a shell, so the agent may touch the workspace by no other way."""
    return assignment.settings.get("shell") is not None


def _resolved(settings: object) -> OpenShell:
    path = settings.get("use") if isinstance(settings, dict) else settings
    try:
        found: OpenShell = resolve(str(path))  # type: ignore[assignment]
    except (ImportError, AttributeError, ValueError) as error:
        raise UsageError(f"the setting `shell` names {path!r}, which is not there: {error}") from error
    return found


def run_command(command: str, *, directory: Path, timeout: float | None = TIMEOUT_S) -> ShellResult:
    """Run a command and wait for its shell, not for what it left running in the background.

    A command that takes longer than `timeout` seconds (None: no limit) is killed with all of its process
    group. Very long output loses its middle, and says so. What cannot be started has exit code 126.
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
            return timed_out(_read(printed), timeout)
        except BaseException:
            _kill(process)
            raise
        return ShellResult(output=_read(printed), exit_code=code)


def timed_out(output: str, timeout: float | None) -> ShellResult:
    """The result of a command that was killed for its time."""
    late = f"\n[killed: it took longer than {timeout:g} seconds]" if timeout is not None else "\n[killed]"
    return ShellResult(output=output + late, exit_code=_TIMED_OUT)


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
    return shown(printed.read())


def shown(output: bytes) -> str:
    """What an agent reads of a command's output: bytes that are no UTF-8 escaped, the middle cut if long."""
    text = output.decode("utf-8", "backslashreplace")
    if len(text) <= _SHOWN:
        return text
    half = _SHOWN // 2
    return f"{text[:half]}\n[… {len(text) - 2 * half} characters left out …]\n{text[-half:]}"
