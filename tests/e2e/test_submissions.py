"""Stories of submissions: accepted, sent back, given up; and verdicts that come from the log."""

from __future__ import annotations

import pytest

from agentrewind.records import Submission
from harness_adapters.scripted import ScriptedAnswer
from tests.e2e.laws import check_laws
from tests.e2e.stage import Stage
from tests.e2e.steps import back, look, shell, story, submit, work

pytestmark = pytest.mark.slow

ORDERED = """echo check >> $SIDE.checks
test -f first || { echo 'criterion: FIRST'; echo 'there is no first'; exit 1; }
test -f second || { echo 'criterion: SECOND'; echo "second is not there"; exit 3; }
"""


def test_without_a_check_the_first_submission_is_accepted(stage: Stage) -> None:
    stage.policy = story(work("a"), submit())
    ended = stage.start(strategy="continue")
    assert (ended.code, ended.result["state"], ended.result["submissions"]) == (0, "accepted", 1)
    assert stage.arrivals[0].request.tool_names == ("bash",)
    assert "backtrack" not in str(stage.arrivals[0].request.raw)


def test_verdicts_of_the_prefix_come_from_the_log(stage: Stage) -> None:
    stage.policy = story(
        work("a"),
        submit("s1"),
        work("b", "touch first"),
        work("c", "rm first; echo wrong > wrong"),
        submit("s2"),
        look(),
        back("c", "NOTE_A"),
        NOTE_A=[submit("s3"), work("d", "touch second"), submit("s4")],
    )
    ended = stage.start(check=ORDERED)
    assert (ended.code, ended.result["rewinds"], ended.result["submissions"]) == (0, 1, 4), ended.result
    assert [each.criterion for each in _verdicts(stage)] == ["FIRST", "FIRST", "SECOND", ""]
    assert [each.exit_code for each in _verdicts(stage)] == [1, 1, 3, 0]
    assert [each.repeated for each in _verdicts(stage)] == [1, 2, 1, 0]
    assert _checks(stage) == 4
    feedback = stage.arrivals[2].request.messages[-1]
    assert feedback["role"] == "user"
    assert "there is no first" in feedback["content"]
    assert "criterion:" not in feedback["content"]
    assert "backtrack_candidates" in feedback["content"]
    check_laws(stage)


def test_five_equal_failures_end_the_run_and_a_rewind_does_not_reset_their_count(stage: Stage) -> None:
    stage.policy = story(
        work("a"),
        submit("s1"),
        submit("s2"),
        work("b"),
        submit("s3"),
        look(),
        back("a", "NOTE_A"),
        NOTE_A=[work("c"), submit("s4"), submit("s5"), submit("never")],
    )
    ended = stage.start(check=ORDERED)
    assert (ended.code, ended.result["state"], ended.result["rewinds"]) == (1, "rejected", 1), ended.result
    assert [each.repeated for each in _verdicts(stage)] == [1, 2, 3, 4, 5]
    assert _checks(stage) == 5
    check_laws(stage)
    again = stage.resume()
    assert again.code == 2
    assert "finished (rejected)" in again.error[1]


def test_a_submission_beside_other_calls(stage: Stage) -> None:
    done = "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"
    stage.policy = story(
        ScriptedAnswer("say-both", [shell("echo x >> $SIDE; echo x"), shell(done), shell("echo y >> $SIDE")]),
        work("b", "touch first second"),
        submit(),
    )
    ended = stage.start(check=ORDERED)
    assert (ended.code, ended.result["submissions"]) == (0, 2)
    assert stage.marks == ["x", "b"]
    check_laws(stage)


def _verdicts(stage: Stage) -> tuple[Submission, ...]:
    return stage.timeline.submissions()


def _checks(stage: Stage) -> int:
    return len(stage.side.with_name("side.txt.checks").read_text().split())
