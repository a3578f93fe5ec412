"""Pure functions on numbers: spread over runs, agreement, paired tests and their correction.

Needs scipy and statsmodels, the extra `bench`. Shares are `Fraction`s, so that equal differences are equal.
"""

from runner.statistics.agreement import Agreement, agreement
from runner.statistics.discordance import Discordance, discordance
from runner.statistics.signed_rank import SignedRank, holm, signed_rank
from runner.statistics.spread import Spread, spread, tertiles

__all__ = [
    "Agreement",
    "Discordance",
    "SignedRank",
    "Spread",
    "agreement",
    "discordance",
    "holm",
    "signed_rank",
    "spread",
    "tertiles",
]
