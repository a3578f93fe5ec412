"""Mean, sample deviation and range of a few numbers, and tertiles."""

from __future__ import annotations

import statistics
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeVar

Key = TypeVar("Key", bound=Hashable)
Number = int | float | Fraction


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """Of `count` numbers; `deviation` is the sample's (n - 1), None where there is one number alone."""

    count: int
    mean: float
    deviation: float | None
    low: float
    high: float


def spread(values: Sequence[Number]) -> Spread | None:
    """None where there is no number.

    >>> spread([1, 2, 3])
    Spread(count=3, mean=2.0, deviation=1.0, low=1.0, high=3.0)
    """
    if not values:
        return None
    exact = [Fraction(value) for value in values]
    return Spread(
        count=len(exact),
        mean=float(statistics.mean(exact)),
        deviation=float(statistics.stdev(exact)) if len(exact) > 1 else None,
        low=float(min(exact)),
        high=float(max(exact)),
    )


def tertiles(lengths: Mapping[Key, Number]) -> tuple[tuple[Key, ...], tuple[Key, ...], tuple[Key, ...]]:
    """The keys with the shortest, medium and longest lengths, in three groups as equal as can be.

    Equal lengths are ordered by the key's text; where three does not divide, the first groups are larger.
    """
    ordered = sorted(lengths, key=lambda key: (Fraction(lengths[key]), str(key)))
    size, rest = divmod(len(ordered), 3)
    first = size + (rest > 0)
    second = first + size + (rest > 1)
    return tuple(ordered[:first]), tuple(ordered[first:second]), tuple(ordered[second:])
