"""Starts the programs that capture and restore state: no shell, closed stdin, C locale, a deadline."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from agentrewind.backup.kind import CaptureError
from agentrewind.backup.values import Context

DEADLINE = 600.0
"""Seconds that one program may take."""

_SAID = 600


def run(
    argv: Sequence[str],
    context: Context,
    *,
    env: Mapping[str, str] | None = None,
    stdin: bytes | Path | None = None,
    stdout: Path | None = None,
    user: str | None = None,
    cwd: Path | None = None,
    codes: Collection[int] = (0,),
) -> bytes:
    """Run a program and return what it wrote to stdout.

    Args:
        argv: program and arguments; never shown with what `env` holds.
        context: whose environment and directory it gets.
        env: variables on top of the context's.
        stdin: bytes or a file for its standard input, which is closed otherwise.
        stdout: file that takes its output, made for the owner only; nothing is returned then.
        user: run it as this user of the system, None for ourselves.
        codes: exit codes that are no failure.
        cwd: directory in place of the context's.

    Raises:
        CaptureError: it is not there, failed, or passed its deadline; the text says which and how.
    """
    words = words_for(argv, user, env or {})
    if shutil.which(words[0], path=context.env.get("PATH", os.defpath)) is None:
        raise CaptureError(f"{words[0]} is not installed, and is needed to preserve or restore this state")
    with ExitStack() as files:
        given = files.enter_context(stdin.open("rb")) if isinstance(stdin, Path) else None
        taken = files.enter_context(os.fdopen(_private(stdout), "wb")) if stdout else None
        try:
            process = files.enter_context(
                subprocess.Popen(
                    words,
                    cwd=cwd or context.cwd,
                    env=environment(context, env),
                    stdin=given or (subprocess.PIPE if isinstance(stdin, bytes) else subprocess.DEVNULL),
                    stdout=taken or subprocess.PIPE,
                    stderr=subprocess.PIPE,
                )
            )
        except OSError as error:
            raise CaptureError(f"{argv[0]} cannot be started: {error.strerror or error}") from error
        try:
            output, complaint = process.communicate(
                stdin if isinstance(stdin, bytes) else None, timeout=DEADLINE
            )
        except subprocess.TimeoutExpired as error:
            process.kill()
            raise CaptureError(f"{argv[0]} took longer than {DEADLINE:.0f} s and was ended") from error
    if process.returncode != 0:
        raise CaptureError(f"{argv[0]} ended with {process.returncode}: {said(complaint)}")
    return output or b""


def environment(context: Context, more: Mapping[str, str] | None = None) -> dict[str, str]:
    """The context's environment in the C locale, with `more` on top."""
    return {**context.env, "LC_ALL": "C.UTF-8", **(more or {})}


def said(stderr: bytes) -> str:
    """The end of what a program complained of, on one line."""
    text = " ".join(stderr.decode("utf-8", "replace").split())
    return text[-_SAID:] or "no message"


def words_for(argv: Sequence[str], user: str | None, env: Mapping[str, str]) -> list[str]:
    """The command line that runs `argv` as this user, with these variables kept."""
    if user is None:
        return list(argv)
    if os.geteuid() == 0:
        return ["runuser", "-u", user, "--", *argv]
    kept = f"--preserve-env={','.join(env)}" if env else "--preserve-env=LC_ALL"
    return ["sudo", "-n", kept, "-u", user, "--", *argv]


def _private(path: Path) -> int:
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
