"""Somebody's Harbor tasks: listed, shown, graded by their own tests; no order, the share that passes."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from mettlebench.cli import run
from mettlebench.harbor.read import ROOT, read_harbor
from mettlebench.verdict import decode_verdict, encode_verdict

ID = "say-hello"
TESTS = """\
import helper

def test_greeting():
    assert True

async def test_waits():
    assert True

def no_test():
    pass

class TestAll:
    def test_end(self):
        assert True
"""
NAMES = [
    "test_outputs.py::test_greeting",
    "test_outputs.py::test_waits",
    "test_outputs.py::TestAll::test_end",
]
REPORTER = """\
#!/bin/bash
# As a task's verifier does it, with a test runner of its own.
greeting=$([ "$(cat hello.txt 2>/dev/null)" = "hello" ] && echo passed || echo failed)
entry() { printf '{"name": "../tests/test_outputs.py::%s", "status": "%s", "duration": 1}' "$1" "$2"; }
{
    printf '{"results": {"tests": ['
    entry test_greeting "$greeting"; printf ','
    entry 'test_waits[a/b-1]' passed; printf ','
    entry 'test_waits[2]' "$greeting"; printf ','
    entry TestAll::test_end passed
    printf ']}}'
} > /logs/verifier/ctrf.json
[ "$greeting" = passed ] && echo 1 > /logs/verifier/reward.txt || echo 0 > /logs/verifier/reward.txt
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A task as Terminal-Bench 2.0 lays them out."""
    task = tmp_path / "harbor" / ID
    (task / "tests").mkdir(parents=True)
    (task / "environment").mkdir()
    (task / "task.toml").write_text(
        'version = "1.0"\n[metadata]\nauthor_name = "A"\ndifficulty = "easy"\ncategory = "greeting"\n'
        "[verifier]\ntimeout_sec = 60.0\n[agent]\ntimeout_sec = 900.0\n"
        '[environment]\nbuild_timeout_sec = 600.0\ndocker_image = "a/b:1"\nmemory = "2G"\n'
    )
    (task / "instruction.md").write_text("Write hello into hello.txt.\n")
    (task / "environment" / "Dockerfile").write_text("FROM debian\nWORKDIR /srv\nRUN true\nWORKDIR app\n")
    (task / "tests" / "test_outputs.py").write_text(TESTS)
    (task / "tests" / "helper.py").write_text("def test_of_no_test_file(): pass\n")
    (task / "tests" / "data").mkdir()
    (task / "tests" / "data" / "test_data.py").write_text("def test_of_what_is_tested(): pass\n")
    (task / "tests" / "test.sh").write_text(REPORTER)
    return task.parent


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    (tmp_path / "app").mkdir()
    return tmp_path / "app"


def document(capsys: pytest.CaptureFixture[str], *arguments: str | Path, code: int = 0) -> Any:
    assert run([*map(str, arguments), "--json"]) == code
    return json.loads(capsys.readouterr().out)


def failure(capsys: pytest.CaptureFixture[str], *arguments: str | Path, code: int) -> str:
    assert run([str(each) for each in arguments]) == code
    error = capsys.readouterr().err
    assert "Traceback" not in error
    return error


def test_a_folder_of_them_is_listed_and_shown(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert document(capsys, "list", "--tasks", folder) == [{"id": ID, "family": "harbor", "criteria": 3}]
    shown = document(capsys, "show", ID, "--tasks", folder)
    assert shown["instruction"] == "Write hello into hello.txt.\n"
    assert "tests" not in shown
    assert document(capsys, "show", ID, "--hidden", "--tasks", folder)["tests"] == NAMES
    assert run(["show", ID, "--tasks", str(folder)]) == 0
    said = capsys.readouterr().out
    assert "works in /srv/app; its image is not unpacked here" in said
    assert "test_greeting" not in said


def test_a_workspace_is_graded_by_the_tests_in_no_order(
    folder: Path, workspace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = document(capsys, "grade", ID, workspace, "--tasks", folder, code=1)
    assert (found["passed"], found["total"], found["ordered"]) == (1, 3, False)
    assert found["progress"] == pytest.approx(1 / 3, abs=1e-6)
    assert found["feedback"] == "1 of 3 tests pass."
    (workspace / "hello.txt").write_text("hello\n")
    (tmp_path / "earlier").write_text(json.dumps(found))
    done = document(capsys, "grade", ID, workspace, "--previous", tmp_path / "earlier", "--tasks", folder)
    assert (done["accepted"], done["progress"]) == (True, 1.0)
    data = json.dumps(done).encode()
    assert json.loads(encode_verdict(decode_verdict(data))) == done
    assert [path.name for path in workspace.iterdir()] == ["hello.txt"]


def test_an_unpacked_image_is_the_system_of_the_tests(
    folder: Path, workspace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = folder / ID / ROOT
    for program in ("/bin/bash", "/bin/cat"):
        libraries = subprocess.run(
            ["ldd", program], capture_output=True, text=True, check=True
        ).stdout.split()
        for path in (program, *(each for each in libraries if each.startswith("/"))):
            target = root / path.lstrip("/")
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, target)
    for inner in ("srv/app", "var/tmp"):
        (root / inner).mkdir(parents=True)
    (root / "of-the-image").write_text("its own")
    (folder / ID / "tests" / "test.sh").write_text(
        'cat /of-the-image && [ ! -e /usr/bin/git ] && [ "$UID" = 0 ] && : > hello.txt &&\n'
        "! : 2>/dev/null > /srv/planted && echo 1 > /logs/verifier/reward.txt\n"
    )
    found = document(capsys, "grade", ID, workspace, "--tasks", folder)
    assert [each["id"] for each in found["criteria"]] == ["reward"]
    assert not (workspace / "hello.txt").exists()


def test_a_trials_logs_hold_the_verdict(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    logs = tmp_path / "verifier"
    logs.mkdir()
    command = ("verdict", ID, logs, "--tasks", folder)
    (logs / "reward.json").write_text('{"reward": 0.5}')
    assert document(capsys, *command, code=1)["criteria"][0]["detail"] == "the reward is 0.5"
    report = [{"name": f"tests/{name}", "status": "passed"} for name in NAMES[:1]]
    report += [{"name": f"tests/{NAMES[1]}", "status": "skipped"}, {"name": "test_made", "status": "other"}]
    (logs / "ctrf.json").write_text(json.dumps({"results": {"tests": report}}))
    criteria = document(capsys, *command, code=1)["criteria"]
    assert [(each["id"], each["passed"], each["detail"]) for each in criteria] == [
        (NAMES[0], True, ""),
        (NAMES[2], False, "not run"),
        ("test_made", False, "other"),
    ]


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({}, "leaves no ctrf.json, reward.json or reward.txt"),
        ({"reward.txt": "much\n"}, "a reward that is no number: 'much'"),
        ({"reward.json": "{"}, "a reward.json that is no JSON"),
        ({"reward.json": '{"score": 1}'}, "a reward that is no number: None"),
        ({"reward.txt": "inf"}, "a reward that is no number"),
        ({"ctrf.json": '{"results": []}'}, "that is no test report"),
        (
            {"ctrf.json": '{"results": {"tests": []}}', "reward.txt": "1"},
            "0 of 3 tests passed, and the reward is 1",
        ),
    ],
)
def test_logs_that_hold_no_verdict_are_an_error(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], files: dict[str, str], said: str
) -> None:
    (tmp_path / "verifier").mkdir()
    for name, text in files.items():
        (tmp_path / "verifier" / name).write_text(text)
    assert said in failure(capsys, "verdict", ID, tmp_path / "verifier", "--tasks", folder, code=1)


def test_what_cannot_be_done_with_one_is_said(
    folder: Path, workspace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for command in (("gate",), ("lint",), ("build", ID, workspace / "new")):
        assert "is run by Harbor" in failure(capsys, *command, "--tasks", folder, code=2)
    grade = ("grade", ID, workspace, "--tasks", folder)
    assert "takes a sandbox" in failure(capsys, *grade, "--sandbox", "none", code=2)
    (folder / ID / "tests" / "test.sh").write_text("pytest-of-the-image; exit 1\n")
    said = failure(capsys, *grade, code=1)
    assert "environment/rootfs" in said
    assert "command not found" in said
    (folder / ID / "environment" / "Dockerfile").write_text("FROM debian\nWORKDIR $HOME\n")
    assert "add workdir to its task.toml" in failure(capsys, *grade, code=2)
    (folder / ID / "tests" / "test_outputs.py").write_text("def test_(:\n")
    assert "test_outputs.py:1: this is no Python" in failure(capsys, "list", "--tasks", folder, code=2)


def test_a_task_of_steps_is_refused_and_one_without_python_tests_has_its_reward(folder: Path) -> None:
    (folder / ID / "tests" / "test_outputs.py").unlink()
    assert read_harbor(folder / ID).tests == ("reward",)
    with (folder / ID / "task.toml").open("a") as file:
        file.write("[[steps]]\nname = 'one'\n")
    assert run(["list", "--tasks", str(folder)]) == 2
