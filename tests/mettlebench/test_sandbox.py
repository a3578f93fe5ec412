"""What a command in the sandbox can see and do, tried by commands."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from mettlebench.errors import SandboxUnavailableError
from mettlebench.sandbox import Completed, Sandbox, SandboxMode, require_sandbox, run


def shell(workspace: Path, script: str, *, seconds: float = 60, cpu_seconds: int | None = None) -> Completed:
    return run(Sandbox(workspace=workspace), ["bash", "-c", script], seconds=seconds, cpu_seconds=cpu_seconds)


def test_a_command_writes_its_workspace_only(tmp_path: Path) -> None:
    (tmp_path / "w").mkdir()
    (tmp_path / "secret").write_text("hidden")
    done = shell(tmp_path / "w", f"pwd; echo hi > made; cat {tmp_path}/secret; touch /usr/x /etc/x; ls /")
    assert done.stdout.splitlines()[0] == b"/workspace"
    assert (tmp_path / "w" / "made").read_text() == "hi\n"
    assert (tmp_path / "w" / "made").stat().st_uid == os.getuid()
    assert b"hidden" not in done.stdout
    assert done.stderr.count(b"No such file") == 1
    assert not Path("/usr/x").exists()
    assert b"work\n" not in done.stdout


def test_no_capability_no_environment_no_input(tmp_path: Path) -> None:
    done = shell(tmp_path, "grep CapEff /proc/self/status; id -un; cat; env | grep -c SECRET_OF_HOST")
    assert done.stdout.split() == [b"CapEff:", b"0" * 16, b"dev", b"0"]


def test_no_network(tmp_path: Path) -> None:
    source = "import socket; socket.create_connection(('127.0.0.1', 22), 2)"
    assert run(Sandbox(workspace=tmp_path), ["python3", "-c", source], seconds=60).code != 0
    interfaces = shell(tmp_path, "ls /sys/class/net /proc/self/net/dev; cat /proc/net/dev").stdout
    assert b"eth0" not in interfaces


def test_what_it_started_does_not_outlive_it(tmp_path: Path) -> None:
    script = "setsid bash -c 'sleep 1; echo late > late' & disown; echo done"
    assert shell(tmp_path, script).stdout == b"done\n"
    time.sleep(1.5)
    assert not (tmp_path / "late").exists()


def test_a_command_that_hangs_is_ended(tmp_path: Path) -> None:
    begin = time.monotonic()
    assert shell(tmp_path, "sleep 100 & sleep 100", seconds=0.5).code is None
    assert time.monotonic() - begin < 20


def test_output_past_the_limit_is_cut(tmp_path: Path) -> None:
    done = run(
        Sandbox(workspace=tmp_path), ["bash", "-c", "yes | head -c 5000"], seconds=60, output_limit=100
    )
    assert len(done.stdout) == 100
    assert done.truncated


def test_a_program_that_burns_time_is_ended_by_its_cpu_limit(tmp_path: Path) -> None:
    assert shell(tmp_path, "while :; do :; done", cpu_seconds=1).code not in (0, None)


def test_mode_none_runs_here(tmp_path: Path) -> None:
    sandbox = Sandbox(workspace=tmp_path, mode=SandboxMode.NONE)
    assert run(sandbox, ["pwd"], seconds=60).stdout.decode().strip() == str(tmp_path)


def test_a_missing_bubblewrap_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mettlebench.sandbox._PATH", str(tmp_path))
    monkeypatch.setattr("mettlebench.sandbox._own_python_found", (None,))
    with pytest.raises(SandboxUnavailableError, match="apt-get install bubblewrap"):
        require_sandbox(SandboxMode.BUBBLEWRAP)
    require_sandbox(SandboxMode.NONE)
