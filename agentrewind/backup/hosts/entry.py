"""The hook without a helper: answers one call by itself, then starts a helper for those that follow."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Sequence

from agentrewind.backup.hosts.client import socket_path
from agentrewind.backup.hosts.handling import answer, failed
from agentrewind.backup.hosts.host import Reply
from agentrewind.backup.hosts.request import Request
from agentrewind.backup.hosts.table import host_of
from agentrewind.clock import SystemClock

NO_HELPER = "AGENTREWIND_HOOK_HELPER"
"""Set to `0`, it keeps the hook from starting a helper."""


_LONGEST = 104
"""Bytes of a socket's path that every system takes."""


def main(words: Sequence[str] | None = None) -> None:
    """Answer what stands on standard input and end with the hook's exit code."""
    given = tuple(sys.argv[1:] if words is None else words)
    request = Request(
        words=given,
        directory=_directory(),
        environment=dict(os.environ),
        document=sys.stdin.buffer.read(),
    )
    reply = answer_in_time(request)
    sys.stdout.write(reply.stdout)
    sys.stderr.write(reply.stderr)
    sys.stdout.flush()
    sys.stderr.flush()
    if os.environ.get(NO_HELPER) != "0":
        start_helper()
    # a backup that is still under way must not hold the answer back
    os._exit(reply.code)


def answer_in_time(request: Request) -> Reply:
    """The answer, or that of a failure once the deadline has passed; the harness would let the call run."""
    found: list[Reply] = []
    worker = threading.Thread(target=lambda: found.append(answer(request, SystemClock())), daemon=True)
    worker.start()
    worker.join(request.deadline)
    if found:
        return found[0]
    reason = f"it took longer than {request.deadline:.0f} s"
    return failed(request, host_of(request.harness), reason)


def start_helper() -> None:
    """Start the helper in a session of its own, if there is a place for its socket and none listens there."""
    path = _prepared()
    if path is None:
        return
    subprocess.Popen(
        [sys.executable, "-I", "-m", "agentrewind.backup.hosts.helper", path],
        cwd="/",
        env={name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def _prepared() -> str | None:
    directory = f"{os.environ.get('XDG_RUNTIME_DIR') or '/tmp'}/agentrewind-{os.getuid()}"
    try:
        os.mkdir(directory, 0o700)  # noqa: PTH102 - the client that shares this has no pathlib
    except FileExistsError:
        pass
    except OSError:
        return None
    path = socket_path()
    return path if path is not None and len(os.fsencode(path)) < _LONGEST else None


def _directory() -> str:
    try:
        return os.getcwd()  # noqa: PTH109
    except FileNotFoundError:
        return "/"


if __name__ == "__main__":
    main()
