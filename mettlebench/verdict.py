"""What an evaluation says about one state of a workspace, and its canonical JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mettlebench.task import Task


@dataclass(frozen=True, slots=True, kw_only=True)
class CriterionResult:
    """One criterion's outcome; `detail` says what was seen, for logs and people, never for the agent."""

    id: str
    category: str
    passed: bool
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """All outcomes in their fixed order. `feedback` is all that an agent is told.

    Attributes:
        prefix: how many criteria hold before the first that does not.
        regressions: ids that held in the verdict before and do not hold now.
        ordered: the criteria follow one another; without an order progress is the share that holds.
    """

    task_id: str
    results: tuple[CriterionResult, ...]
    first_failure: str | None
    feedback: str | None
    regressions: tuple[str, ...]
    ordered: bool = True

    @property
    def accepted(self) -> bool:
        return self.first_failure is None

    @property
    def prefix(self) -> int:
        for number, result in enumerate(self.results):
            if not result.passed:
                return number
        return len(self.results)

    @property
    def progress(self) -> float:
        """The longest satisfied prefix as a share of all criteria, or all that hold where no order is."""
        return (self.prefix if self.ordered else self.passed) / len(self.results)

    @property
    def passed(self) -> int:
        return sum(result.passed for result in self.results)


def make_verdict(task: Task, results: Sequence[CriterionResult], previous: Verdict | None = None) -> Verdict:
    """The verdict of these outcomes, in the order of the task's checklist."""
    first = next((result.id for result in results if not result.passed), None)
    held = {result.id for result in previous.results if result.passed} if previous else set()
    return Verdict(
        task_id=task.id,
        results=tuple(results),
        first_failure=first,
        feedback=task.criterion(first).feedback if first else None,
        regressions=tuple(result.id for result in results if not result.passed and result.id in held),
    )


def encode_verdict(verdict: Verdict) -> bytes:
    """One line of JSON; equal verdicts give equal bytes."""
    document = {
        "format": 1,
        "task": verdict.task_id,
        "accepted": verdict.accepted,
        "first_failure": verdict.first_failure,
        "feedback": verdict.feedback,
        "prefix": verdict.prefix,
        "total": len(verdict.results),
        "progress": round(verdict.progress, 6),
        "passed": verdict.passed,
        "regressions": list(verdict.regressions),
        **({} if verdict.ordered else {"ordered": False}),
        "criteria": [
            {
                "id": result.id,
                "category": result.category,
                "passed": result.passed,
                "detail": result.detail,
            }
            for result in verdict.results
        ],
    }
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def decode_verdict(data: bytes) -> Verdict:
    """The verdict that these bytes encode; raises ValueError where they do not."""
    try:
        document = json.loads(data)
        if not isinstance(document, dict) or document["format"] != 1:
            raise ValueError("this is no verdict of format 1")
        return Verdict(
            task_id=_text(document["task"]),
            results=tuple(_result(each) for each in document["criteria"]),
            first_failure=_text_or_none(document["first_failure"]),
            feedback=_text_or_none(document["feedback"]),
            regressions=tuple(_text(each) for each in document["regressions"]),
            ordered=document.get("ordered", True) is True,
        )
    except (KeyError, TypeError, UnicodeDecodeError) as error:
        raise ValueError(f"this is no verdict: {error!r}") from error


def _result(document: Mapping[str, Any]) -> CriterionResult:
    if not isinstance(document["passed"], bool):
        raise TypeError("passed is no boolean")
    return CriterionResult(
        id=_text(document["id"]),
        category=_text(document["category"]),
        passed=document["passed"],
        detail=_text(document["detail"]),
    )


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is no text")
    return value


def _text_or_none(value: object) -> str | None:
    return None if value is None else _text(value)
