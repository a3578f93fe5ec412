"""The statistics of the report: against brute force, against the libraries, and against published figures."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import wilcoxon

from runner.statistics import agreement, discordance, holm, signed_rank, spread, tertiles

TABLE = [
    ("success, first model, Continue", 35, 35.5, 0.89),
    ("success, first model, Restart", 23, 59.0, 0.57),
    ("success, first model, Safety", 54, 0.0, 1.00),
    ("success, second model, Continue", 39, 115.5, 0.70),
    ("success, second model, Restart", 30, 154.0, 0.34),
    ("success, second model, Safety", 40, 190.0, 0.54),
    ("progress, first model, Continue", 36, 29.0, 0.91),
    ("progress, first model, Restart", 23, 50.0, 0.64),
    ("progress, first model, Safety", 58, 0.0, 1.00),
    ("progress, second model, Continue", 53, 307.5, 0.57),
    ("progress, second model, Restart", 46, 248.0, 0.54),
    ("progress, second model, Safety", 53, 347.0, 0.52),
]
"""Row, number of non-zero differences, W and r of the paper's table of tests."""

shares = st.builds(Fraction, st.integers(-12, 12), st.sampled_from([1, 2, 3, 5, 7, 9, 36]))
numbers = st.lists(st.integers(-1000, 1000), min_size=1, max_size=30)


def effect_size(w: float, nonzero: int) -> float:
    """The size of the rank-biserial correlation that belongs to W, the smaller rank sum."""
    return 1 - 4 * w / (nonzero * (nonzero + 1))


@pytest.mark.parametrize(("row", "nonzero", "w", "effect"), TABLE)
def test_published_effect_sizes_follow_from_their_statistics(
    row: str, nonzero: int, w: float, effect: float
) -> None:
    assert round(effect_size(w, nonzero), 2) == effect, row


def brute(differences: list[Fraction]) -> tuple[int, Fraction, Fraction]:
    """Non-zero count and both rank sums, from the definition alone."""
    left = [value for value in differences if value]
    sums = {True: Fraction(0), False: Fraction(0)}
    for value in left:
        below = sum(abs(other) < abs(value) for other in left)
        equal = sum(abs(other) == abs(value) for other in left)
        sums[value > 0] += below + Fraction(equal + 1, 2)
    return len(left), sums[True], sums[False]


@given(st.lists(shares, max_size=40))
@settings(max_examples=40, deadline=None)  # the first call imports scipy or statsmodels
def test_rank_sums_are_those_of_the_definition(differences: list[Fraction]) -> None:
    found = signed_rank(differences)
    nonzero, plus, minus = brute(differences)
    assert (found.pairs, found.nonzero) == (len(differences), nonzero)
    assert found.w == float(min(plus, minus))
    if not nonzero:
        assert (found.p, found.effect) == (None, None)
        return
    assert found.effect is not None
    assert found.effect == pytest.approx(float((plus - minus) / (plus + minus)))
    assert abs(found.effect) == pytest.approx(effect_size(found.w, nonzero), abs=1e-12)
    assert found.p == pytest.approx(normal_p(differences), rel=1e-9)


def normal_p(differences: list[Fraction]) -> float:
    """Two-sided p of the normal approximation with tied ranks, from the textbook's formula."""
    left = [abs(value) for value in differences if value]
    n, (_, plus, minus) = len(left), brute(differences)
    ties = sum(left.count(size) ** 3 - left.count(size) for size in set(left))
    variance = n * (n + 1) * (2 * n + 1) / 24 - ties / 48
    return math.erfc(abs(float(min(plus, minus)) - n * (n + 1) / 4) / math.sqrt(variance) / math.sqrt(2))


@given(st.lists(st.integers(-50, 50), min_size=1, max_size=60).filter(any))
@settings(max_examples=40, deadline=None)  # the first call imports scipy or statsmodels
def test_the_test_is_the_librarys_with_every_setting_named(values: list[int]) -> None:
    found = signed_rank(values)
    theirs = wilcoxon([value for value in values if value], correction=False, method="asymptotic")
    assert found.p == pytest.approx(theirs.pvalue, rel=1e-9)


@given(st.lists(shares, min_size=1, max_size=20).filter(any), st.integers(1, 9))
@settings(max_examples=40, deadline=None)  # the first call imports scipy or statsmodels
def test_units_and_sides_do_not_matter(differences: list[Fraction], unit: int) -> None:
    found = signed_rank(differences)
    scaled = signed_rank([value * Fraction(unit, 7) for value in differences])
    turned = signed_rank([-value for value in differences])
    assert scaled == found
    assert (turned.w, turned.p, turned.nonzero) == (found.w, found.p, found.nonzero)
    assert turned.effect == -found.effect if found.effect is not None else False


def test_thirds_that_differ_as_floats_are_tied() -> None:
    third, two = Fraction(1, 3), Fraction(2, 3)
    assert 1 - 2 / 3 != 2 / 3 - 1 / 3
    assert signed_rank([1 - two, two - third, -third]).w == 2.0
    with pytest.raises(TypeError, match="floats would break ties"):
        signed_rank([1 - 2 / 3])  # type: ignore[list-item]


def test_a_worked_example_gives_the_published_figures() -> None:
    # 35 of 82 pairs differ, the smaller rank sum is 35.5, as in the first row of the table
    values = [3] * 20 + [2] * 11 + [1] * 1 + [-1, -1] + [-2] + [0] * 47
    found = signed_rank(values)
    assert found.pairs == 82
    assert found.nonzero == 35
    assert found.effect == pytest.approx(effect_size(found.w, 35))
    assert found.p is not None
    assert found.p < 0.0001


@given(st.lists(st.floats(0, 1), max_size=12))
@settings(max_examples=40, deadline=None)  # the first call imports scipy or statsmodels
def test_holm_is_the_step_down_of_its_definition(values: list[float]) -> None:
    corrected = holm(values)
    order = sorted(range(len(values)), key=lambda place: values[place])
    highest = 0.0
    for rank, place in enumerate(order):
        highest = max(highest, min(1.0, (len(values) - rank) * values[place]))
        assert corrected[place] == pytest.approx(highest)


@given(st.lists(st.tuples(st.booleans(), st.booleans()), max_size=60))
@settings(max_examples=40, deadline=None)  # the first call imports scipy or statsmodels
def test_mcnemar_is_a_coin_for_each_pair_that_differs(outcomes: list[tuple[bool, bool]]) -> None:
    found = discordance(outcomes)
    first, second = outcomes.count((True, False)), outcomes.count((False, True))
    assert (found.pairs, found.only_first, found.only_second) == (len(outcomes), first, second)
    if not first + second:
        assert found.p is None
        return
    tail = sum(math.comb(first + second, k) for k in range(min(first, second) + 1)) / 2 ** (first + second)
    assert found.p == pytest.approx(min(1.0, 2 * tail))


def test_mcnemar_of_the_published_counts() -> None:
    outcomes = [(True, False)] * 69 + [(False, True)] * 6 + [(True, True)] * 100
    assert discordance(outcomes).p == pytest.approx(1.16e-14, rel=0.01)


@given(numbers)
@settings(max_examples=40, deadline=None)  # the first call imports scipy or statsmodels
def test_spread_is_that_of_the_definition(values: list[int]) -> None:
    found = spread(values)
    assert found is not None
    mean = Fraction(sum(values), len(values))
    assert found.mean == float(mean)
    assert (found.low, found.high, found.count) == (min(values), max(values), len(values))
    if len(values) == 1:
        assert found.deviation is None
    else:
        variance = sum((value - mean) ** 2 for value in values) / (len(values) - 1)
        assert found.deviation == pytest.approx(math.sqrt(variance))


def test_no_numbers_have_no_spread() -> None:
    assert spread([]) is None
    assert holm([]) == []


@given(st.dictionaries(st.text(max_size=3), st.integers(0, 9), max_size=20))
@settings(max_examples=50, deadline=None)
def test_tertiles_keep_everything_in_order(lengths: dict[str, int]) -> None:
    groups = tertiles(lengths)
    assert sorted(itertools.chain(*groups)) == sorted(lengths)
    assert max(map(len, groups)) - min(map(len, groups)) <= 1
    for shorter, longer in itertools.pairwise(groups):
        assert all(lengths[a] <= lengths[b] for a in shorter for b in longer)


@given(st.lists(st.lists(st.booleans(), max_size=4), max_size=20), st.integers(1, 4))
@settings(max_examples=40, deadline=None)  # the first call imports scipy or statsmodels
def test_agreement_counts_full_groups_alone(groups: list[list[bool]], runs: int) -> None:
    found = agreement(groups, runs=runs)
    full = [group for group in groups if len(group) == runs]
    assert (found.groups, found.left_out) == (len(full), len(groups) - len(full))
    assert found.agreeing == sum(all(group) or not any(group) for group in full)
    assert found.share == (found.agreeing / len(full) if full else None)
