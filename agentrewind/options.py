"""The settings of a run: what a fresh process needs to start the same agent again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeVar

from agentrewind.backup.policy import BackupPolicy
from agentrewind.errors import DamagedError
from agentrewind.fields import choice
from agentrewind.records import Json, JsonObject
from agentrewind.replayer import OnDivergence

REPEATED_FAILURES = 5
"""So many identical first failures in a row end a run (paper, Experiments)."""

T = TypeVar("T")


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
        repeated_failures: so many identical first failures in a row end the run.
        jobs_end: what the agent started ends with its process, as in a sandbox of its own.
        rewind_after: the last submission of the run that this one goes on from, which could not rewind.
        memory_role: role of the memory message, `system` or `user`.
        settings: the harness's own settings, as its adapter understands them.
        command: the agent's own program and its arguments, where no adapter runs it.
        backup: how state outside the workspace is preserved before a call changes it; None: it is not.
        declared: what a fork declares changed, so that it is not compared: `model`, `system`, `tools`.
    """

    task: str
    check: str | None = None
    strategy: Strategy = Strategy.REWIND
    ablations: frozenset[Ablation] = frozenset()
    max_rewinds: int | None = None
    repeated_failures: int = REPEATED_FAILURES
    jobs_end: bool = False
    rewind_after: str = ""
    memory_role: str = "system"
    on_divergence: OnDivergence = OnDivergence.STOP
    settings: JsonObject = field(default_factory=dict)
    command: tuple[str, ...] = ()
    backup: BackupPolicy | None = None
    declared: frozenset[str] = frozenset()

    @property
    def can_rewind(self) -> bool:
        """The agent has the two tools."""
        return self.strategy is Strategy.REWIND

    def asks_for_rewind(self, submission: str) -> bool:
        """Whether the agent is asked, after this submission is rejected, to decide about going back."""
        return self.can_rewind and submission > self.rewind_after

    def to_json(self) -> JsonObject:
        """As the segment header holds them."""
        return {
            "task": self.task,
            "check": self.check,
            "strategy": self.strategy.value,
            "ablations": [each.value for each in sorted(self.ablations)],
            "max_rewinds": self.max_rewinds,
            "repeated_failures": self.repeated_failures,
            "jobs_end": self.jobs_end,
            "rewind_after": self.rewind_after,
            "memory_role": self.memory_role,
            "on_divergence": self.on_divergence.value,
            "settings": self.settings,
            "command": list(self.command),
            "backup": None if self.backup is None else self.backup.to_json(),
            **({"declared": [*sorted(self.declared)]} if self.declared else {}),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Json]) -> RunOptions:
        """The inverse of `to_json`; what is missing has its default. Raises DamagedError with the name."""
        ablations = _read(data, "ablations", list, [])
        return cls(
            task=_read(data, "task", str, ""),
            check=None if data.get("check") is None else _read(data, "check", str, ""),
            strategy=choice(data, "strategy", Strategy, Strategy.REWIND),
            ablations=frozenset(
                choice({"ablations": each}, "ablations", Ablation, Ablation.MEMORY) for each in ablations
            ),
            max_rewinds=None if data.get("max_rewinds") is None else _read(data, "max_rewinds", int, 0),
            repeated_failures=_read(data, "repeated_failures", int, REPEATED_FAILURES),
            jobs_end=_read(data, "jobs_end", bool, False),  # noqa: FBT003 (a default)
            rewind_after=_read(data, "rewind_after", str, ""),
            memory_role=choice(data, "memory_role", _MemoryRole, _MemoryRole.SYSTEM).value,
            on_divergence=choice(data, "on_divergence", OnDivergence, OnDivergence.STOP),
            settings=_read(data, "settings", dict, {}),
            command=tuple(str(word) for word in _read(data, "command", list, [])),
            backup=None
            if data.get("backup") is None
            else BackupPolicy.from_json(_read(data, "backup", dict, {})),
            declared=frozenset(str(each) for each in _read(data, "declared", list, [])),
        )


class _MemoryRole(StrEnum):
    SYSTEM = "system"
    USER = "user"


def _read(data: Mapping[str, Json], name: str, kind: type[T], default: T) -> T:
    value = data.get(name, default)
    if type(value) is not kind:
        raise DamagedError(f"the option {name} cannot be read: it is {value!r}, not {kind.__name__}")
    return value
