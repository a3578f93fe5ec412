"""The check of a submission with real commands, and the count of failures alike."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentrewind.errors import AgentRewindError, HarnessError
from agentrewind.options import REPEATED_FAILURES
from agentrewind.records import RecordUid, Submission
from agentrewind.submission import Verdict, accept_all, feedback_text, repeated, run_check

AT = "2026-01-31T08:00:00.123Z"


def submission(verdict: Verdict, count: int) -> Submission:
    return Submission(
        record_uid=RecordUid(f"rec_{count:06d}"),
        accepted=verdict.accepted,
        exit_code=verdict.exit_code,
        criterion=verdict.criterion,
        feedback=verdict.feedback,
        repeated=count,
        at=AT,
    )


def test_exit_zero_accepts_whatever_is_printed(tmp_path: Path) -> None:
    verdict = run_check("echo 'criterion: C1'; echo fine", workspace=tmp_path)
    assert verdict == Verdict(accepted=True, exit_code=0, criterion="", feedback="fine")


def test_the_check_runs_in_the_workspace_without_input(tmp_path: Path) -> None:
    (tmp_path / "result").write_text("3")
    assert run_check("test $(cat result) = 3 && ! read line", workspace=tmp_path).accepted


def test_a_first_line_names_the_criterion_and_is_no_feedback(tmp_path: Path) -> None:
    verdict = run_check("echo ' Criterion:  C2 index '; echo missing >&2; exit 3", workspace=tmp_path)
    assert verdict == Verdict(accepted=False, exit_code=3, criterion="C2 index", feedback="missing")


def test_only_the_first_line_names_one(tmp_path: Path) -> None:
    verdict = run_check("echo missing; echo 'criterion: C2'; exit 1", workspace=tmp_path)
    assert verdict.criterion.startswith("output ")
    assert verdict.feedback == "missing\ncriterion: C2"


@given(st.sampled_from([code for code in range(1, 256) if code != 125]) | st.just(125))
def test_one_code_alone_says_that_the_check_itself_has_failed(
    tmp_path_factory: pytest.TempPathFactory, code: int
) -> None:
    place = tmp_path_factory.getbasetemp()
    if code == 125:
        with pytest.raises(HarnessError, match="the evaluator is gone"):
            run_check("echo the evaluator is gone; exit 125", workspace=place)
    else:
        assert not run_check(f"exit {code}", workspace=place).accepted


def test_equal_output_is_the_same_failure_and_other_output_is_not(tmp_path: Path) -> None:
    one, same, other = (
        run_check(f"echo {text}; exit 1", workspace=tmp_path) for text in ("missing", "missing", "wrong")
    )
    assert one.criterion == same.criterion != other.criterion


def test_an_empty_criterion_counts_by_output(tmp_path: Path) -> None:
    one, other = (run_check(f"echo criterion:; echo {text}; exit 1", workspace=tmp_path) for text in "ab")
    assert one.criterion != other.criterion
    assert one.feedback == "a"


def test_silence_is_told_with_the_exit_code(tmp_path: Path) -> None:
    verdict = run_check("exit 7", workspace=tmp_path)
    assert not verdict.accepted
    assert "7" in verdict.feedback


@pytest.mark.parametrize(("number", "name"), [(9, "SIGKILL"), (40, "signal 40")])
def test_a_check_that_is_killed_rejects_and_says_by_what(tmp_path: Path, number: int, name: str) -> None:
    verdict = run_check(f"kill -{number} $$", workspace=tmp_path)
    assert not verdict.accepted
    assert verdict.exit_code == -number
    assert name in verdict.feedback


def test_a_command_that_is_not_there_rejects_with_the_shells_words(tmp_path: Path) -> None:
    verdict = run_check("no-such-check", workspace=tmp_path)
    assert verdict.exit_code == 127
    assert "no-such-check" in verdict.feedback


def test_output_that_is_no_text_is_shown_with_marks(tmp_path: Path) -> None:
    verdict = run_check(r"printf 'criterion: C1\n\377\376 bad\n'; exit 1", workspace=tmp_path)
    assert verdict.criterion == "C1"
    assert verdict.feedback == "\ufffd\ufffd bad"


def test_huge_output_is_cut_and_its_end_still_tells_failures_apart(tmp_path: Path) -> None:
    command = "echo 'criterion: C1'; head -c 30000000 /dev/zero | tr '\\0' x; echo {}; exit 1"
    verdict = run_check(command.format("end"), workspace=tmp_path)
    assert verdict.criterion == "C1"
    assert len(verdict.feedback) < 25_000
    assert "cut" in verdict.feedback
    unnamed = "head -c 3000000 /dev/zero | tr '\\0' x; echo {}; exit 1"
    one, other = (run_check(unnamed.format(end), workspace=tmp_path) for end in ("a", "b"))
    assert one.criterion != other.criterion


def test_a_server_that_the_check_leaves_running_holds_nothing_up(tmp_path: Path) -> None:
    began = time.monotonic()
    verdict = run_check("echo started; sleep 5 & exit 1", workspace=tmp_path)
    assert verdict.feedback == "started"
    assert time.monotonic() - began < 3


def test_a_workspace_that_is_gone_is_an_error_of_ours(tmp_path: Path) -> None:
    with pytest.raises(AgentRewindError, match="gone"):
        run_check("true", workspace=tmp_path / "gone")


def test_without_a_check_everything_is_accepted() -> None:
    assert accept_all().accepted


_verdicts = st.one_of(
    st.just(accept_all()),
    st.sampled_from("ABC").map(
        lambda name: Verdict(accepted=False, exit_code=1, criterion=name, feedback=name)
    ),
)


@given(st.lists(_verdicts, max_size=12))
def test_the_count_is_that_of_the_last_run_of_equal_rejections(verdicts: list[Verdict]) -> None:
    history: list[Submission] = []
    for verdict in verdicts:
        count = repeated(verdict, history)
        history.append(submission(verdict, count))
        if verdict.accepted:
            assert count == 0
            continue
        row = 0
        for each in reversed(history):
            if each.accepted or each.criterion != verdict.criterion:
                break
            row += 1
        assert count == row


def test_other_feedback_for_the_same_criterion_does_not_begin_a_new_count() -> None:
    history: list[Submission] = []
    for number in range(REPEATED_FAILURES):
        verdict = Verdict(accepted=False, exit_code=number + 1, criterion="C1", feedback=f"try {number}")
        history.append(submission(verdict, repeated(verdict, history)))
    assert [each.repeated for each in history] == [1, 2, 3, 4, 5]


def test_feedback_asks_for_a_decision_only_where_there_is_one() -> None:
    rejected = submission(Verdict(accepted=False, exit_code=1, criterion="C1", feedback="no index"), 2)
    with_tools = feedback_text(rejected, can_rewind=True)
    assert "no index" in with_tools
    assert "backtrack_candidates" in with_tools
    assert f"2 times in a row; the run ends at {REPEATED_FAILURES}" in with_tools
    assert "backtrack" not in feedback_text(rejected, can_rewind=False)
