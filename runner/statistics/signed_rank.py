"""Wilcoxon's signed-rank test on paired differences, and Holm's correction of its p-values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedRank:
    """Of `pairs` differences `nonzero` count.

    `w` is the smaller of the two rank sums, `p` two-sided, and `effect` the matched-pairs rank-biserial
    correlation: 1 where every difference is positive. `p` and `effect` are None where no difference is left.
    """

    pairs: int
    nonzero: int
    w: float
    p: float | None
    effect: float | None


def signed_rank(differences: Sequence[Fraction | int]) -> SignedRank:
    """The test of these differences, taken exactly.

    Zero differences are dropped; ranks of equal ones are shared; the normal approximation has the variance
    corrected for ties and no correction for continuity. Raises TypeError for floats, whose ties are chance.
    """
    whole = _integers(differences)
    left = [value for value in whole if value]
    if not left:
        return SignedRank(pairs=len(whole), nonzero=0, w=0.0, p=None, effect=None)
    from scipy.stats import rankdata, wilcoxon

    test = wilcoxon(
        left, zero_method="wilcox", correction=False, alternative="two-sided", method="asymptotic"
    )
    ranks = rankdata([abs(value) for value in left])
    signed = sum(math.copysign(rank, value) for rank, value in zip(ranks, left, strict=True))
    return SignedRank(
        pairs=len(whole),
        nonzero=len(left),
        w=float(test.statistic),
        p=float(test.pvalue),
        effect=float(signed / sum(ranks)),
    )


def _integers(differences: Sequence[Fraction | int]) -> list[int]:
    for value in differences:
        if not isinstance(value, Fraction | int):
            raise TypeError(f"{value!r} is no fraction: floats would break ties")
    sizes = sorted({abs(Fraction(value)) for value in differences} - {Fraction(0)})
    ranked = {size: rank for rank, size in enumerate(sizes, start=1)}
    # only signs and the order of sizes count, and small integers cannot overflow what ranks them
    return [0 if not each else ranked[abs(Fraction(each))] * (1 if each > 0 else -1) for each in differences]


def holm(values: Sequence[float]) -> list[float]:
    """Each p-value as Holm corrects it for the number of them, in the order given."""
    if not values:
        return []
    from statsmodels.stats.multitest import multipletests

    return [float(value) for value in multipletests(list(values), method="holm")[1]]
