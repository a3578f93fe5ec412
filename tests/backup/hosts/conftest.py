from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import orjson
import pytest

from agentrewind.backup.hosts import client
from agentrewind.backup.hosts.host import Reply
from agentrewind.backup.log import BackupLog
from agentrewind.clock import SystemClock

CLIENT = [sys.executable, "-I", "-S", str(Path(client.__file__))]
ENTRY = [sys.executable, "-I", "-m", "agentrewind.backup.hosts.entry"]


@dataclass
class Place:
    """A user's home with a file in it, a store, and a directory for the helper's socket."""

    base: Path
    helper: bool = False
    run: Path = field(init=False)
    more: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("home", "store"):
            (self.base / name).mkdir()
        # a socket's path has to be short
        self.run = Path(tempfile.mkdtemp(prefix="ar-", dir="/tmp"))
        self.file.write_text("keep me\n", encoding="utf-8")

    @property
    def file(self) -> Path:
        return self.base / "home" / "notes.txt"

    @property
    def environment(self) -> dict[str, str]:
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.base / "home"),
            "XDG_RUNTIME_DIR": str(self.run),
            "AGENTREWIND_HOME": str(self.base / "store"),
            "AGENTREWIND_HOOK_HELPER": "1" if self.helper else "0",
            **self.more,
        }

    def ask(self, harness: str, document: object, *options: str, program: list[str] | None = None) -> Reply:
        """What the hook's process says to a document, or to raw text."""
        text = document if isinstance(document, str) else orjson.dumps(document).decode()
        done = subprocess.run(
            [*(program or CLIENT), harness, *options],
            input=text.replace("@HOME", str(self.base / "home")).encode(),
            env=self.environment,
            cwd=self.base / "home",
            capture_output=True,
            timeout=60,
            check=False,
        )
        return Reply(
            stdout=self._plain(done.stdout.decode()),
            stderr=self._plain(done.stderr.decode()),
            code=done.returncode,
        )

    def _plain(self, text: str) -> str:
        return text.replace(str(self.base / "home"), "@HOME").replace(str(self.base), "@BASE")

    @property
    def sockets(self) -> list[Path]:
        return [each for each in self.run.glob("*/*") if each.is_socket()]

    def wait_for_helper(self) -> Path:
        for _ in range(200):
            if self.sockets:
                return self.sockets[0]
            time.sleep(0.05)
        raise AssertionError("no helper came up")

    @property
    def log(self) -> BackupLog:
        return BackupLog(self.base / "store" / "backup", SystemClock())

    def states(self) -> list[tuple[str, str]]:
        return [
            (each.name.replace(str(self.base / "home"), "@HOME"), each.state)
            for each in self.log.read().entries.values()
        ]


def claude(
    command: str, *, event: str = "PreToolUse", call: str = "toolu_1", **more: object
) -> Mapping[str, object]:
    return {
        "session_id": "s1",
        "transcript_path": "/x",
        "cwd": "@HOME",
        "permission_mode": "default",
        "hook_event_name": event,
        "tool_name": "Bash",
        "tool_input": {"command": command, "description": "does it"},
        "tool_use_id": call,
        **more,
    }


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    """Without a helper."""
    place = Place(tmp_path)
    yield place
    shutil.rmtree(place.run)


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Place]:
    """With a helper that listens."""
    place = Place(tmp_path, helper=True)
    place.ask("claude-code", claude("ls"))
    socket = place.wait_for_helper()
    yield place
    socket.unlink(missing_ok=True)  # it ends when its socket is taken away
    shutil.rmtree(place.run)
