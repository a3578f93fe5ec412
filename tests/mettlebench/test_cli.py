"""The command line, as somebody types it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mettlebench.cli import run
from mettlebench.task import Task
from mettlebench.tree import tree_digest
from mettlebench.verdict import decode_verdict


def said(capsys: pytest.CaptureFixture[str], *arguments: str | Path, code: int = 0) -> str:
    assert run([str(each) for each in arguments]) == code
    return capsys.readouterr().out


def test_list_names_id_family_and_criteria(sample: Task, capsys: pytest.CaptureFixture[str]) -> None:
    folder = sample.folder.parent
    document = json.loads(said(capsys, "list", "--json", "--tasks", folder))
    assert document == [{"id": "sample", "family": "operate-system", "criteria": 5}]
    assert "1 tasks, 5 criteria" in said(capsys, "list", "--tasks", folder)


def test_show_keeps_the_checklist_hidden_unless_asked(
    sample: Task, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = sample.folder.parent
    feedback = sample.criteria[0].feedback
    assert feedback not in said(capsys, "show", "sample", "--tasks", folder)
    assert feedback in said(capsys, "show", "sample", "--hidden", "--tasks", folder)
    document = json.loads(said(capsys, "show", "sample", "--hidden", "--json", "--tasks", folder))
    assert document["violation"]["fails"] == "C02"


def test_build_and_grade(sample: Task, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder, workspace = sample.folder.parent, tmp_path / "ws"
    said(capsys, "build", "sample", workspace, "--tasks", folder)
    line = said(capsys, "grade", "sample", workspace, "--json", "--tasks", folder, code=1)
    verdict = decode_verdict(line.encode())
    assert (verdict.first_failure, verdict.prefix) == ("C01", 0)
    (tmp_path / "previous.json").write_text(line)
    told = said(
        capsys,
        *("grade", "sample", workspace, "--previous", tmp_path / "previous.json", "--tasks", folder),
        code=1,
    )
    assert f"feedback: {sample.criteria[0].feedback}" in told


def test_gate_and_lint(sample: Task, capsys: pytest.CaptureFixture[str]) -> None:
    folder = sample.folder.parent
    assert "1 of 1 tasks pass" in said(capsys, "gate", "--tasks", folder)
    assert json.loads(said(capsys, "lint", "--json", "--tasks", folder)) == []


def test_new_makes_a_task_and_never_writes_over_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said(capsys, "new", tmp_path / "mine")
    assert (tmp_path / "mine" / "task.toml").is_file()
    assert run(["new", str(tmp_path / "mine")]) == 2
    assert run(["new", str(tmp_path / "Not An Id")]) == 2
    assert not (tmp_path / "Not An Id").exists()


def test_paths_may_start_where_one_stands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    said(capsys, "new", "mine/sample")
    said(capsys, "build", "sample", "ws", "--tasks", "mine")
    assert "C01" in said(capsys, "grade", "sample", "ws", "--tasks", "mine", code=1)
    said(capsys, "build", "sample", "ws2", "--tasks", "mine", "--sandbox", "none")
    assert tree_digest(Path("ws")) == tree_digest(Path("ws2"))
    said(capsys, "export", "sample", "--tasks", "mine", "--format", "harbor", "--out", "out")
    assert Path("out/sample/environment/workspace.tar").is_file()


def test_what_goes_wrong_is_told_in_a_line(sample: Task, capsys: pytest.CaptureFixture[str]) -> None:
    folder = str(sample.folder.parent)
    for arguments, code in (
        (["show", "nowhere", "--tasks", folder], 2),
        (["list", "--tasks", "/nowhere"], 2),
        (["grade", "sample", "/nowhere", "--tasks", folder], 2),
        (["unknown"], 2),
    ):
        assert run(arguments) == code
        error = capsys.readouterr().err
        assert "Traceback" not in error
        assert error.strip()


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (["list", "--tasks", ""], "the path is empty"),
        (["list", "--tasks", "@"], "no task here"),
        (["list", "--tasks", "@/none"], "no folder of tasks"),
        (["build", "address-split", ""], "the path is empty"),
        (["show"], "Missing argument"),
        (["show", "x", "--loud"], "--loud"),
    ],
)
def test_wrong_usage_is_told_as_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], given: list[str], told: str
) -> None:
    assert run([each.replace("@", str(tmp_path)) for each in given]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.splitlines()[-1].startswith("error: ")
    assert told in printed.err
