"""One sandbox for a whole attempt: an agent's commands run in it one after another.

What a command starts in the background lives on until the session is closed, and no longer. Each command is a
shell of its own, with no standard input.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from mettlebench.errors import MettleBenchError
from mettlebench.sandbox import Sandbox, end, require_sandbox, start

OUTPUT_LIMIT = 16 << 20
SERVER = "/run/session.py"

_SERVER = Path(__file__).parent / "session_inside.py"


class SessionEndedError(MettleBenchError):
    """The sandbox of a session is gone: it was closed, or something in it brought it down."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How a command ended. `stopped`: by `interrupt` or after its time; `size`: bytes before any cut."""

    code: int
    output: bytes
    size: int
    stopped: bool


class Session:
    """A running sandbox; close it, or use it as a context manager."""

    def __init__(self, sandbox: Sandbox) -> None:
        """Start the sandbox; raises SandboxUnavailableError where there can be none."""
        require_sandbox(sandbox.mode)
        self._home = tempfile.TemporaryDirectory(prefix="mettle-home-")
        inner = Sandbox(
            workspace=sandbox.workspace,
            mode=sandbox.mode,
            inside=sandbox.inside,
            network=sandbox.network,
            read_only={**sandbox.read_only, _SERVER: SERVER},
            writable=sandbox.writable,
            environment=sandbox.environment,
        )
        # the sandbox dies with the thread that starts it, and the caller's may be a short-lived one
        self._keeper = ThreadPoolExecutor(1, thread_name_prefix="session-keeper")
        self._process = self._keeper.submit(
            start,
            inner,
            ["python3", "-I", inner.seen(SERVER, _SERVER)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            home=Path(self._home.name),
        ).result()
        self._one_at_a_time = threading.Lock()
        self._interrupted = False

    @property
    def pid(self) -> int:
        """The process below which everything in the sandbox runs, as this machine numbers it."""
        return self._process.pid

    def run(self, command: str, *, seconds: float | None = None, limit: int = OUTPUT_LIMIT) -> Ended:
        """Run one command with bash, to its end or for so many seconds.

        Raises SessionEndedError where the sandbox went away meanwhile.
        """
        with self._one_at_a_time:
            self._interrupted = False
            self._send({"command": command, "seconds": seconds, "limit": limit})
            assert self._process.stdout is not None
            line = self._process.stdout.readline()
        if not line:
            raise SessionEndedError("the sandbox went away while a command was running in it")
        answer = json.loads(line)
        return Ended(
            code=answer["code"],
            output=answer["output"].encode("latin-1"),
            size=answer["size"],
            stopped=answer["late"] or self._interrupted,
        )

    def interrupt(self) -> None:
        """End the command that runs now, from another thread; `run` then returns."""
        self._interrupted = True
        self._send({"stop": True})

    def close(self) -> None:
        """End the sandbox and everything that was started in it."""
        end(self._process)
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with contextlib.suppress(BrokenPipeError):
                    pipe.close()
        self._keeper.shutdown()
        self._home.cleanup()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _send(self, request: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            self._process.stdin.flush()
        except (BrokenPipeError, ValueError):
            raise SessionEndedError("the sandbox is gone; a new session is needed") from None
