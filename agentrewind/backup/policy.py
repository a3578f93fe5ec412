"""What a run wants of its backups: which calls, and what happens where none can be made. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from agentrewind.fields import choice
from agentrewind.records import Json, JsonObject


class Mode(StrEnum):
    """Which changes are worth a backup (paper, Appendix C.8)."""

    FULL = "full"
    HIGH_IMPACT = "high-impact"
    BEYOND_REQUEST = "beyond-request"
    HUMAN_WORK = "human-work"


class Trigger(StrEnum):
    """Which calls are looked at."""

    ALL = "all"
    """Every call; one that nobody understands is taken for one that changes something."""
    OUTSIDE = "outside"
    """Those alone that are known to write outside the workspace."""


class OnFailure(StrEnum):
    """What happens to a call whose backup failed."""

    BLOCK = "block"
    WARN = "warn"


class OnUnknown(StrEnum):
    """What happens to a call that may change what nothing here can preserve."""

    RUN = "run"
    BLOCK = "block"


class Reflect(StrEnum):
    """Whether what a subagent did becomes a rule (paper, Algorithm 2)."""

    OFF = "off"
    PROPOSE = "propose"
    AUTO = "auto"


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupPolicy:
    """The backup options of a run.

    Attributes:
        words: the user's own wish in place of a mode's; empty where a mode is in force.
        model: whom checker and subagent ask, by litellm's name; empty where no model is configured.
    """

    mode: Mode = Mode.FULL
    words: str = ""
    model: str = ""
    reflect: Reflect = Reflect.OFF
    trigger: Trigger = Trigger.ALL
    on_failure: OnFailure = OnFailure.BLOCK
    on_unknown: OnUnknown = OnUnknown.RUN

    def to_json(self) -> JsonObject:
        """As the header of a run holds it."""
        return {
            "mode": self.mode.value,
            "words": self.words,
            "model": self.model,
            "reflect": self.reflect.value,
            "trigger": self.trigger.value,
            "on_failure": self.on_failure.value,
            "on_unknown": self.on_unknown.value,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Json]) -> BackupPolicy:
        """The inverse of `to_json`; what is missing has its default. Raises DamagedError with the name."""
        return cls(
            mode=choice(data, "mode", Mode, Mode.FULL),
            words=str(data.get("words") or ""),
            model=str(data.get("model") or ""),
            reflect=choice(data, "reflect", Reflect, Reflect.OFF),
            trigger=choice(data, "trigger", Trigger, Trigger.ALL),
            on_failure=choice(data, "on_failure", OnFailure, OnFailure.BLOCK),
            on_unknown=choice(data, "on_unknown", OnUnknown, OnUnknown.RUN),
        )
