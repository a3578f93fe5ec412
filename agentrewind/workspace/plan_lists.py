"""What a restore's plan collects while it is made, and the words for what stays as it is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from agentrewind.workspace.sidecar import Omission
from agentrewind.workspace.steps import RestorePlan, SetDirectory, Step
from agentrewind.workspace.views import shown


@dataclass(slots=True, kw_only=True)
class Lists:
    created: list[bytes] = field(default_factory=list)
    modified: list[bytes] = field(default_factory=list)
    deleted: list[bytes] = field(default_factory=list)
    touched: list[bytes] = field(default_factory=list)
    kept: dict[bytes, str] = field(default_factory=dict)
    blocked: list[bytes] = field(default_factory=list)
    removals: list[Step] = field(default_factory=list)
    additions: list[Step] = field(default_factory=list)
    links: list[Step] = field(default_factory=list)
    directories: list[SetDirectory] = field(default_factory=list)

    def finished(self) -> RestorePlan:
        """The plan: room is made first, then things are put there, then directories get their own facts."""
        return RestorePlan(
            created=_shown(self.created),
            modified=_shown(self.modified),
            deleted=_shown(self.deleted),
            touched=_shown(self.touched),
            kept=tuple(f"{shown(path)}: {why}" for path, why in sorted(self.kept.items())),
            blocked=tuple(sorted(set(self.blocked))),
            steps=(*self.removals, *self.additions, *self.links, *reversed(self.directories)),
        )


def refusal(names: Mapping[bytes, str]) -> str:
    """Why extended attributes are not as the snapshot has them."""
    each = ", ".join(f"{shown(name)} ({why})" for name, why in sorted(names.items()))
    return f"its extended attributes could not be brought back: {each}"


def uncaptured(reason: Omission) -> str:
    return f"not in the snapshot ({reason.explanation}), so it is neither brought back nor changed"


def _shown(paths: Iterable[bytes]) -> tuple[str, ...]:
    return tuple(shown(path) for path in sorted(set(paths)))
