"""Follows the progress of a run node by node: where it lost ground, and from where it was hopeless."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

from runner.result import Progress, Result


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """After `nodes` nodes the prefix fell from `before` to `after`; `regained` if it was that high again."""

    nodes: int
    before: int
    after: int
    regained: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """The story of one run.

    Attributes:
        steps: one point per change of the prefix, the first at the start, the last at the end of the run.
        peak: the longest prefix, and after how many nodes it was first reached.
        losses: every fall, in order.
        hopeless: of a failed run: after how many nodes it first lost what it never held again; None where it
            lost nothing for good.
    """

    steps: tuple[Progress, ...]
    peak: Progress
    losses: tuple[Loss, ...]
    hopeless: int | None


def steps_of(result: Result) -> tuple[Progress, ...]:
    """The prefix over trace length: graded after each node, or, where it was not, at submissions alone."""
    points = list(result.progress)
    if not points:
        points = [Progress(nodes=each.nodes, prefix=each.prefix) for each in result.submissions]
    points.append(Progress(nodes=result.nodes, prefix=result.prefix))
    if points[0].nodes > 0:
        points.insert(0, Progress(nodes=0, prefix=0))
    points.sort(key=lambda point: point.nodes)
    kept: list[Progress] = []
    for point in points:
        if kept and kept[-1].nodes == point.nodes:
            kept.pop()
        if not kept or kept[-1].prefix != point.prefix or point.nodes == result.nodes:
            kept.append(point)
    return tuple(kept)


def ground_of(result: Result) -> Ground:
    """Follow one run."""
    steps = steps_of(result)
    peak = max(steps, key=lambda point: (point.prefix, -point.nodes))
    losses = []
    for place, (before, after) in enumerate(itertools.pairwise(steps), start=1):
        if after.prefix < before.prefix:
            again = any(point.prefix >= before.prefix for point in steps[place + 1 :])
            losses.append(Loss(nodes=after.nodes, before=before.prefix, after=after.prefix, regained=again))
    lost = [loss.nodes for loss in losses if not loss.regained]
    return Ground(
        steps=steps,
        peak=peak,
        losses=tuple(losses),
        hopeless=lost[0] if lost and not result.success else None,
    )
