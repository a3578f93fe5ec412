"""What a trial is given of the machine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from agentrewind.clock import Clock


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """What a trial is given: environment of the agent process, clock, where to tell what goes on."""

    environment: Mapping[str, str]
    clock: Clock
    tell: Callable[[str], None]
