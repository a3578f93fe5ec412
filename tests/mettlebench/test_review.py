"""What is asked for a review, and what is made of the answer."""

from __future__ import annotations

import json

import pytest

from mettlebench.review import DIMENSIONS, ReviewError, parse_review, review_messages, review_task
from mettlebench.task import Task

SCORES = {name: {"score": 4, "remark": "fine"} for name in DIMENSIONS}
ANSWER = {"scores": SCORES, "practice": "yes, at closing time", "contrived": "nothing"}


@pytest.mark.parametrize("form", ["{}", "Here:\n```json\n{}\n```\n"])
def test_a_review_is_read_fenced_or_not(sample: Task, form: str) -> None:
    review = review_task(sample, model="any", ask=lambda _: form.replace("{}", json.dumps(ANSWER)))
    assert review.mean == 4
    assert review.practice == "yes, at closing time"


def test_the_reviewer_sees_checklist_documents_and_reference(sample: Task) -> None:
    text = review_messages(sample)[1]["content"]
    assert sample.criteria[1].feedback in text
    assert "Closing a quarter" in text
    assert "take them out of the book" in text


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "no",
        "{}",
        json.dumps({**ANSWER, "scores": {}}),
        json.dumps({**ANSWER, "scores": {**SCORES, "fair": {"score": 6}}}),
        json.dumps({**ANSWER, "scores": {**SCORES, "fair": 3}}),
    ],
)
def test_what_is_no_review_is_told(answer: str) -> None:
    with pytest.raises(ReviewError, match="cannot be understood"):
        parse_review("sample", answer)
