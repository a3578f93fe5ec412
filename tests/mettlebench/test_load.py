"""A malformed task is refused with file and line."""

from __future__ import annotations

from pathlib import Path

import pytest

from mettlebench.errors import TaskFormatError, UnknownTaskError
from mettlebench.load import load_task, read_task, task_ids
from mettlebench.steps import parse_steps, reference_steps, violation_steps
from mettlebench.task import Family, Task


def test_a_task_is_read_whole(sample: Task) -> None:
    assert sample.family is Family.OPERATE_SYSTEM
    assert [criterion.id for criterion in sample.criteria] == ["C01", "C02", "C03", "C04", "C05"]
    assert sample.criterion("C03").feedback.startswith("The order book")
    assert len(sample.structure.stages) == 4


@pytest.mark.parametrize(
    ("file", "old", "new", "said"),
    [
        (
            "task.toml",
            'family = "operate-system"',
            'family = "gardening"',
            "task.toml:4: family must be one of",
        ),
        ("task.toml", "format = 1", "format = 9", "task.toml:1: the task has format 9"),
        ("task.toml", "format = 1", "format = true", "task.toml:1: format must be a whole number"),
        ("task.toml", 'category = "bookkeeping"', "category = ", "task.toml:5: this is no TOML"),
        ("task.toml", 'category = "bookkeeping"', 'colour = "red"', "task.toml:5: unknown key 'colour'"),
        ("task.toml", 'licence = "Apache-2.0"', "", "task.toml:1: the file lacks 'licence'"),
        ("task.toml", 'id = "spoilt"', 'id = "other"', "but the folder is called 'spoilt'"),
        ("task.toml", 'fails = "C02"', 'fails = "C42"', "task.toml:10: no criterion is called 'C42'"),
        (
            "task.toml",
            'criteria = ["C03"]',
            'criteria = ["C33"]',
            "task.toml:26: no criterion is called 'C33'",
        ),
        ("task.toml", 'value = "sha256"', 'value = "md5"', "value must be one of sha256"),
        ("task.toml", 'pattern = \'"total"', 'pattern = \'("total"', "pattern is no regular expression"),
        ("checklist.toml", 'id = "C02"', 'id = "C20"', "checklist.toml:12: criteria are numbered in order"),
        (
            "checklist.toml",
            'category = "correctness"',
            'category = "luck"',
            "checklist.toml:5: category must be",
        ),
        ("checklist.toml", "[[criterion]]", "[[criteria]]", "checklist.toml"),
    ],
)
def test_what_is_malformed_is_said_with_file_and_line(
    task_copy: Path, file: str, old: str, new: str, said: str
) -> None:
    path = task_copy / file
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(TaskFormatError) as caught:
        read_task(task_copy)
    assert said in str(caught.value)


@pytest.mark.parametrize("file", ["build.py", "evaluate.py", "instruction.md", "checklist.toml", "task.toml"])
def test_a_missing_file_is_named(task_copy: Path, file: str) -> None:
    (task_copy / file).unlink()
    with pytest.raises(TaskFormatError, match=file):
        read_task(task_copy)


def test_a_checklist_of_four_is_too_short(task_copy: Path) -> None:
    path = task_copy / "checklist.toml"
    path.write_text(path.read_text().rpartition("[[criterion]]")[0])
    with pytest.raises(TaskFormatError, match="5 to 12 criteria, not 4"):
        read_task(task_copy)


def test_an_unknown_task_is_told_with_the_known_ones(sample: Task) -> None:
    with pytest.raises(UnknownTaskError, match="there are: sample"):
        load_task("simple", sample.folder.parent)
    assert task_ids(sample.folder.parent) == ("sample",)


def test_steps_are_marked_and_reused(sample: Task) -> None:
    reference = {step.name: step for step in reference_steps(sample)}
    violation = violation_steps(sample)
    assert reference["take them out of the book"].irreversible
    assert not reference["sum up"].irreversible
    assert violation[2] == reference["take them out of the book"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("echo early\n### step: a\n", ":1: this line stands before"),
        ("# nothing\n", "the script has no step"),
        ("### step: a\ntrue\n### stop: b\n", ":3: expected"),
        ("### use: elsewhere\n", ":1: no step is called 'elsewhere'"),
    ],
)
def test_a_malformed_script_is_told_with_its_line(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "violation.sh"
    path.write_text(text)
    with pytest.raises(TaskFormatError) as caught:
        parse_steps(path, {})
    assert said in str(caught.value)
