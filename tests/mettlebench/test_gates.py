"""A task that is unfit is found out, and why is said."""

from __future__ import annotations

from pathlib import Path

import pytest

from mettlebench.gates import gate
from mettlebench.lint import feedback_faults, lint_task
from mettlebench.load import read_task
from mettlebench.task import Task


def test_the_scaffold_passes(sample: Task) -> None:
    assert gate(sample).faults == ()


def change(folder: Path, file: str, old: str, new: str) -> Task:
    path = folder / file
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    return read_task(folder)


@pytest.mark.parametrize(
    ("file", "old", "new", "said"),
    [
        ("reference.sh", "closed at a total of $total", "closed", "reference: does not satisfy C05"),
        (
            "reference.sh",
            "cat docs/handbook.md",
            "cat docs/nowhere.md",
            "step 'read the handbook', ended with 1",
        ),
        ("task.toml", 'fails = "C02"', 'fails = "C03"', "violation: fails first at C02"),
        (
            "violation.sh",
            "### use: take them out of the book\n### use: sum up\n",
            "",
            "violation: fails first at C03",
        ),
        (
            "build.py",
            "def build(craft: Craft) -> None:",
            "import os\ndef build(craft: Craft) -> None:\n    craft.write('x', os.urandom(8))",
            "two builds of the workspace differ",
        ),
        ("build.py", "craft.csv(", "craft.nothing(", "the builder of spoilt ends with 1"),
        ("evaluate.py", "    note = work.text", "    return\n    note = work.text", ""),
        (
            "evaluate.py",
            'require(need(summary, "orders", int)',
            'require(summary["orders"]',
            "garbage (numbers)",
        ),
        ("evaluate.py", "from __future__ import annotations", "import time", "imports time, which may waver"),
        (
            "instruction.md",
            "list the cancelled orders",
            "list the cancelled orders (C02)",
            "names the criterion C02",
        ),
    ],
)
def test_what_makes_a_task_unfit_is_said(task_copy: Path, file: str, old: str, new: str, said: str) -> None:
    faults = gate(change(task_copy, file, old, new)).faults
    assert any(said in fault for fault in faults) if said else not faults


def test_a_task_that_is_done_when_handed_out_is_unfit(task_copy: Path) -> None:
    (task_copy / "evaluate.py").write_text(
        '"""'
        + read_task(task_copy).canary
        + '"""\nCHECKS = {f"C0{n}": (lambda work: None) for n in range(1, 6)}\n'
        + "#\n" * 20
    )
    faults = gate(read_task(task_copy)).faults
    assert "shipped workspace: is accepted as it is handed out" in faults
    assert "violation: is accepted; C02 should fail" in faults
    assert any("in place of every deliverable is accepted" in fault for fault in faults)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('[[structure.quotes]]\nvalue = "sha256"', '[[structure.quotes]]\nvalue = "rows"', "does not quote"),
        ('"records/note.md"]', '"records/other.md"]', "the reference leaves no records/other.md"),
    ],
)
def test_a_declared_structure_has_to_be_there(task_copy: Path, old: str, new: str, said: str) -> None:
    faults = gate(change(task_copy, "task.toml", old, new)).faults
    assert any(said in fault for fault in faults)


def test_a_thin_structure_is_screened_out(task_copy: Path) -> None:
    text = (task_copy / "task.toml").read_text()
    head = text.partition("[[structure.stages]]")[0]
    (task_copy / "task.toml").write_text(head)
    said = "\n".join(finding.message for finding in lint_task(read_task(task_copy)))
    for part in (
        "at least 4 stages",
        "0 values of earlier stages",
        "2 defects repaired",
        "belongs to no stage",
    ):
        assert part in said


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (
            "The history was not rewritten by git filter-branch as it should have been.",
            "names the command git",
        ),
        ("The check in tools/scan.py still fails on some of the objects it is given.", "names the script"),
        ("Criterion C04 is not satisfied by the present state of this workspace.", "names the criterion C04"),
        ("The evaluator finds that the ledger does not have all of its rows yet.", "speaks of the evaluator"),
        ("Too short.", "has 10 characters"),
    ],
)
def test_feedback_gives_nothing_away(text: str, fault: str) -> None:
    assert any(fault in found for found in feedback_faults(text))


def test_good_feedback_is_left_alone() -> None:
    text = "The hand-off report does not yet say which of the recovered branches holds the work on refunds."
    assert feedback_faults(text) == []


@pytest.mark.parametrize("pipe", ["| head", "|head -n 2", "| grep -q x", "| grep -im1 x"])
def test_a_step_that_fails_by_chance_is_found(task_copy: Path, pipe: str) -> None:
    task = change(task_copy, "reference.sh", "head data/orders.csv", f"cat data/orders.csv {pipe}")
    assert any("fails by chance" in finding.message for finding in lint_task(task))


def test_a_step_that_reads_all_is_well(task_copy: Path) -> None:
    task = change(task_copy, "reference.sh", "head data/orders.csv", "cat data/orders.csv | sed -n 1,2p")
    assert lint_task(task) == []
