"""`keep` and the fixture `kept_run`: a run in a repository, replayed by the tests of its agent."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from agentrewind.errors import UsageError
from agentrewind.kept_runs import replay_kept
from agentrewind.run_store import Run
from tests.cli.desk import REPOSITORY, Desk, tree
from tests.cli.test_replay import needs_namespaces

KEPT = REPOSITORY / "tests" / "kept_runs" / "runs" / "sums"
AGENT = (REPOSITORY / "examples" / "openai_loop.py").read_text()


@pytest.fixture
def project(desk: Desk) -> Path:
    """A project with the example agent, a run of it that is kept, and a test."""
    folder = desk.base / "project"
    shutil.copytree(KEPT, folder / "tests" / "runs" / "sums")
    (folder / "agent.py").write_text(AGENT)
    (folder / "tests" / "test_agent.py").write_text(
        "import sys\n"
        "def test_agent(kept_run):\n"
        "    kept_run('sums', command=[sys.executable, 'AGENT', 'Make check.py pass.'])\n".replace(
            "AGENT", str(folder / "agent.py")
        )
    )
    return folder


def _pytest(desk: Desk, project: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments],
        cwd=project,
        env=desk.environment(),
        capture_output=True,
        text=True,
        check=False,
    )


CHANGES = {
    "nothing": ("", "", ""),
    "prompt": ("You work in a shell.", "You work in a sandbox.", "messages[0].content at character 15"),
    "result": ("done.stdout + done.stderr", "done.stdout.upper()", "rec_000002"),
    "tool": ('"parameters"', '"description": "a shell", "parameters"', "tools[0]"),
    "end": ("    message = answer", "    raise SystemExit\n    message = answer", "never asked for"),
    "import": ("import openai", "import no_such_module", "No module named 'no_such_module'"),
    "exit": ("    message = answer", "    sys.exit('no good')\n    message = answer", "no good"),
}
"""Changes of the agent's code, and the first difference that they make."""


@needs_namespaces
def test_an_agent_passes_that_does_the_same_and_fails_with_its_first_difference(
    desk: Desk, project: Path
) -> None:
    for name, (old, new, _) in CHANGES.items():
        assert old in AGENT
        (project / f"{name}.py").write_text(AGENT.replace(old, new) if old else AGENT)
    (project / "tests" / "test_agent.py").write_text(
        "import sys\n"
        "import pytest\n"
        f"@pytest.mark.parametrize('name', {[*CHANGES]})\n"
        "def test_agent(kept_run, name):\n"
        f"    kept_run('sums', command=[sys.executable, f'{project}/{{name}}.py', 'Make check.py pass.'])\n"
    )
    before = tree(project / "tests" / "runs")
    done = _pytest(desk, project)
    assert "6 failed, 1 passed" in done.stdout
    assert "Traceback" not in done.stdout
    told = done.stdout.partition("= FAILURES =")[2]
    for name, (_, _, words) in [*CHANGES.items()][1:]:
        told = told.partition(f"test_agent[{name}]")[2]
        assert words in told.partition("test_agent[")[0], name
    assert tree(project / "tests" / "runs") == before
    assert not (desk.home / "runs").exists()


@needs_namespaces
def test_a_kept_run_survives_a_repository(desk: Desk, project: Path) -> None:
    """Git keeps no empty folder and no mode; a clone, under any setting of line ends, is as good."""
    git = ["git", "-c", "user.name=n", "-c", "user.email=e", "-c", "core.autocrlf=true"]
    for command in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "kept"]):
        subprocess.run([*git, *command], cwd=project, check=True, capture_output=True)
    clone = desk.base / "clone"
    subprocess.run([*git, "clone", "-q", str(project), str(clone)], check=True, capture_output=True)
    assert tree(clone / "tests" / "runs") == tree(project / "tests" / "runs")
    done = _pytest(desk, clone)
    assert done.returncode == 0, done.stdout
    status = [*git, "status", "--porcelain", "tests/runs"]
    assert subprocess.run(status, cwd=clone, capture_output=True, check=True).stdout == b""


@needs_namespaces
def test_a_run_of_a_harness_with_a_rewind_is_kept(told: Desk, desk: Desk) -> None:
    before = tree(told.home)
    folder = desk.base / "kept"
    document = told.json("keep", "last", str(folder))
    assert (document["nodes"], document["folder"]) == (6, str(folder))
    assert document["bytes"] == sum(len(data) for data in tree(folder).values())
    assert tree(told.home) == before
    found = replay_kept(folder, environment=desk.environment())
    assert (found.divergence, found.state, len(found.nodes)) == (None, "accepted", 6)


@needs_namespaces
def test_the_recorded_path_need_not_exist(desk: Desk) -> None:
    """Another machine has no such folder; one is made that nobody else sees."""
    desk.json(*desk.run_arguments(["sh pwd > here; mkdir deep", "say done"]), code=1)
    folder = desk.base / "kept"
    desk.json("keep", "last", str(folder))
    neighbours = sorted(path.name for path in desk.base.iterdir())
    shutil.rmtree(desk.workspace)
    assert replay_kept(folder, environment=desk.environment()).divergence is None
    assert desk.json("replay", "last")["divergence"] is None
    assert sorted(path.name for path in desk.base.iterdir()) == [
        each for each in neighbours if each != "workspace"
    ]


@needs_namespaces
def test_a_kept_run_comes_into_a_store(told: Desk, desk: Desk) -> None:
    folder = desk.base / "kept"
    told.json("keep", "last", str(folder))
    refused = desk.json("show", "kept", "rec_000001", code=2)["error"]["message"]
    assert "agentrewind import kept" in refused
    before = tree(folder)
    came = desk.json("import", "kept")
    assert (came["nodes"], came["snapshots"], came["redacted"]) == (14, 1, False)
    assert came["absent"] > 0
    assert tree(folder) == before

    # what needs no other state works, and verify tells the rest from damage
    assert desk.json("log", "last")["nodes"] == told.json("log", "last")["nodes"]
    assert desk.json("replay", "last")["divergence"] is None
    [found] = desk.json("verify", "last")["runs"]
    assert (found["sound"], found["restorable"] < found["nodes"]) == (True, True)
    assert "did not come along" in found["harmless"][0]
    desk.json("restore", "last", "rec_000001", "--into", "begun")
    assert tree(desk.base / "begun") == {}
    missing = desk.json("restore", "last", "rec_000003", "--into", "later", code=4)["error"]
    assert missing["type"] == "MissingSnapshotError"
    desk.json("fork", "last", "--at", "rec_000003", "--prepare", code=4)
    assert len(desk.json("list")) == 1
    assert "already" in desk.json("import", "kept", code=5)["error"]["message"]


def test_no_other_folder_is_imported(told: Desk, desk: Desk) -> None:
    folder = desk.base / "kept"
    told.json("keep", "last", str(folder))
    path = folder / "segment-0000.jsonl"
    path.write_bytes(path.read_bytes().replace(b"echo one", b"echo own", 1))
    assert "damaged" in desk.json("import", "kept", code=4)["error"]["message"]
    shutil.rmtree(folder / "snapshots.git")
    assert desk.json("import", "kept", code=2)["error"]["type"] == "UnknownRunError"
    assert desk.json("list") == []


def test_a_folder_that_holds_something_is_left_alone(told: Desk, desk: Desk) -> None:
    folder = desk.base / "mine"
    folder.mkdir()
    (folder / "file").write_text("mine")
    assert told.json("keep", "last", str(folder), code=5)["error"]["type"] == "ProtectedError"
    assert told.json("keep", "last", str(folder / "file"), code=2)["error"]["type"] == "UsageError"
    assert told.json("keep", "last", str(told.home / "kept"), code=5)["error"]["type"] == "ProtectedError"
    assert tree(folder) == {"file": b"mine"}
    assert not (told.home / "kept").exists()


def test_a_damaged_run_is_not_kept(rewound: Desk) -> None:
    path = rewound.only_run().segment_path(0)
    path.write_bytes(path.read_bytes().replace(b"echo one", b"echo own", 1))
    error = rewound.json("keep", "last", "kept", code=4)["error"]
    assert "damaged" in error["message"]
    assert not (rewound.base / "kept").exists()


def test_what_is_no_kept_run_is_told(desk: Desk, project: Path) -> None:
    test = project / "tests" / "test_agent.py"
    test.write_text(test.read_text().replace("'sums'", "'summs'"))
    done = _pytest(desk, project)
    assert done.returncode == 1
    assert "no run is called" in done.stdout
    (project / "tests" / "runs" / "sums" / "segment-0000.jsonl").unlink()
    test.write_text(test.read_text().replace("'summs'", "'sums'"))
    assert "no run is called" in _pytest(desk, project).stdout


def test_a_harness_takes_no_command(told: Desk, desk: Desk) -> None:
    folder = desk.base / "kept"
    told.json("keep", "last", str(folder))
    assert Run(folder).timeline().header.run_id == told.only_run().run_id
    with pytest.raises(UsageError, match="takes no command"):
        replay_kept(folder, environment=desk.environment(), command=["python3", "x.py"])
