"""Starts agent processes: each by itself, or as a fork of a warm parent that has imported the harness.

A warm parent saves the seconds that importing a harness takes, at every rewind. It has imported and done
nothing else; where that leaves it in a state from which forking is unsafe, it says so and is not used.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from typing import IO, Protocol

from agentrewind.errors import UsageError
from agentrewind.launch import Launch


class Start(StrEnum):
    """How attempts are started."""

    SPAWN = "spawn"
    WARM = "warm"


class Child(Protocol):
    """An agent process that was started."""

    def wait(self) -> int:
        """Its exit code once it has ended; the negative signal number where one ended it."""
        ...

    def send_signal(self, number: int, /) -> None:
        """Send it a signal; nothing happens if it has ended."""
        ...


class Starter(Protocol):
    """Starts one attempt after the other."""

    @property
    def own(self) -> frozenset[int]:
        """Processes of the starter's own, which are none of the agent's."""
        ...

    def start(self, launch: Launch, log: IO[bytes]) -> Child: ...

    def close(self) -> None: ...


class Spawning:
    """A new interpreter for every attempt; always works."""

    own: frozenset[int] = frozenset()

    def start(self, launch: Launch, log: IO[bytes]) -> Child:
        """Start it with its output in the log. Raises UsageError where the command is no program."""
        try:
            return subprocess.Popen(
                launch.command,
                env=launch.environment,
                cwd=launch.directory,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        except OSError as error:
            raise UsageError(f"{launch.command[0]} cannot be started: {error.strerror}") from error

    def close(self) -> None:
        """Nothing is kept."""


class Warm:
    """Forks of one parent; where it cannot be forked, new interpreters, which is told once.

    Args:
        modules: what the parent imports.
        tell: receives the reason why this is not offered.
    """

    def __init__(self, modules: tuple[str, ...], tell: Callable[[str], None]) -> None:
        self._modules = modules
        self._tell = tell
        self._parent: subprocess.Popen[str] | None = None
        self._spawning: Spawning | None = None

    @property
    def own(self) -> frozenset[int]:
        return frozenset() if self._parent is None else frozenset({self._parent.pid})

    def start(self, launch: Launch, log: IO[bytes]) -> Child:
        """Fork an attempt off the warm parent, which is started with the first."""
        if self._spawning is None and self._parent is None:
            self._warm_up(launch, log)
        if self._spawning is not None or self._parent is None:
            return (self._spawning or Spawning()).start(launch, log)
        answer = self._ask({"environment": launch.environment, "log": str(Path(log.name))})
        pid = answer.get("pid")
        if not isinstance(pid, int):
            self._give_up(str(answer.get("refused", "it died")))
            return Spawning().start(launch, log)
        return _Forked(self._parent, pid)

    def close(self) -> None:
        """End the parent."""
        if self._parent is None:
            return
        parent, self._parent = self._parent, None
        for stream in (parent.stdin, parent.stdout):
            if stream is not None:
                with suppress(OSError):
                    stream.close()
        parent.kill()
        parent.wait()

    def _warm_up(self, launch: Launch, log: IO[bytes]) -> None:
        self._parent = subprocess.Popen(
            [sys.executable, "-P", "-m", "agentrewind.warm", str(os.getpid()), *self._modules],
            env=launch.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            start_new_session=True,
        )
        answer = self._read()
        if not answer.get("ready"):
            self._give_up(str(answer.get("refused", "it died")))

    def _give_up(self, reason: str) -> None:
        self._tell(f"a warm start is not possible here ({reason}); every attempt gets a new interpreter")
        self._spawning = Spawning()
        self.close()

    def _ask(self, request: dict[str, object]) -> dict[str, object]:
        assert self._parent is not None
        assert self._parent.stdin is not None
        try:
            self._parent.stdin.write(json.dumps(request) + "\n")
            self._parent.stdin.flush()
        except OSError:
            return {}
        return self._read()

    def _read(self) -> dict[str, object]:
        assert self._parent is not None
        return _line(self._parent)


class _Forked:
    """A child of the warm parent, which tells when it has ended."""

    def __init__(self, parent: subprocess.Popen[str], pid: int) -> None:
        self._parent = parent
        self._pid = pid
        self._ended = False

    def wait(self) -> int:
        answer = _line(self._parent)
        self._ended = True
        code = answer.get("code")
        # the parent is gone: its children were killed with it
        return code if isinstance(code, int) else -signal.SIGKILL

    def send_signal(self, number: int, /) -> None:
        if not self._ended:
            with suppress(ProcessLookupError):
                os.kill(self._pid, number)


def _line(parent: subprocess.Popen[str]) -> dict[str, object]:
    assert parent.stdout is not None
    try:
        found = json.loads(parent.stdout.readline() or "{}")
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
