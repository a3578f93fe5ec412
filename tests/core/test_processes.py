"""Real processes: found wherever they hide, suspended, ended for good."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agentrewind.processes import (
    RUN_VARIABLE,
    Process,
    adopt_orphans,
    descendant_identities,
    descendants,
    end,
    end_below,
    go_on,
    identity_of,
    marked,
    reap,
    stop,
)

RUN = f"tests-{os.getpid()}"
HERE = os.getpid()


STARTED: list[subprocess.Popen[bytes]] = []


@pytest.fixture(autouse=True)
def _leave_nothing() -> Iterator[None]:
    adopt_orphans()
    before = {each.identity for each in descendants(HERE)}
    yield
    end_below(HERE, keep=before)
    while STARTED:
        STARTED.pop().wait()
    ctypes.CDLL(None).prctl(36, 0, 0, 0, 0)  # orphans of later tests are not ours


def start(code: str, *arguments: object, mark: bool = True) -> subprocess.Popen[bytes]:
    environment = {**os.environ, RUN_VARIABLE: RUN} if mark else dict(os.environ)
    command = [sys.executable, "-S", "-c", "import os, signal, sys, time\n" + code, *map(str, arguments)]
    STARTED.append(subprocess.Popen(command, env=environment))
    return STARTED[-1]


def eventually(condition: Callable[[], object], *, within: float = 5.0) -> None:
    until = time.monotonic() + within
    while not condition():
        assert time.monotonic() < until, "it did not come to pass in time"
        time.sleep(0.005)


def wait_for(path: Path) -> int:
    """The pid that a process wrote there."""
    eventually(lambda: path.exists() and path.read_text().endswith("\n"))
    return int(path.read_text())


def find(pid: int) -> Process:
    return next(each for each in descendants(HERE) if each.pid == pid)


SLEEP = "time.sleep(60)"
TELL = "open(sys.argv[1], 'w').write(f'{os.getpid()}\\n')\n"
DAEMON = f"""
if os.fork(): os._exit(0)
os.setsid()
if os.fork(): os._exit(0)
{TELL}
{SLEEP}
"""


def test_a_child_is_found_and_named_by_pid_and_start() -> None:
    child = start(SLEEP)
    process = find(child.pid)
    assert process.identity == identity_of(child.pid)
    assert "time.sleep" in str(process)
    assert process.identity in descendant_identities(HERE)
    assert process.identity not in descendant_identities(HERE, without=(child.pid,))


def test_a_zombie_is_gone_and_can_be_collected() -> None:
    child = start("")
    eventually(lambda: identity_of(child.pid) is None)
    assert child.pid not in [each.pid for each in descendants(HERE)]
    reap()
    assert not Path(f"/proc/{child.pid}").exists()
    child.wait()


def test_children_of_a_zombie_are_found_all_the_same(tmp_path: Path) -> None:
    start(f"if os.fork(): os._exit(0)\n{TELL}{SLEEP}", tmp_path / "pid")
    pid = wait_for(tmp_path / "pid")
    eventually(lambda: pid in [each.pid for each in descendants(HERE)])


def test_a_double_forked_daemon_is_adopted_marked_and_ended(tmp_path: Path) -> None:
    start(DAEMON, tmp_path / "pid").wait()
    pid = wait_for(tmp_path / "pid")
    assert pid in [each.pid for each in descendants(HERE)]
    assert pid in [each.pid for each in marked(RUN)]
    ended = end_below(HERE)
    assert pid in [each.pid for each in ended]
    assert identity_of(pid) is None


def test_another_run_and_unmarked_processes_are_not_marked() -> None:
    child = start(SLEEP, mark=False)
    eventually(lambda: identity_of(child.pid))
    assert child.pid not in [each.pid for each in marked(RUN)]
    assert marked(RUN + "0") == []
    assert HERE not in [each.pid for each in marked(RUN)]


def test_one_that_was_given_away_is_found_by_its_mark(tmp_path: Path) -> None:
    """Its supervisor, not this process, adopts it and dies: then it is nobody's descendant but marked."""
    middle = start(
        "import ctypes\nctypes.CDLL(None).prctl(36, 1, 0, 0, 0)\n"
        "child = os.fork()\n"
        f"if not child:\n    {TELL.strip()}\n    {SLEEP}\n"
        "time.sleep(60)",
        tmp_path / "pid",
    )
    pid = wait_for(tmp_path / "pid")
    middle.kill()
    middle.wait()
    assert pid in [each.pid for each in marked(RUN)]
    ended = end(lambda: marked(RUN))
    assert pid in [each.pid for each in ended]
    assert marked(RUN) == []


def test_one_that_ignores_the_request_is_killed(tmp_path: Path) -> None:
    child = start(f"signal.signal(signal.SIGTERM, signal.SIG_IGN)\n{TELL}{SLEEP}", tmp_path / "pid")
    wait_for(tmp_path / "pid")
    began = time.monotonic()
    assert child.pid in [each.pid for each in end_below(HERE)]
    assert 0.9 < time.monotonic() - began < 5
    assert identity_of(child.pid) is None


def test_one_that_listens_may_tidy_up(tmp_path: Path) -> None:
    code = (
        "def tidy(*_):\n    open(sys.argv[2], 'w').write('tidied'); os._exit(0)\n"
        f"signal.signal(signal.SIGTERM, tidy)\n{TELL}{SLEEP}"
    )
    start(code, tmp_path / "pid", tmp_path / "tidied")
    wait_for(tmp_path / "pid")
    end_below(HERE)
    assert (tmp_path / "tidied").read_text() == "tidied"


def test_what_is_started_while_the_rest_is_ended_is_ended_too(tmp_path: Path) -> None:
    code = (
        "def again(*_):\n"
        "    if os.fork(): os._exit(0)\n"
        "    os.setsid(); signal.signal(signal.SIGTERM, signal.SIG_DFL)\n"
        "    open(sys.argv[2], 'a').write(f'{os.getpid()}\\n')\n"
        "    time.sleep(60)\n"
        f"signal.signal(signal.SIGTERM, again)\n{TELL}{SLEEP}"
    )
    for number in range(3):
        start(code, tmp_path / f"pid-{number}", tmp_path / "escaped")
        wait_for(tmp_path / f"pid-{number}")
    ended = [each.pid for each in end_below(HERE)]
    told = tmp_path / "escaped"
    # one that was ended before it could tell its name counts as well
    escaped = [int(line) for line in told.read_text().split()] if told.exists() else []
    assert len(ended) > 3
    assert set(escaped) <= set(ended)
    assert [pid for pid in escaped if identity_of(pid)] == []


def test_a_writer_writes_nothing_after_its_end(tmp_path: Path) -> None:
    file = tmp_path / "gen.txt"
    start(
        f"{TELL}\nwhile True:\n    open(sys.argv[2], 'a').write('x'); time.sleep(0.001)",
        tmp_path / "pid",
        file,
    )
    wait_for(tmp_path / "pid")
    eventually(file.exists)
    end_below(HERE)
    size = file.stat().st_size
    time.sleep(0.05)
    assert file.stat().st_size == size


def test_kept_ones_are_suspended_go_on_and_are_not_ended(tmp_path: Path) -> None:
    file = tmp_path / "beats"
    beating = f"{TELL}\nwhile True:\n    open(sys.argv[2], 'a').write('x'); time.sleep(0.002)"
    kept = start(beating, tmp_path / "kept", file)
    wait_for(tmp_path / "kept")
    keep = find(kept.pid)
    other = start(SLEEP)
    eventually(lambda: identity_of(other.pid))
    ended = end_below(HERE, keep=[keep.identity])
    assert kept.pid not in [each.pid for each in ended]
    assert other.pid in [each.pid for each in ended]
    stopped = stop([keep])
    assert stopped == [keep]
    eventually(lambda: b") T " in Path(f"/proc/{kept.pid}/stat").read_bytes())
    size = file.stat().st_size
    time.sleep(0.03)
    assert file.stat().st_size == size
    go_on(stopped)
    eventually(lambda: file.stat().st_size > size)


def test_a_suspended_one_can_be_ended(tmp_path: Path) -> None:
    child = start(f"{TELL}{SLEEP}", tmp_path / "pid")
    wait_for(tmp_path / "pid")
    os.kill(child.pid, signal.SIGSTOP)
    began = time.monotonic()
    end_below(HERE)
    assert time.monotonic() - began < 0.9
    assert identity_of(child.pid) is None


def test_a_pid_that_is_somebody_elses_now_is_left_alone() -> None:
    child = start(SLEEP)
    process = find(child.pid)
    stranger = Process(process.pid, process.start + 1, process.command)
    assert stop([stranger]) == []
    go_on([stranger])
    time.sleep(0.02)
    assert identity_of(child.pid) == process.identity


def test_nothing_to_end_is_nothing_to_wait_for() -> None:
    began = time.monotonic()
    before = {each.identity for each in descendants(HERE)}
    assert end_below(HERE, keep=before) == []
    assert time.monotonic() - began < 0.2


def test_a_name_with_brackets_and_blanks_does_not_hide_the_start(tmp_path: Path) -> None:
    odd = tmp_path / "a) S 1 (b"
    odd.symlink_to(sys.executable)
    child = subprocess.Popen([odd, "-S", "-c", "import time; time.sleep(60)"])
    STARTED.append(child)
    eventually(lambda: identity_of(child.pid))
    assert identity_of(child.pid) == find(child.pid).identity
    uptime = float(Path("/proc/uptime").read_text().split()[0]) * os.sysconf("SC_CLK_TCK")
    assert abs(find(child.pid).start - uptime) < 60 * os.sysconf("SC_CLK_TCK")


def test_what_does_not_exist_has_no_identity() -> None:
    assert identity_of(2**22 + 1) is None
    assert descendants(2**22 + 1) == []
    assert descendant_identities(2**22 + 1) == ()
