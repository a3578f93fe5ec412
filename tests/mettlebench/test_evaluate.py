"""Verdicts: complete, stable, and never made by an evaluator at fault."""

from __future__ import annotations

import os
import resource
from contextlib import ExitStack
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mettlebench.errors import EvaluatorError
from mettlebench.evaluate import evaluate
from mettlebench.sandbox import SandboxMode
from mettlebench.task import Task
from mettlebench.tree import copy_tree, tree_digest
from mettlebench.verdict import CriterionResult, decode_verdict, encode_verdict, make_verdict
from tests.mettlebench.conftest import with_evaluator


def test_a_finished_workspace_is_accepted_and_unchanged(sample: Task, finished: Path) -> None:
    before = tree_digest(finished)
    verdict = evaluate(sample, finished)
    assert verdict.accepted
    assert verdict.feedback is None
    assert verdict.progress == 1
    assert tree_digest(finished) == before


def test_equal_states_give_equal_bytes_in_both_modes(sample: Task, finished: Path, tmp_path: Path) -> None:
    (finished / "records/note.md").write_text("nothing")
    copy_tree(finished, tmp_path / "elsewhere" / "copy")
    first = encode_verdict(evaluate(sample, finished))
    assert encode_verdict(evaluate(sample, tmp_path / "elsewhere" / "copy")) == first
    assert encode_verdict(evaluate(sample, finished, mode=SandboxMode.NONE)) == first


def test_a_process_with_many_files_open_grades_like_any_other(sample: Task, finished: Path) -> None:
    if resource.getrlimit(resource.RLIMIT_NOFILE)[0] < 1500:
        pytest.skip("this machine lets a process open few files")
    with ExitStack() as held:
        for _ in range(1100):
            held.enter_context(open(os.devnull))
        assert evaluate(sample, finished).accepted


def test_only_the_first_failure_is_told_and_all_are_known(sample: Task, finished: Path) -> None:
    accepted = evaluate(sample, finished)
    (finished / "records/cancelled.csv").unlink()
    (finished / "records/summary.json").write_text("{}")
    verdict = evaluate(sample, finished, previous=accepted)
    assert [result.passed for result in verdict.results] == [True, False, True, False, False]
    assert verdict.first_failure == "C02"
    assert verdict.feedback == sample.criterion("C02").feedback
    assert verdict.prefix == 1
    assert verdict.regressions == ("C02", "C04", "C05")


FIVE = st.lists(st.booleans(), min_size=5, max_size=5)


@given(now=FIVE, before=FIVE)
def test_prefix_and_regressions_are_what_the_words_say(
    sample: Task, now: list[bool], before: list[bool]
) -> None:
    earlier = make_verdict(sample, _results(before))
    verdict = make_verdict(sample, _results(now), earlier)
    assert verdict.accepted == all(now)
    assert verdict.prefix == next((n for n, held in enumerate(now) if not held), 5)
    assert len(verdict.regressions) == sum(b and not n for b, n in zip(before, now, strict=True))
    assert decode_verdict(encode_verdict(verdict)) == verdict


@pytest.mark.parametrize("data", [b"", b"[]", b"{}", b'{"format": 1}', b'{"format": 2}', b"\xff"])
def test_what_is_no_verdict_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"verdict|Expecting|utf-8"):
        decode_verdict(data)


HEAD = "import os, sys\nfrom mettlebench.check import fail\n"


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("raise OSError('broken')\nCHECKS = {}", "ends without a report"),
        ("def c(w): return 1 // 0\nCHECKS = {f'C0{n}': c for n in range(1, 6)}", "ends without a report"),
        ("syntax error", "ends without a report"),
        ("CHECKS = {'C01': lambda w: None}", "the checklist has C01, C02"),
        ("CHECKS = {}", "the checklist has C01, C02"),
        ("sys.exit(0)", "ends without a report"),
        ("os.write(int(sys.argv[1]), b'all fine\\n')\nCHECKS = {}", "answers garbage"),
        ("os.write(int(sys.argv[1]), b'[1]\\n')\nCHECKS = {}", "answers garbage"),
        ('os.write(int(sys.argv[1]), b\'{"op": "report"}\\n\')\nCHECKS = {}', "no list of outcomes"),
        ('os.write(int(sys.argv[1]), b\'{"op": "pass"}\\n\')\nCHECKS = {}', "which nobody knows"),
        ('os.write(int(sys.argv[1]), b\'{"op": "run", "scratch": 7}\\n\')', "cannot be understood"),
        ("os.close(int(sys.argv[2]))\nos._exit(3)", "ends"),
    ],
)
def test_an_evaluator_at_fault_gives_no_verdict(
    task_copy: Path, finished: Path, source: str, said: str
) -> None:
    with pytest.raises(EvaluatorError) as caught:
        evaluate(with_evaluator(task_copy, HEAD + source), finished)
    assert said in str(caught.value)


def test_an_evaluator_that_hangs_is_ended(task_copy: Path, finished: Path) -> None:
    path = task_copy / "task.toml"
    path.write_text(path.read_text().replace("format = 1\n", "format = 1\nevaluation_seconds = 1\n"))
    task = with_evaluator(task_copy, "while True: pass")
    with pytest.raises(EvaluatorError, match="does not come to an end"):
        evaluate(task, finished)


def test_a_detail_that_cannot_be_written_down_is_escaped(task_copy: Path, finished: Path) -> None:
    source = HEAD + "def c(w): fail('\\ud800' * 900)\nCHECKS = {f'C0{n}': c for n in range(1, 6)}"
    verdict = evaluate(with_evaluator(task_copy, source), finished)
    assert decode_verdict(encode_verdict(verdict)) == verdict
    assert len(verdict.results[0].detail) == 300


def _results(passed: list[bool]) -> list[CriterionResult]:
    return [
        CriterionResult(id=f"C0{n}", category="correctness", passed=held, detail="")
        for n, held in enumerate(passed, start=1)
    ]
