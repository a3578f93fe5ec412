"""Exported tasks, with their own scripts: solved, untouched, done in the wrong order, and cheated at."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tarfile
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from mettlebench.build import build_workspace
from mettlebench.cli import run as mettlebench
from mettlebench.harbor.export import export_task
from mettlebench.harbor.texts import AGENT_MARK
from mettlebench.perform import perform_all
from mettlebench.sandbox import Completed, Sandbox, run
from mettlebench.steps import violation_steps
from mettlebench.task import Task
from mettlebench.tree import tree_digest

AGENT = 61852
"""The agent's user in the container; no user of this machine."""

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="a Harbor verifier is root in its container")


@dataclass(frozen=True, slots=True)
class Container:
    """Folders at the places where a container of the exported image would have them."""

    exported: Path
    place: Path

    @property
    def workspace(self) -> Path:
        return self.place / "workspace"

    @property
    def logs(self) -> Path:
        return self.place / "logs" / "verifier"

    def solve(self) -> Completed:
        """Run the exported reference as an agent without rights."""
        sandbox = Sandbox(workspace=self.workspace, read_only={self.exported / "solution": "/solution"})
        return run(sandbox, ["/solution/solve.sh"], seconds=120)

    def verify(self, isolation: str = "user", *, command: str = "/tests/test.sh") -> int:
        """Run the exported verifier as root, in a file system of its own with the image's places."""
        shutil.rmtree(self.place / "tests", ignore_errors=True)
        shutil.copytree(self.exported / "tests", self.place / "tests")
        self.logs.mkdir(parents=True, exist_ok=True)
        (self.place / "mark").write_text(f"{AGENT}\n")
        box = ["bwrap", "--unshare-pid", "--unshare-net", "--die-with-parent"]
        box += ["--ro-bind", "/usr", "/usr"]
        for name in ("bin", "sbin", "lib", "lib64"):
            box += ["--symlink", f"usr/{name}", f"/{name}"]
        for path in ("/etc/alternatives", "/etc/passwd", "/etc/group", "/etc/ld.so.cache"):
            box += ["--ro-bind-try", path, path]
        box += ["--proc", "/proc", "--dev", "/dev", "--perms", "1777", "--tmpfs", "/tmp"]
        for inner in ("workspace", "tests", "logs"):
            box += ["--bind", str(self.place / inner), f"/{inner}"]
        box += ["--ro-bind", str(self.place / "mark"), AGENT_MARK]
        box += ["--clearenv", "--setenv", "PATH", "/usr/local/bin:/usr/bin:/bin"]
        box += ["--setenv", "METTLEBENCH_ISOLATION", isolation, "--chdir", "/workspace"]
        ended = subprocess.run(
            [*box, "bash", "-c", command], capture_output=True, stdin=subprocess.DEVNULL, check=False
        )
        (self.place / "stdout").write_bytes(ended.stdout + ended.stderr)
        return ended.returncode

    def reward(self) -> Mapping[str, float]:
        rewards: dict[str, float] = json.loads((self.logs / "reward.json").read_text())
        assert float((self.logs / "reward.txt").read_text()) == rewards["reward"]
        return rewards

    def verdict(self) -> Mapping[str, Any]:
        document: dict[str, Any] = json.loads((self.logs / "verdict.json").read_text())
        return document

    def said(self) -> str:
        return (self.place / "stdout").read_text()


@pytest.fixture(scope="session")
def _exported(sample: Task, tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("exported") / sample.id
    export_task(sample, target)
    return target


@pytest.fixture
def container(_exported: Path, tmp_path: Path) -> Container:
    made = Container(_exported, tmp_path / "container")
    made.workspace.mkdir(parents=True)
    with tarfile.open(_exported / "environment" / "workspace.tar") as archive:
        archive.extractall(made.workspace, numeric_owner=True, filter=of_the_caller)
    return made


def of_the_caller(entry: tarfile.TarInfo, _target: str) -> tarfile.TarInfo:
    # in the image it is the agent's user, which the sandbox's name space maps to the caller
    return entry.replace(uid=os.getuid(), gid=os.getgid(), uname="", gname="", deep=False)


def files(root: Path) -> dict[str, tuple[int, bytes]]:
    found = (path for path in root.rglob("*") if path.is_file())
    return {str(each.relative_to(root)): (each.stat().st_mode, each.read_bytes()) for each in found}


def test_two_exports_are_the_same_bytes_and_hold_the_workspace(
    sample: Task, container: Container, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "again"
    arguments = ["export", sample.id, "--tasks", str(sample.folder.parent), "--format", "harbor"]
    assert mettlebench([*arguments, "--out", str(out)]) == 0
    assert files(out / sample.id) == files(container.exported)
    assert {path.name for path in out.iterdir()} == {sample.id}
    assert mettlebench([*arguments, "--out", str(out)]) == 2
    assert "exists" in capsys.readouterr().err
    build_workspace(sample, tmp_path / "built")
    assert tree_digest(container.workspace) == tree_digest(tmp_path / "built")


def test_an_agent_is_shown_nothing_of_the_checklist(sample: Task, container: Container) -> None:
    settings = tomllib.loads((container.exported / "task.toml").read_text())
    assert settings["task"]["name"] == f"mettlebench/{sample.id}"
    assert settings["environment"]["network_mode"] == "no-network"
    assert (settings["agent"]["user"], settings["verifier"]["user"]) == ("dev", "root")
    assert (container.exported / "instruction.md").read_text() == sample.instruction
    shown = files(container.exported / "environment").values()
    for criterion in sample.criteria:
        assert not any(criterion.feedback.encode() in data for _, data in shown)


@needs_root
def test_the_reference_is_rewarded(container: Container) -> None:
    solved = container.solve()
    assert solved.code == 0, solved.stderr
    before = tree_digest(container.workspace)
    assert container.verify("auto") == 0, container.said()
    assert container.reward() == {"reward": 1, "progress": 1.0, "criteria_met": 1.0}
    assert tree_digest(container.workspace) == before


def test_where_a_sandbox_can_be_made_the_exported_judge_makes_it(container: Container) -> None:
    judge = container.exported / "tests"
    command = ["python3", "-I", "-S", "-B", str(judge / "mettlebench/harbor/grade_inside.py")]
    command += [
        str(judge / "sample"),
        str(container.workspace),
        str(container.logs),
        "bubblewrap",
        "/no-mark",
    ]
    ended = subprocess.run(command, capture_output=True, stdin=subprocess.DEVNULL, check=False)
    assert (ended.returncode, ended.stdout) == (0, b"isolation: bubblewrap\n")
    assert container.reward() == {"reward": 0, "progress": 0.0, "criteria_met": 0.0}


@needs_root
def test_what_the_agent_left_running_ends_before_the_grading(container: Container) -> None:
    left = f"setpriv --reuid {AGENT} --regid {AGENT} --clear-groups setsid -f sleep 20"
    there = f"ps -o comm= -u {AGENT}"
    assert container.verify(command=f"{left}; sleep 0.2; {there}; /tests/test.sh; {there}") == 1
    assert container.said() == "sleep\nisolation: user\n"
    assert container.reward()["reward"] == 0


@needs_root
def test_untouched_earns_nothing_and_the_wrong_order_its_prefix(sample: Task, container: Container) -> None:
    assert container.verify() == 0, container.said()
    assert container.reward() == {"reward": 0, "progress": 0.0, "criteria_met": 0.0}
    perform_all("violation.sh", violation_steps(sample), container.workspace, must_succeed=False)
    assert container.verify() == 0, container.said()
    reward, verdict = container.reward(), container.verdict()
    assert verdict["first_failure"] == sample.violation.fails == "C02"
    assert (reward["reward"], reward["progress"]) == (0, 0.2)


@needs_root
def test_an_agents_program_reads_no_evaluator_and_writes_no_reward(container: Container) -> None:
    assert container.solve().code == 0
    reader = container.workspace / "tools" / "amounts.py"
    (container.workspace / "records" / "note.md").write_text("nothing yet\n")
    reader.write_text(
        reader.read_text() + "\nimport os, time\n"
        "seen = []\n"
        "for place in ('/tests', '/tests/sample', '/tests/sample/checklist.toml'):\n"
        "    try: seen += os.listdir(place) if os.path.isdir(place) else [open(place).read()]\n"
        "    except OSError: pass\n"
        "if os.fork() == 0:\n"
        "    os.setsid()\n"
        "    while True:\n"
        "        for name in ('reward.json', 'reward.txt'):\n"
        "            try: open('/logs/verifier/' + name, 'w').write('1')\n"
        "            except OSError: pass\n"
        "if seen: raise SystemExit('SEEN ' + repr(seen))\n"
    )
    container.logs.mkdir(parents=True)
    container.logs.chmod(0o777)
    for name in ("reward.json", "reward.txt"):  # as if an agent had been here before
        (container.logs / name).symlink_to("/logs/elsewhere")
    assert container.verify() == 0, container.said()
    assert [each["passed"] for each in container.verdict()["criteria"]] == [True, True, True, True, False]
    assert container.reward()["reward"] == 0
    assert not (container.place / "logs" / "elsewhere").exists()


@needs_root
def test_without_a_verdict_there_is_no_reward(container: Container, tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    shutil.copytree(container.exported, broken)
    (broken / "tests" / "sample" / "evaluate.py").write_text("CHECKS = {'C01': 1 / 0}\n")
    spoilt = Container(broken, container.place)
    spoilt.logs.mkdir(parents=True)
    (spoilt.logs / "reward.txt").write_text("1\n")
    assert spoilt.verify() == 1
    assert list(spoilt.logs.iterdir()) == []
    assert "ZeroDivisionError" in spoilt.said()
    assert spoilt.verify("moon") == 1
    assert "use auto, bubblewrap or user" in spoilt.said()
