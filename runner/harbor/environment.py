"""What the parts beside this one need of a Harbor environment: commands, and files to and fro."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Protocol

from agentrewind.errors import HarnessError

ROOT = "root"
PLACE = "/opt/agentrewind"
"""In the environment: our code, our scripts, the answers to submissions; not in the agent's power."""

_TAIL = 3000


class Ended(Protocol):
    """How a command ended."""

    @property
    def stdout(self) -> str | None: ...
    @property
    def stderr(self) -> str | None: ...
    @property
    def return_code(self) -> int: ...


class Environment(Protocol):
    """A running container, as Harbor's `BaseEnvironment` gives it. No user means the task's agent user."""

    async def exec(
        self,
        command: str,
        cwd: str | None = None,
        env: dict[str, str] | None = None,
        timeout_sec: int | None = None,
        user: str | int | None = None,
    ) -> Ended: ...
    async def upload_file(self, source_path: Path | str, target_path: str) -> None: ...
    async def upload_dir(self, source_dir: Path | str, target_dir: str) -> None: ...
    async def download_file(self, source_path: str, target_path: Path | str) -> None: ...


class EnvironmentFailedError(HarnessError):
    """The environment does not do what the agent needs of it; the message says what and how to help."""


async def must(
    environment: Environment, what: str, *command: str, user: str | None = None, seconds: int | None = None
) -> str:
    """What a command printed. Raises EnvironmentFailedError with its last words unless it ends with 0."""
    ended = await environment.exec(shlex.join(command), user=user, timeout_sec=seconds)
    if ended.return_code != 0:
        said = ((ended.stdout or "") + (ended.stderr or "")).strip()[-_TAIL:]
        raise EnvironmentFailedError(
            f"{what} failed in the environment (exit code {ended.return_code}): {said}"
        )
    return ended.stdout or ""
