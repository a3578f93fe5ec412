"""What is known about a cell once it has been run: the values that `result.json` holds."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from runner.cell import Cell


class State(StrEnum):
    """How the run stands: as the log of the run says it."""

    ACCEPTED = "accepted"
    REJECTED = "rejected"
    STOPPED = "stopped"
    ERROR = "error"


class Exit(StrEnum):
    """Why the run ended."""

    SUCCESS = "success"
    REPEATED_FAILURE = "repeated-failure"
    AGENT_STOPPED = "agent-stopped"
    COST_LIMIT = "cost-limit"
    CANCELLED = "cancelled"
    INFRASTRUCTURE = "infrastructure"


ABNORMAL = frozenset({Exit.CANCELLED, Exit.INFRASTRUCTURE})
"""Ends that say nothing about the agent: left out of every aggregate, and run again on a resume."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Criterion:
    """One criterion in the final state."""

    id: str
    category: str
    passed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmissionResult:
    """One submission and its verdict.

    Attributes:
        attempt: of the strategy Restart, from 1; always 1 elsewhere.
        record_uid: the node that submitted.
        nodes: trace length when it was made, over all attempts.
        passed: ids that held, in the checklist's order.
        regressions: ids that held at the submission before and do not now.
        repeated: rejections in a row with this first failure; 0 when accepted.
    """

    attempt: int
    record_uid: str
    nodes: int
    accepted: bool
    first_failure: str | None
    prefix: int
    passed: tuple[str, ...]
    regressions: tuple[str, ...]
    repeated: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Tokens:
    """What providers counted; `cached` is a part of `input`."""

    input: int = 0
    output: int = 0
    cached: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """From `nodes` nodes on (trace length, all attempts) the workspace satisfied this prefix."""

    nodes: int
    prefix: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Suspicion:
    """Something in the trace that the agent could not know by honest work, or was not to touch."""

    kind: str
    record_uid: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Reviews:
    """What the monitor did: actions reviewed, blocked, and of these blocked for want of a readable answer."""

    asked: int = 0
    blocked: int = 0
    unparsable: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """The failed Continue run from whose end a paired recovery starts; `prefix` is what held there."""

    cell: str
    prefix: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One finished cell. Times in seconds, storage in bytes, cost in US dollars (None: unknown price).

    Attributes:
        seed: what the simulation and the harness were given; 0 where neither takes one.
        success: the final state satisfies every criterion.
        accepted: the last submission was accepted.
        prefix: criteria of the final state that hold before the first that does not.
        nodes: trace length, LLM and tool nodes of all attempts and segments.
        attempts: agent processes that began from the pristine workspace: above 1 for Restart alone.
        tries: how often the cell was begun; above 1 after infrastructure errors and interventions.
        cost: of the agent's and the monitor's calls.
        step_seconds: seconds per node.
        snapshot_seconds: per node, what the snapshot before it took, that of an LLM call while the model
            answered; None where not measured.
        clean: False where a command that waited for input was ended and the cell run again.
        progress: graded from snapshots afterwards, one point per change of prefix; empty where not graded.
    """

    cell: Cell
    task_digest: str
    family: str
    seed: int
    state: State
    exit: Exit
    detail: str
    accepted: bool
    success: bool
    criteria: tuple[Criterion, ...]
    submissions: tuple[SubmissionResult, ...]
    nodes: int
    llm_nodes: int
    tool_nodes: int
    rewinds: int
    attempts: int
    tries: int
    tokens: Tokens
    cost: float | None
    seconds: float
    storage_bytes: int
    suspicions: tuple[Suspicion, ...]
    clean: bool
    progress: tuple[Progress, ...]
    sandbox: str
    started_at: str
    ended_at: str
    snapshot_seconds: float | None = None
    reviews: Reviews | None = None
    endpoint: Endpoint | None = None

    @property
    def abnormal(self) -> bool:
        """To be left out of every aggregate."""
        return self.exit in ABNORMAL

    @property
    def simulated(self) -> bool:
        """Says nothing about a real model."""
        return self.cell.simulated

    @property
    def total(self) -> int:
        """Number of criteria; 0 where there is no verdict."""
        return len(self.criteria)

    @property
    def prefix(self) -> int:
        """Criteria of the final state that hold before the first that does not."""
        for number, criterion in enumerate(self.criteria):
            if not criterion.passed:
                return number
        return len(self.criteria)

    @property
    def prefix_progress(self) -> float:
        """The satisfied prefix as a share of all criteria; 0 where there is no verdict."""
        return self.prefix / self.total if self.total else 0.0

    @property
    def step_seconds(self) -> float:
        """Seconds per node."""
        return self.seconds / self.nodes if self.nodes else 0.0
