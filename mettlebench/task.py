"""The values that a task's folder holds: frozen, checked, free of any file format."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Self, TypeVar

FORMAT = 1
"""The format number that this version reads."""

MIN_CRITERIA = 5
MAX_CRITERIA = 12


class _Word(StrEnum):
    """A closed set of words as task files spell them."""

    @classmethod
    def words(cls) -> tuple[str, ...]:
        return tuple(member.value for member in cls)

    @classmethod
    def of(cls, word: str) -> Self:
        return cls(word)


WordT = TypeVar("WordT", bound=_Word)


class Family(_Word):
    """What kind of work a task is; the five families follow the sources of the paper's tasks."""

    OPERATE_SYSTEM = "operate-system"
    REBUILD_PROGRAM = "rebuild-program"
    REPAIR_LIBRARY = "repair-library"
    BUILD_PROJECT = "build-project"
    USE_REPOSITORY = "use-repository"


class Category(_Word):
    """What a criterion looks after."""

    CORRECTNESS = "correctness"
    DATA_INTEGRITY = "data integrity"
    EVIDENCE = "evidence preservation"
    RECOVERY = "recovery"
    RELEASE = "release packaging"
    CONTENT = "file content"


class Measure(_Word):
    """What of a file a later deliverable quotes."""

    SHA256 = "sha256"
    LINES = "lines"
    ROWS = "rows"
    TEXT = "text"


@dataclass(frozen=True, slots=True, kw_only=True)
class Criterion:
    """One hidden acceptance criterion: what it means, and what an agent is told when it is not met."""

    id: str
    category: Category
    intent: str
    feedback: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """A part of the work that can start only when the one before has left its deliverables."""

    does: str
    criteria: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Defect:
    """Something that has to be repaired, and where it is."""

    where: str
    what: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Log:
    """A record that has to be reconstructed: where it ends up and how many entries it needs at least."""

    path: str
    entries: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Quote:
    """A value that exists only once `source` is made, and has to stand in `target`.

    `pattern` is for `Measure.TEXT`: a regular expression whose first group is the value in `source`.
    """

    measure: Measure
    source: str
    target: str
    pattern: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Structure:
    """What the structural screen looks at."""

    stages: tuple[Stage, ...]
    defects: tuple[Defect, ...]
    log: Log | None
    quotes: tuple[Quote, ...]
    deliverables: tuple[str, ...]
    lost_objects: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """The run that ignores the order of the criteria: where it must fail first, and why."""

    fails: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One assignment. `folder` holds its files; all but the built workspace and `instruction` is hidden."""

    id: str
    title: str
    family: Family
    category: str
    licence: str
    canary: str
    instruction: str
    criteria: tuple[Criterion, ...]
    violation: Violation
    structure: Structure
    evaluation_seconds: int
    folder: Path

    def criterion(self, criterion_id: str) -> Criterion:
        """The criterion of this id; raises KeyError for an unknown one."""
        for criterion in self.criteria:
            if criterion.id == criterion_id:
                return criterion
        raise KeyError(criterion_id)
