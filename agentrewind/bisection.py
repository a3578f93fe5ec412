"""Finds the first state of a path that a check rejects. Pure: it is given a way to judge a state."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import pairwise

from agentrewind.path_states import State


class Outcome(StrEnum):
    """What a bisection came to."""

    FOUND = "found"
    FAILS_AT_START = "fails_at_start"
    NEVER_FAILS = "never_fails"


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """What the check said of a state.

    Attributes:
        exit_code: None where it ran out of time; negative where a signal ended it.
        said: the last line that it printed.
    """

    passed: bool
    exit_code: int | None
    said: str = ""
    seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Bisection:
    """What was found.

    Attributes:
        first: the first state that fails; only where the outcome is `found`.
        judged: every state that was judged, oldest first.
        turns: after how many judged states the check turned from failing to passing. More than none: it is
            not monotone, and a search by halves would have depended on where it looked.
        complete: every state was judged.
    """

    outcome: Outcome
    first: State | None
    judged: tuple[tuple[State, Judgement], ...]
    turns: int
    complete: bool


def bisect(states: Sequence[State], judge: Callable[[State], Judgement], *, every: bool = False) -> Bisection:
    """The first state that fails after one that passes.

    By halves between the first state and the last one, taking it that a check which fails goes on failing;
    with `every` each state is judged in order, and nothing is taken for granted. `states` holds at least
    one, oldest first.
    """
    search = _Search(states, judge)
    if every:
        for place in range(len(states)):
            search.passes(place)
        return search.result(search.first_failing())
    if not search.passes(0) or search.passes(len(states) - 1):
        return search.result(search.first_failing())
    good, bad = 0, len(states) - 1
    while bad - good > 1:
        middle = (good + bad) // 2
        if search.passes(middle):
            good = middle
        else:
            bad = middle
    return search.result(bad)


@dataclass(slots=True)
class _Search:
    states: Sequence[State]
    judge: Callable[[State], Judgement]
    judged: dict[int, Judgement] = field(default_factory=dict)

    def passes(self, place: int) -> bool:
        if place not in self.judged:
            self.judged[place] = self.judge(self.states[place])
        return self.judged[place].passed

    def first_failing(self) -> int | None:
        return min((place for place, found in self.judged.items() if not found.passed), default=None)

    def result(self, first: int | None) -> Bisection:
        outcome = Outcome.NEVER_FAILS if first is None else Outcome.FOUND if first else Outcome.FAILS_AT_START
        order = sorted(self.judged)
        passed = [self.judged[place].passed for place in order]
        return Bisection(
            outcome=outcome,
            first=self.states[first] if first else None,
            judged=tuple((self.states[place], self.judged[place]) for place in order),
            turns=sum(not one and other for one, other in pairwise(passed)),
            complete=len(order) == len(self.states),
        )
