"""A run never works in another directory than its own, nor beside another agent of its own, nor unjoined."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from agentrewind.errors import WorkspaceBusyError, WorkspaceRefusedError
from agentrewind.workspace.lock import alone
from agentrewind.workspace.roots import recorded_root
from tests.core.stage import Stage
from tests.e2e.test_scripts import EXAMPLES, Desk, desk, outside  # noqa: F401 - fixtures

AGENT = """
import os, sys
import agentrewind
def mark(text):
    with open({marks!r}, 'a') as file: file.write(text + '\\n')
agentrewind.call_tool('one', {{}}, lambda: mark('one'))
if not os.path.exists({flag!r}):
    open({flag!r}, 'w').close()
    os.kill(os.getpid(), 9)
agentrewind.call_tool('two', {{}}, lambda: mark('two'))
"""


def killed_once(desk: Desk) -> str:  # noqa: F811
    """A run of a script that was killed after its first tool call."""
    (desk.root / "ws").mkdir()
    script = desk.root / "agent.py"
    script.write_text(AGENT.format(marks=str(desk.root / "effects"), flag=str(desk.root / "flag")))
    words = ["run", "--json", "--workspace", str(desk.root / "ws"), "--", sys.executable, str(script)]
    return str(desk.command(*words, expect=1)["run_id"])


def test_a_link_in_the_place_of_the_workspace_is_refused(desk: Desk) -> None:  # noqa: F811
    run_id = killed_once(desk)
    victim = desk.root / "victim"
    victim.mkdir()
    (victim / "precious").write_text("p")
    (desk.root / "ws").rename(desk.root / "away")
    (desk.root / "ws").symlink_to("victim")
    for words in (
        ["run", "--resume", run_id],
        ["restore", run_id, "rec_000001", "--in-place"],
        ["undo", run_id],
    ):
        told = desk.command(*words, "--json", expect=5)["error"]["message"]
        assert "another directory" in told
    assert [path.name for path in victim.iterdir()] == ["precious"]
    assert desk.effects == ["one"]
    (desk.root / "ws").unlink()
    (desk.root / "away").rename(desk.root / "ws")
    assert desk.command("run", "--resume", run_id, "--json")["state"] == "accepted"
    assert desk.effects == ["one", "two"]


def test_a_script_that_cannot_join_does_not_run(desk: Desk) -> None:  # noqa: F811
    run_id = killed_once(desk)
    (store,) = (desk.root / "home" / "workspaces").glob("*/snapshots.git/agentrewind-store")
    before = store.read_bytes()
    store.write_bytes(b"junk")
    assert desk.command("run", "--resume", run_id, "--json", expect=4)
    assert desk.effects == ["one"]
    store.write_bytes(before)
    assert desk.command("run", "--resume", run_id, "--json")["state"] == "accepted"
    assert desk.effects == ["one", "two"]


def test_a_supervisor_killed_while_its_script_starts_leaves_no_second_agent(desk: Desk) -> None:  # noqa: F811
    (desk.root / "ws").mkdir()
    script = desk.root / "agent.py"
    script.write_text(AGENT.format(marks=str(desk.root / "effects"), flag=str(desk.root / "flag")))
    (desk.root / "flag").touch()
    environment = {**os.environ, "AGENTREWIND_HOME": str(desk.root / "home")}
    words = [
        "run",
        "--workspace",
        str(desk.root / "ws"),
        "--",
        "sh",
        "-c",
        f"{sys.executable} {script}; true",
    ]
    supervisor = subprocess.Popen(
        [sys.executable, "-m", "agentrewind.cli", *words],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd=EXAMPLES.parent,
    )
    children = Path(f"/proc/{supervisor.pid}/task/{supervisor.pid}/children")
    while not children.read_text().split():
        time.sleep(0.002)
    supervisor.send_signal(signal.SIGKILL)
    supervisor.wait()
    result = desk.command("run", "--resume", "last", "--json")
    time.sleep(1.5)
    assert result["state"] == "accepted"
    assert desk.effects == ["one", "two"]


def test_two_agent_processes_of_one_run_exclude_each_other(tmp_path: Path) -> None:
    stage = Stage.create(tmp_path)
    program = (
        "import sys, time\nfrom pathlib import Path\nfrom agentrewind.workspace.lock import alone\n"
        "held = alone(Path(sys.argv[1]))\nprint('held', flush=True)\ntime.sleep(60)\n"
    )
    other = subprocess.Popen(
        [sys.executable, "-c", program, str(stage.run.directory)], stdout=subprocess.PIPE, text=True
    )
    assert other.stdout is not None
    assert other.stdout.readline() == "held\n"
    with pytest.raises(WorkspaceBusyError), stage.live():
        pass
    other.kill()
    other.wait()
    other.stdout.close()
    alone(stage.run.directory).close()


def test_a_workspace_that_is_gone_is_made_anew_for_what_brings_it_back(tmp_path: Path) -> None:
    root = tmp_path.resolve() / "ws"
    assert recorded_root(root, home=tmp_path / "home", user_home=None) == root
    assert root.is_dir()
    root.rmdir()
    (tmp_path / "other").mkdir()
    root.symlink_to("other")
    with pytest.raises(WorkspaceRefusedError, match="another directory"):
        recorded_root(root, home=tmp_path / "home", user_home=None)
