"""The warm parent: imports a harness, does nothing else, and forks an agent process when it is asked to.

Started as `python -P -m agentrewind.warm SUPERVISOR MODULE…`; one line of JSON each way on standard input and
output. Clients, event loops and threads are made after the fork, in the child.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn, TextIO

from agentrewind import attempt
from agentrewind.capture.install import install_all
from agentrewind.current import current_gate
from agentrewind.handover import put
from agentrewind.processes import die_with_parent


def main(arguments: Sequence[str]) -> int:
    """Serve until standard input ends. A child never returns: it is the attempt."""
    supervisor, *modules = arguments
    die_with_parent(int(supervisor))
    # whatever a harness prints at its import must not be taken for an answer
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    try:
        install_all(current_gate)
        for module in modules:
            importlib.import_module(module)
    except Exception as error:  # noqa: BLE001 - a harness that cannot be imported is told as any other reason
        _say(answers, {"refused": f"{type(error).__name__}: {error}"})
        return 1
    reason = unsafe_to_fork()
    _say(answers, {"refused": reason} if reason else {"ready": True})
    if reason:
        return 1
    for line in sys.stdin:
        request = json.loads(line)
        child = os.fork()
        if child == 0:
            answers.close()
            _become(request, os.getppid())
        _say(answers, {"pid": child})
        _, status = os.waitpid(child, 0)
        _say(answers, {"code": os.waitstatus_to_exitcode(status)})
    return 0


def unsafe_to_fork() -> str | None:
    """Why a fork of this process could misbehave, or None: threads and sockets do not survive one."""
    tasks = list(Path("/proc/self/task").iterdir())
    if threading.active_count() > 1 or len(tasks) > 1:
        return f"importing the harness left {len(tasks)} threads"
    for entry in Path("/proc/self/fd").iterdir():
        try:
            target = str(entry.readlink())
        except OSError:
            continue
        if target.startswith("socket:"):
            return "importing the harness left an open socket"
    return None


def _become(request: dict[str, object], parent: int) -> NoReturn:
    """In the child: take the attempt's place in the world, and be it."""
    os.setsid()
    environment = request["environment"]
    assert isinstance(environment, dict)
    put(environment)
    log = os.open(str(request["log"]), os.O_WRONLY | os.O_APPEND)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for source, target in ((nothing, 0), (log, 1), (log, 2)):
        os.dup2(source, target)
    attempt.leave(attempt.main(parent=parent))


def _say(answers: TextIO, answer: dict[str, object]) -> None:
    answers.write(json.dumps(answer) + "\n")
    answers.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
