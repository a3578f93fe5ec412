"""Progress node by node: losses, hopelessness and curves, against brute force."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from runner.report.curves import Point, progress_curve, success_curve
from runner.report.ground import ground_of, steps_of
from runner.result import Progress, Result
from tests.runner.reported import result

TOTAL = 6


@st.composite
def runs(draw: st.DrawFn) -> Result:
    """A run with any progress, graded after some of its nodes."""
    nodes = draw(st.integers(1, 30))
    places = sorted(draw(st.sets(st.integers(0, nodes), max_size=8)))
    points = [(place, draw(st.integers(0, TOTAL))) for place in places]
    prefix = points[-1][1] if points else draw(st.integers(0, TOTAL))
    return result(nodes=nodes, prefix=prefix, total=TOTAL, points=points)


def states(each: Result) -> list[int]:
    """The prefix after 0, 1, … nodes."""
    points = [(point.nodes, point.prefix) for point in each.progress] or [(each.nodes, each.prefix)]
    found = []
    for nodes in range(each.nodes + 1):
        held = [prefix for place, prefix in points if place <= nodes]
        found.append(held[-1] if held else 0)
    return found


@given(runs())
def test_steps_say_what_held_after_every_node(each: Result) -> None:
    steps = steps_of(each)
    for nodes, prefix in enumerate(states(each)):
        assert [step.prefix for step in steps if step.nodes <= nodes][-1] == prefix
    assert steps[0].nodes == 0
    assert steps[-1] == Progress(nodes=each.nodes, prefix=each.prefix)


@given(runs())
def test_losses_and_hopelessness_are_what_they_say(each: Result) -> None:
    held, ground = states(each), ground_of(each)
    falls = [n for n in range(1, len(held)) if held[n] < held[n - 1]]
    assert [loss.nodes for loss in ground.losses] == falls
    for loss in ground.losses:
        assert (loss.before, loss.after) == (held[loss.nodes - 1], held[loss.nodes])
        assert loss.regained == any(prefix >= loss.before for prefix in held[loss.nodes + 1 :])
    assert ground.peak == Progress(nodes=held.index(max(held)), prefix=max(held))
    for_good = [n for n in falls if max(held[n:]) < held[n - 1]]
    assert ground.hopeless == (for_good[0] if for_good and not each.success else None)


@given(st.lists(runs(), min_size=1, max_size=6))
@settings(max_examples=60)
def test_curves_are_means_over_runs_at_every_node(held: list[Result]) -> None:
    longest = max(each.nodes for each in held)
    for nodes in range(longest + 1):
        now = [states(each)[min(nodes, each.nodes)] for each in held]
        assert abs(at(progress_curve(held), nodes) - 100 * sum(now) / TOTAL / len(held)) < 1e-9
        solved = sum(prefix == TOTAL for prefix in now)
        assert abs(at(success_curve(held), nodes) - 100 * solved / len(held)) < 1e-9


def at(curve: list[Point], nodes: int) -> float:
    return [point.share for point in curve if point.nodes <= nodes][-1]


def test_submissions_stand_in_where_nothing_was_graded() -> None:
    each = result(nodes=40, prefix=3)
    assert steps_of(each) == (Progress(nodes=0, prefix=0), Progress(nodes=40, prefix=3))
