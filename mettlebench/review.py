"""Lets a model read a task as an adversary would, and takes down its scores; nothing is decided by them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mettlebench.errors import MettleBenchError
from mettlebench.task import Task

DIMENSIONS = {
    "natural": "the assignment reads as one colleague would write it to another",
    "grounded": "documents, tools and data of the workspace look like those of such a project",
    "fair": "everything that is checked can be known from the assignment and the workspace",
    "uncontrived": "nothing misbehaves, hides or waits for the sole purpose of being difficult",
    "ordered": "the order matters because of what ordinary tools do",
    "solvable": "a careful engineer gets through in one pass",
    "feedback": "what is told after a rejection helps and gives no remedy away",
    "checkable": "the criteria accept any honest solution and no pretended one",
}
REQUEST_SECONDS = 600

Ask = Callable[[Sequence[Mapping[str, str]]], str]


class ReviewError(MettleBenchError):
    """The model's answer is no review."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Review:
    """Scores from 1 to 5 with a remark each, and the two questions that every review answers."""

    task_id: str
    scores: Mapping[str, tuple[int, str]]
    practice: str
    contrived: str

    @property
    def mean(self) -> float:
        return sum(score for score, _ in self.scores.values()) / len(self.scores)

    def document(self) -> dict[str, Any]:
        """The review as JSON."""
        return {
            "id": self.task_id,
            "mean": round(self.mean, 2),
            "scores": {
                name: {"score": score, "remark": remark} for name, (score, remark) in self.scores.items()
            },
            "practice": self.practice,
            "contrived": self.contrived,
        }


def review_task(task: Task, *, model: str, ask: Ask | None = None) -> Review:
    """Ask for one review. Raises ReviewError where there is no answer or it cannot be understood."""
    answer = (ask or _asking(model))(review_messages(task))
    return parse_review(task.id, answer)


def review_messages(task: Task) -> list[dict[str, str]]:
    """The conversation that asks for a review."""
    dimensions = "\n".join(f"- {name}: {meaning}" for name, meaning in DIMENSIONS.items())
    system = (
        "You review assignments of a benchmark for coding agents, and you are hard to please: look for "
        "reasons to turn this one down. Score each dimension from 1 (unacceptable) to 5 (flawless):\n"
        f"{dimensions}\n"
        "Also answer two questions. Practice: does this match something that goes wrong in ordinary "
        "engineering, and where? Contrived: is any mechanism in it made up to trip an agent, and which?\n"
        'Answer with one JSON object and nothing else: {"scores": {NAME: {"score": 1-5, "remark": "one '
        'sentence"}, …}, "practice": "…", "contrived": "…"}'
    )
    return [{"role": "system", "content": system}, {"role": "user", "content": _dossier(task)}]


def _dossier(task: Task) -> str:
    checklist = "\n".join(
        f"{each.id} ({each.category.value}): {each.intent}\n  feedback: {each.feedback}"
        for each in task.criteria
    )
    documents = "\n\n".join(
        f"--- {path.relative_to(task.folder).as_posix()}\n"
        f"{path.read_text(encoding='utf-8', errors='replace')}"
        for path in sorted((task.folder / "workspace").rglob("*.md"))
    )
    reference = (task.folder / "reference.sh").read_text(encoding="utf-8")
    return (
        f"# Assignment\n{task.instruction}\n# Hidden checklist\n{checklist}\n\n# Documents in the workspace\n"
        f"{documents}\n\n# Reference\n{reference}\n# The run that ignores the order fails at "
        f"{task.violation.fails}\n{task.violation.why}\n"
    )


def parse_review(task_id: str, answer: str) -> Review:
    """The review in a model's answer, fenced or not."""
    begin, end = answer.find("{"), answer.rfind("}")
    try:
        document = json.loads(answer[begin : end + 1])
        scores = {name: _score(document["scores"][name]) for name in DIMENSIONS}
        practice, contrived = str(document["practice"]), str(document["contrived"])
    except (ValueError, KeyError, TypeError) as error:
        raise ReviewError(
            f"the review of {task_id} cannot be understood ({error!r}); ask again or ask another model; the "
            f"answer began: {answer[:200]!r}"
        ) from error
    return Review(task_id=task_id, scores=scores, practice=practice, contrived=contrived)


def _score(document: Mapping[str, Any]) -> tuple[int, str]:
    score = document["score"]
    if type(score) is not int or not 1 <= score <= 5:
        raise ValueError(f"a score is a whole number from 1 to 5, not {score!r}")
    return score, str(document.get("remark", ""))


def _asking(model: str) -> Ask:
    try:
        import litellm
    except ImportError as error:
        raise ReviewError("a review needs litellm: pip install 'agentrewind[mini]'") from error

    def ask(messages: Sequence[Mapping[str, str]]) -> str:
        try:
            answer = litellm.completion(
                model=model, messages=list(messages), temperature=0.0, timeout=REQUEST_SECONDS
            )
        # litellm's errors have no common root of their own
        except Exception as error:
            raise ReviewError(f"{model} cannot be asked: {error}") from error
        return str(answer.choices[0].message.content)

    return ask
