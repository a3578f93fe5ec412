"""The process inside a session's sandbox: runs one shell command after another and answers in JSON lines.

A request is `{"command", "seconds", "limit"}`; `{"stop": true}` ends the command that runs.
Needs nothing but the standard library, and stands alone.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from typing import IO, Any

PR_SET_DUMPABLE = 4


def main() -> None:
    """Serve until the other side closes."""
    # nobody in here may reach into this process and answer in its place
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    requests = os.fdopen(os.dup(0), "rb")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    running: list[subprocess.Popen[bytes]] = []
    for line in requests:
        request = json.loads(line)
        if request.get("stop"):
            for process in running:
                _kill(process)
            continue
        threading.Thread(target=_serve, args=(request, answers, running), daemon=True).start()


def _serve(request: dict[str, Any], answers: IO[bytes], running: list[subprocess.Popen[bytes]]) -> None:
    with tempfile.TemporaryFile() as output:
        # a file, not a pipe: what a command leaves in the background does not hold up its end
        process = subprocess.Popen(
            ["bash", "-c", request["command"]],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        running[:] = [process]
        late = False
        try:
            process.wait(request["seconds"])
        except subprocess.TimeoutExpired:
            late = True
            _kill(process)
            process.wait()
        running.clear()
        limit = request["limit"]
        size = output.seek(0, os.SEEK_END)
        output.seek(0)
        data = output.read(limit)
    answer = {"code": process.returncode, "late": late, "output": data.decode("latin-1"), "size": size}
    answers.write(json.dumps(answer).encode() + b"\n")
    answers.flush()


def _kill(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


if __name__ == "__main__":
    main()
    sys.exit(0)
