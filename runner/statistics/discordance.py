"""McNemar's exact test of paired yes-or-no outcomes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Discordance:
    """Pairs of which only the first or only the second succeeded; `p` is two-sided, None without any."""

    pairs: int
    only_first: int
    only_second: int
    p: float | None


def discordance(outcomes: Iterable[tuple[bool, bool]]) -> Discordance:
    """The test of (first, second) outcomes."""
    counts = {(True, True): 0, (True, False): 0, (False, True): 0, (False, False): 0}
    for first, second in outcomes:
        counts[first, second] += 1
    only_first, only_second = counts[True, False], counts[False, True]
    p = None
    if only_first or only_second:
        from statsmodels.stats.contingency_tables import mcnemar

        table = [[counts[True, True], only_first], [only_second, counts[False, False]]]
        p = float(mcnemar(table, exact=True).pvalue)
    return Discordance(pairs=sum(counts.values()), only_first=only_first, only_second=only_second, p=p)
