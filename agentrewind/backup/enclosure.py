"""A shell for commands of a model's making: it sees the machine as it is, and can write one directory alone.

The network is open, since databases and services are reached by it. What a program does there cannot be
confined.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from dataclasses import dataclass
from pathlib import Path

from agentrewind.backup.kind import CaptureError
from agentrewind.backup.programs import environment
from agentrewind.backup.values import Context

SCRATCH = ".scratch"
"""Below the directory: for programs that need room; what lies there is no part of the backup."""

_SHOWN = 8_000


@dataclass(frozen=True, slots=True)
class Ran:
    """How a command ended, and what it wrote to stdout and stderr together."""

    code: int
    written: bytes

    @property
    def shown(self) -> str:
        """What it wrote, cut in the middle where it is long."""
        text = self.written.decode("utf-8", "replace")
        if len(text) <= _SHOWN:
            return text
        half = _SHOWN // 2
        return f"{text[:half]}\n[{len(text) - _SHOWN} characters left out]\n{text[-half:]}"


@dataclass(frozen=True, slots=True)
class Enclosure:
    """Runs commands with everything read-only but `directory`, which BACKUP_DIR names."""

    directory: Path
    context: Context

    def run(self, command: str, *, seconds: float, writable: bool = True) -> Ran:
        """One command. Raises CaptureError where there is no bubblewrap to confine it."""
        program = shutil.which("bwrap", path=self.context.env.get("PATH", os.defpath))
        if program is None:
            raise CaptureError(
                "commands of a backup subagent need bubblewrap, so that they write nowhere else"
            )
        cwd = self.context.cwd if self.context.cwd.is_dir() else Path("/")
        words = [
            program,
            "--die-with-parent", "--unshare-pid", "--new-session",
            "--ro-bind", "/", "/",
            "--dev", "/dev",
            "--proc", "/proc",
            "--bind" if writable else "--ro-bind", str(self.directory), str(self.directory),
            "--setenv", "BACKUP_DIR", str(self.directory),
            "--setenv", "TMPDIR", str(self.directory / SCRATCH),
            "--chdir", str(cwd),
            "bash", "-c", command,
        ]  # fmt: skip
        process = subprocess.Popen(
            words,
            env=environment(self.context),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            output, _ = process.communicate(timeout=max(1.0, seconds))
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            output, _ = process.communicate()
            return Ran(124, output + b"\n[ended: it took too long]")
        return Ran(process.returncode, output)
