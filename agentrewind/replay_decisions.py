"""What the replayer is told of a log beside its path, and what it can answer to a call. Pure values."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from agentrewind.records import InputId, LlmNode, RecordUid, Started, ToolNode


class Mode(StrEnum):
    """What follows the recorded nodes: one call at a checkpoint, anything, or nothing."""

    REWIND = "rewind"
    RESUME = "resume"
    REPLAY = "replay"


class OnDivergence(StrEnum):
    """What to do when a request differs from its record."""

    STOP = "stop"
    POSITION = "position"


@dataclass(frozen=True, slots=True, kw_only=True)
class Beyond:
    """What the log tells of calls that are not served from the path.

    Attributes:
        unfinished: calls that were begun after the path and never finished.
        cut: tool calls before a checkpoint that were still running when its files were captured; their
            outcome is no longer that of the files.
        later: requests of LLM calls that were begun, and are known not to belong to the path.
        failed: calls after the path that only ever failed; served in mode `replay`.
    """

    unfinished: tuple[Started, ...] = ()
    cut: tuple[Started, ...] = ()
    later: frozenset[InputId] = frozenset()
    failed: tuple[LlmNode, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeLlm:
    """Answer from the log. `warning` tells what differed when the match is by position."""

    node: LlmNode
    warning: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeTool:
    """Answer from the log."""

    node: ToolNode
    warning: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Interrupted:
    """The call was begun and its outcome is unknown: it must not run again.

    `ended`: it did end, but only after the files were captured to which the rewind went back.
    """

    started: Started
    ended: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Live:
    """Make the call. `checkpoint` is the target node where this is the one call of a rewind."""

    checkpoint: LlmNode | None = None
    warning: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """The call comes after what is still to be served to others; ask again when one of them has gone on.

    `otherwise` is the refusal where there is nobody left who could.
    """

    otherwise: Refuse


@dataclass(frozen=True, slots=True, kw_only=True)
class Refuse:
    """Stop: the log does not hold what was asked for."""

    record_uid: RecordUid | None
    difference: str


LlmDecision: TypeAlias = ServeLlm | Live | Wait | Refuse
ToolDecision: TypeAlias = ServeTool | Interrupted | Live | Wait | Refuse

ToolKey: TypeAlias = tuple[RecordUid | None, str | None, int]
