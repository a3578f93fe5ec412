"""The processes that an agent started: listed, stopped, ended.

Linux only: they are found through `/proc`. The supervisor adopts orphans (child subreaper), so whatever an
agent starts stays its descendant, daemons included; after the supervisor itself was killed, the run's id in
a process's environment tells. Children of other services (tmux, docker, cron) are not found.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import time
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

RUN_VARIABLE = "AGENTREWIND_RUN_ID"
"""Environment variable that marks every process of a run."""

Identity: TypeAlias = tuple[int, int]
"""A process for good: its pid and its start tick (clock ticks since boot)."""

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_GRACE_S = 1.0
_DEADLINE_S = 10.0
_POLL_S = 0.01


@dataclass(frozen=True, slots=True)
class Process:
    """A live process: who it is, and its command line for people."""

    pid: int
    start: int
    command: str

    @property
    def identity(self) -> Identity:
        """What tells it from a later process with the same pid."""
        return self.pid, self.start

    def __str__(self) -> str:
        return f"{self.pid} ({self.command})"


def adopt_orphans() -> None:
    """Become the parent of every descendant whose own parent dies. Does nothing where Linux is not."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def die_with_parent(parent: int) -> None:
    """Have this process killed when its parent is; exits at once if `parent` is gone already."""
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def _prctl(option: int, value: int) -> None:
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


def identity_of(pid: int) -> Identity | None:
    """The identity of a live process, or None; a zombie counts as gone."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return None
    fields = stat[stat.rindex(b")") + 2 :].split()
    return None if fields[0] in (b"Z", b"X") else (pid, int(fields[19]))


def ancestors(pid: int) -> list[int]:
    """The parent of `pid`, its parent, and so on."""
    found: list[int] = []
    while pid > 1:
        try:
            stat = Path(f"/proc/{pid}/stat").read_bytes()
        except OSError:
            break
        pid = int(stat[stat.rindex(b")") + 2 :].split()[1])
        found.append(pid)
    return found


def descendants(pid: int) -> list[Process]:
    """Every live process below `pid`, parents first."""
    found: list[Process] = []
    waiting = [pid]
    while waiting:
        for child in _children(waiting.pop(0)):
            waiting.append(child)
            identity = identity_of(child)
            if identity is not None:
                found.append(Process(child, identity[1], _command(child)))
    return found


def descendant_identities(pid: int, *, without: Collection[int] = ()) -> tuple[Identity, ...]:
    """The identities of all below `pid` but those in `without`; cheap when there are none."""
    found: list[Identity] = []
    waiting = [pid]
    while waiting:
        for child in _children(waiting.pop()):
            waiting.append(child)
            if child not in without and (identity := identity_of(child)) is not None:
                found.append(identity)
    return tuple(sorted(found))


def marked(run_id: str) -> list[Process]:
    """Every live process whose environment carries the run's id, this one left out."""
    wanted = f"{RUN_VARIABLE}={run_id}".encode()
    found: list[Process] = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        with contextlib.suppress(OSError):
            if wanted in (entry / "environ").read_bytes().split(b"\0"):
                identity = identity_of(int(entry.name))
                if identity is not None:
                    found.append(Process(identity[0], identity[1], _command(identity[0])))
    return found


def inherited(run_id: str, supervisor: int) -> tuple[Identity, ...]:
    """The processes of a run that an earlier supervisor started and that have outlived it."""
    below = descendant_identities(supervisor)
    found = (each.identity for each in marked(run_id))
    return tuple(each for each in found if each not in below and each[0] != supervisor)


def _children(pid: int) -> list[int]:
    found: list[int] = []
    with contextlib.suppress(OSError):
        for task in os.listdir(f"/proc/{pid}/task"):  # noqa: PTH208 - on the hot path, names are enough
            with contextlib.suppress(OSError):
                found += map(int, Path(f"/proc/{pid}/task/{task}/children").read_bytes().split())
    return found


def _command(pid: int) -> str:
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return "?"
    text = b" ".join(word for word in words if word).decode("utf-8", "replace")
    return text[:120] or "?"


def stop(processes: Iterable[Process]) -> list[Process]:
    """Suspend processes; returns those that were."""
    return [process for process in processes if _send(process, signal.SIGSTOP)]


def go_on(processes: Iterable[Process]) -> None:
    """Let suspended processes run again."""
    for process in processes:
        _send(process, signal.SIGCONT)


def end_below(pid: int, *, keep: Collection[Identity] = ()) -> list[Process]:
    """End every process below `pid` but those in `keep`, and those they start meanwhile; returns the ended.

    First asked (SIGTERM), after a second killed. When this returns none of them runs any more.

    Raises:
        TimeoutError: a process survived SIGKILL for ten seconds (stuck in the kernel).
    """
    return end(lambda: [each for each in descendants(pid) if each.identity not in keep])


def end(find: Callable[[], Iterable[Process]]) -> list[Process]:
    """End whatever `find()` lists until it lists nothing; returns all that were ended."""
    ended: dict[Identity, Process] = {}
    began = time.monotonic()
    asked: set[Identity] = set()
    while remaining := list(find()):
        elapsed = time.monotonic() - began
        if elapsed > _DEADLINE_S:
            raise TimeoutError(f"cannot end {', '.join(map(str, remaining))}")
        for process in remaining:
            ended[process.identity] = process
            if process.identity not in asked:
                asked.add(process.identity)
                _send(process, signal.SIGTERM)
                _send(process, signal.SIGCONT)  # a suspended process would never see the request
            elif elapsed > _GRACE_S:
                _send(process, signal.SIGKILL)
        reap()
        time.sleep(_POLL_S)
    return list(ended.values())


def reap() -> None:
    """Collect adopted children that have ended, but none that somebody waits for by `waitid`."""
    for entry in _children(os.getpid()):
        if identity_of(entry) is None:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(entry, os.WNOHANG)


def _send(process: Process, number: signal.Signals) -> bool:
    if identity_of(process.pid) != process.identity:
        return False
    try:
        os.kill(process.pid, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True
