"""The simulated agent: chooses its next command from the conversation, a task's own scripts and seeded draws.

It works through the reference steps of the task, or, where it is careless, through those of the
order-violating run, submits, and then repairs, or goes back to before its mistake, as its tools allow.
Where it stands it reads from its own calls in the conversation, which a rewind shortens; which order it
takes it draws anew for each line of work, by how many failed ones it knows of, from notes or experiences.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from harness_adapters.demo.forms import Called, Form, form_of
from harness_adapters.demo.steps import BASH
from harness_adapters.demo.steps import SUBMIT as SUBMITTING
from harness_adapters.scripted_answer import ScriptedAnswer
from harness_adapters.scripted_policy import NoAnswerError, Policy
from harness_adapters.scripted_request import JsonMap, ScriptedRequest, text_of
from mettlebench.steps import Step, reference_steps, violation_steps
from mettlebench.task import Task
from runner.experiences import HEADING
from runner.recovery_text import MARK
from runner.simulation.profile import Profile, draw

CANDIDATES = "backtrack_candidates"
COMMIT = "backtrack_commit"
SUBMIT = SUBMITTING.command

LESSON = "simulated note: do the work in the order in which it is described"
"""The sentence by which the agent knows its own note."""

_TRIES = 20
_NOTE = re.compile(rf"^\[\d+\] {re.escape(LESSON)}", re.MULTILINE)
_ATTEMPT = re.compile(r"^### Attempt \d+$", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plans:
    """What the agent knows of its task: two orders of work, and where they part."""

    right: tuple[str, ...]
    wrong: tuple[str, ...]

    @property
    def parting(self) -> int:
        """The first command that differs: the place to go back to."""
        pairs = enumerate(zip(self.right, self.wrong, strict=False))
        return next((index for index, (one, other) in pairs if one != other), 0)


def plans_of(task: Task) -> Plans:
    """The two orders of a task, each step as one command."""
    return Plans(
        right=tuple(map(command_of, reference_steps(task))),
        wrong=tuple(map(command_of, violation_steps(task))),
    )


def command_of(step: Step) -> str:
    """A step as an agent would call it."""
    return f"set -euo pipefail\n{step.script.strip()}\n"


def agent_policy(plans: Plans, profile: Profile, seed: int) -> Policy:
    """The policy of one simulated agent on one task; equal seeds make equal choices under every strategy."""

    def answer(request: ScriptedRequest) -> ScriptedAnswer:
        form = form_of(request)
        calls = form.calls(request)
        back = _times_back(calls)
        failed = len(back) + _notes(request) + _experiences(request)
        if back:
            # the conversation still holds what was abandoned: only the files went back
            calls = [*calls[: plans.parting], *calls[back[-1] + 1 :]]
        choice = _Choice(plans, profile, seed, failed=failed)
        can_rewind = form.offers(request) >= {CANDIDATES, COMMIT}
        moves = choice.moves(can_rewind=can_rewind)
        if not failed and (before := _answers_before_recovery(request)) is not None:
            moves = [*([""] * before), *choice.recovery(can_rewind=can_rewind)]
        return _say(form, moves, calls, plans)

    return answer


class _Choice:
    """What the agent does in a line of work, given how many failed ones it knows of when it begins it.

    How it knows makes no difference to what is drawn: notes of its own, experiences of other attempts.
    """

    def __init__(self, plans: Plans, profile: Profile, seed: int, *, failed: int) -> None:
        self._plans = plans
        learned = failed > 0 and draw(seed, "learn", failed) < profile.learn
        mistaken = draw(seed, "early", failed) < profile.early
        self.wrong = mistaken and not learned
        self._slips = failed == 0 and draw(seed, "slip") < profile.slip

    def moves(self, *, can_rewind: bool) -> list[str]:
        """Every move from the beginning: steps, submissions, tools of the layer by their names."""
        right = self._plans.right
        steps = self._plans.wrong if self.wrong else right
        first = [*steps[:-1], SUBMIT, steps[-1]] if self._slips else list(steps)
        back = [CANDIDATES, COMMIT] if can_rewind and self.wrong else []
        # what a worker tries going forward: everything again in the right order, then the end of it
        return [*first, SUBMIT, *back, *right, SUBMIT, *([right[-1], SUBMIT] * _TRIES)]

    def recovery(self, *, can_rewind: bool) -> list[str]:
        """Every move after a failed line of work, for which it is told to find another approach."""
        right = self._plans.right
        back = [CANDIDATES, COMMIT] if can_rewind and self.wrong else []
        return [*back, *right, SUBMIT, *([right[-1], SUBMIT] * _TRIES)]


def _say(form: Form, moves: Sequence[str], calls: Sequence[Called], plans: Plans) -> ScriptedAnswer:
    place = len(calls)
    if place >= len(moves):
        raise NoAnswerError(f"the simulation has no move after {place} calls")
    move, text = moves[place], _text(place)
    if move == CANDIDATES:
        return form.say(text, CANDIDATES, {"reason": "The last submission was rejected."})
    if move == COMMIT:
        return form.say(text, COMMIT, _target(calls[-1].result or "", plans))
    return form.say(text, BASH, {"command": move})


def _text(place: int) -> str:
    return f"Simulated answer {place + 1}."


def _target(candidates: str, plans: Plans) -> Mapping[str, str]:
    """Where to go back to: the answer that took the first step of the wrong order."""
    try:
        entries = json.loads(candidates)["candidates"]
        said = _text(plans.parting)
        fitting = [str(each["record_uid"]) for each in entries if each["summary"].startswith(said)]
    except (ValueError, KeyError, TypeError) as error:
        raise NoAnswerError(f"the candidates cannot be read ({error!r})") from error
    if not fitting:
        raise NoAnswerError(f"no candidate is called {_text(plans.parting)!r}")
    return {"record_uid": fitting[-1], "memory_summary": LESSON}


def _times_back(calls: Sequence[Called]) -> list[int]:
    """Where the commits stand that came back as ordinary results, no refusals: the context was kept."""
    return [n for n, call in enumerate(calls) if call.name == COMMIT and '"error"' not in (call.result or "")]


def _notes(request: ScriptedRequest) -> int:
    """How many notes of its own the memory holds; where candidates repeat them they do not count."""
    return max((len(_NOTE.findall(text_of(message))) for message in _told(request)), default=0)


def _answers_before_recovery(request: ScriptedRequest) -> int | None:
    """How many answers came before the message that told of a failed line of work; None without one."""
    answers = 0
    for message in request.messages:
        if message.get("role") == "assistant":
            answers += 1
        elif MARK in text_of(message):
            return answers
    return None


def _experiences(request: ScriptedRequest) -> int:
    """How many failed attempts the task tells of."""
    return max(
        (len(_ATTEMPT.findall(text)) for message in _told(request) if HEADING in (text := text_of(message))),
        default=0,
    )


def _told(request: ScriptedRequest) -> Iterator[JsonMap]:
    """The messages that are neither the agent's own nor a tool's."""
    return (message for message in request.messages if message.get("role") in ("system", "user"))


def monitor_policy(profile: Profile, seed: int) -> Policy:
    """The policy of a simulated monitor: blocks and garbles by seeded draws on the action's text."""

    def answer(request: ScriptedRequest) -> ScriptedAnswer:
        action = text_of(request.messages[-1]).rpartition("## The proposed action")[2]
        if draw(seed, "garble", action) < profile.garble:
            return ScriptedAnswer("I would rather not say.")
        blocked = draw(seed, "block", action) < profile.block
        decision = {"decision": "UNSAFE" if blocked else "SAFE", "reason": "simulated"}
        return ScriptedAnswer(json.dumps(decision))

    return answer


def by_model(policies: Mapping[str, Policy]) -> Policy:
    """One server for several models: each name has its policy."""

    def answer(request: ScriptedRequest) -> ScriptedAnswer:
        found = policies.get(request.model)
        if found is None:
            raise NoAnswerError(f"no simulated model is called {request.model!r}")
        return found(request)

    return answer
