"""How a simulated agent behaves: its probabilities, and draws that are the same for the same seed."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, fields

from agentrewind.errors import UsageError
from runner.cell import SIMULATED


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """Probabilities from 0 to 1.

    Attributes:
        early: takes the irreversible act before its time, in a line of work for which it has learned nothing.
        learn: has learned for a line of work, from notes or experiences that tell of failed ones.
        slip: leaves the last step out at first, which the feedback then lets it do.
        block: as a monitor, blocks an action that is no plain reading.
        garble: as a monitor, answers what cannot be read.
    """

    early: float = 0.5
    learn: float = 1.0
    slip: float = 0.0
    block: float = 0.0
    garble: float = 0.0


NAMED = {
    "perfect": Profile(early=0.0),
    "careful": Profile(early=0.25, learn=0.9, slip=0.2),
    "careless": Profile(early=0.75, learn=0.8, slip=0.3),
    "reckless": Profile(early=1.0),
    "stubborn": Profile(early=1.0, learn=0.0),
}


def profile_of(model: str) -> Profile:
    """The profile that a model's name asks for: `simulated:careless`, or `simulated:early=0.5,slip=0.1`.

    Raises UsageError for an unknown name, an unknown probability or one that is none.
    """
    name = model.removeprefix(SIMULATED)
    if name in NAMED:
        return NAMED[name]
    given: dict[str, float] = {}
    known = [each.name for each in fields(Profile)]
    for part in name.split(","):
        key, _, text = part.partition("=")
        try:
            value = float(text)
        except ValueError:
            value = -1.0
        if key not in known or not 0.0 <= value <= 1.0:
            raise UsageError(
                f"no simulated agent is called {model!r}: it is one of "
                f"{', '.join(SIMULATED + each for each in NAMED)}, or {SIMULATED}NAME=PROBABILITY,… "
                f"with names out of {', '.join(known)}"
            )
        given[key] = value
    return Profile(**given)


def draw(*key: object) -> float:
    """A number from 0 up to 1 that depends on the key alone, in every process and version.

    >>> draw(1, "early") == draw(1, "early"), draw(1, "early") == draw(2, "early")
    (True, False)
    """
    digest = hashlib.sha256("\x1f".join(map(str, key)).encode()).digest()
    return int.from_bytes(digest[:8], "big") / 2**64
