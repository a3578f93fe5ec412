"""The settings of a run: what a fresh process needs to start the same agent again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from agentrewind.errors import DamagedError
from agentrewind.record import Json, JsonObject
from agentrewind.replayer import OnDivergence


class Strategy(StrEnum):
    """What the agent can do after a rejected submission."""

    REWIND = "rewind"
    CONTINUE = "continue"


class Ablation(StrEnum):
    """The part of a rewind that is left out (paper, Table 12)."""

    ENVIRONMENT = "environment"
    CONTEXT = "context"
    MEMORY = "memory"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """Everything about a run that does not change while it lasts. Holds no credentials.

    Attributes:
        check: shell command that validates a submission, or None to accept all.
        max_rewinds: rewinds allowed, or None for any number.
        memory_role: role of the memory message, `system` or `user`.
        settings: the harness's own settings, as its adapter understands them.
    """

    task: str
    check: str | None = None
    strategy: Strategy = Strategy.REWIND
    ablations: frozenset[Ablation] = frozenset()
    max_rewinds: int | None = None
    memory_role: str = "system"
    on_divergence: OnDivergence = OnDivergence.STOP
    settings: JsonObject = field(default_factory=dict)

    @property
    def can_rewind(self) -> bool:
        """The agent has the two tools."""
        return self.strategy is Strategy.REWIND

    def to_json(self) -> JsonObject:
        """As the segment header holds them."""
        return {
            "task": self.task,
            "check": self.check,
            "strategy": self.strategy.value,
            "ablations": [each.value for each in sorted(self.ablations)],
            "max_rewinds": self.max_rewinds,
            "memory_role": self.memory_role,
            "on_divergence": self.on_divergence.value,
            "settings": self.settings,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Json]) -> RunOptions:
        """The inverse of `to_json`. Raises DamagedError."""
        try:
            settings = data.get("settings") or {}
            ablations = data.get("ablations") or []
            rewinds = data.get("max_rewinds")
            check = data.get("check")
            if not isinstance(settings, dict) or not isinstance(ablations, list):
                raise TypeError("settings or ablations have the wrong type")
            return cls(
                task=str(data.get("task", "")),
                check=None if check is None else str(check),
                strategy=Strategy(str(data.get("strategy", "rewind"))),
                ablations=frozenset(Ablation(str(each)) for each in ablations),
                max_rewinds=int(rewinds) if isinstance(rewinds, int) else None,
                memory_role=str(data.get("memory_role", "system")),
                on_divergence=OnDivergence(str(data.get("on_divergence", "stop"))),
                settings=settings,
            )
        except (ValueError, TypeError) as error:
            raise DamagedError(f"the run's options cannot be read: {error}") from error
