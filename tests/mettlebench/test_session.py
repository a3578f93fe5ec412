"""An attempt's sandbox, over several commands."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from mettlebench.sandbox import Sandbox, SandboxMode
from mettlebench.session import Session, SessionEndedError


def test_commands_share_files_and_background_but_no_shell(tmp_path: Path) -> None:
    with Session(Sandbox(workspace=tmp_path)) as session:
        assert session.run("cd /tmp; export A=1; echo made > made; echo one > /workspace/one").code == 0
        assert session.run("pwd; echo $A; cat /tmp/made").output == b"/workspace\n\nmade\n"
        begin = time.monotonic()
        assert session.run("sleep 300 & sleep 0.3; echo started").output == b"started\n"
        assert time.monotonic() - begin < 30
        assert b"sleep" in session.run("cat /proc/[0-9]*/comm").output
    assert (tmp_path / "one").read_text() == "one\n"


def test_nothing_outlives_a_session(tmp_path: Path) -> None:
    with Session(Sandbox(workspace=tmp_path)) as session:
        session.run("setsid bash -c 'sleep 1; touch /workspace/late' >/dev/null 2>&1 &")
    time.sleep(1.5)
    assert not (tmp_path / "late").exists()


def test_a_command_has_no_input_and_can_be_stopped(tmp_path: Path) -> None:
    with Session(Sandbox(workspace=tmp_path)) as session:
        assert session.run("cat; echo end").output == b"end\n"
        late = session.run("echo begun; sleep 300", seconds=0.5)
        assert (late.stopped, late.output) == (True, b"begun\n")
        timer = threading.Timer(0.5, session.interrupt)
        timer.start()
        assert session.run("sleep 300").stopped
        timer.join()
        assert not session.run("true").stopped


def test_output_is_kept_as_bytes_and_cut(tmp_path: Path) -> None:
    with Session(Sandbox(workspace=tmp_path)) as session:
        assert session.run("printf '\\377\\0a'; echo err >&2").output == b"\xff\0aerr\n"
        long = session.run("yes | head -c 100000", limit=10)
        assert (len(long.output), long.size) == (10, 100000)


def test_a_sandbox_that_is_brought_down_is_told(tmp_path: Path) -> None:
    with Session(Sandbox(workspace=tmp_path)) as session:
        with pytest.raises(SessionEndedError):
            session.run("kill -9 -1")
        with pytest.raises(SessionEndedError):
            session.run("true")


def test_no_command_can_answer_for_the_session(tmp_path: Path) -> None:
    with Session(Sandbox(workspace=tmp_path)) as session:
        told = session.run(
            "for n in 0 1 3 4 5 6; do readlink /proc/2/fd/$n; echo '{}' > /proc/2/fd/$n; done 2>&1"
        )
        assert b"pipe" not in told.output
        assert told.output.count(b"denied") >= 4
        assert session.run("echo still").output == b"still\n"


def test_mode_none_runs_here(tmp_path: Path) -> None:
    with Session(Sandbox(workspace=tmp_path, mode=SandboxMode.NONE)) as session:
        assert session.run("pwd").output.decode().strip() == str(tmp_path)


def test_a_session_outlives_the_threads_that_start_and_use_it(tmp_path: Path) -> None:
    """Agent frameworks run each call of a tool in a thread of its own."""
    opened: list[Session] = []

    def in_a_thread(work: Callable[[], object]) -> None:
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()

    in_a_thread(lambda: opened.append(Session(Sandbox(workspace=tmp_path))))
    with opened[0] as session:
        in_a_thread(lambda: session.run("sleep 60 & echo $! > job"))
        time.sleep(0.3)
        assert session.run("kill -0 $(cat job)").code == 0
