"""Lists changed files for a page; what lies inside a repository's own folder counts as one. Pure."""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Sequence
from dataclasses import dataclass

from agentrewind.display_text import file_name
from agentrewind.errors import UsageError
from agentrewind.records import Change
from agentrewind.view.visible import visible

LISTED = 200
WORDS = {"A": "added", "M": "modified", "D": "deleted", "T": "type changed"}


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    """A changed path. `key` stands for its bytes in addresses."""

    status: str
    name: str
    key: str

    @property
    def word(self) -> str:
        return WORDS.get(self.status, self.status)


@dataclass(frozen=True, slots=True, kw_only=True)
class Files:
    """What a node changed.

    Attributes:
        listed: the first changed paths outside repositories' own folders; `more` counts the others.
        repositories: for each repository's folder how many paths in it changed.
        known: False while the state after the node is not known.
        partial, left_out: what the snapshot lacks, each with the reason.
    """

    listed: tuple[File, ...]
    more: int = 0
    repositories: tuple[tuple[str, int], ...] = ()
    known: bool = True
    partial: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    trouble: str = ""

    @property
    def count(self) -> int:
        return len(self.listed) + self.more + sum(number for _, number in self.repositories)


def files_between(
    changes: Sequence[Change],
    *,
    partial: Sequence[str] = (),
    left_out: Sequence[str] = (),
    known: bool = True,
    trouble: str = "",
) -> Files:
    """The list for a page."""
    plain: list[Change] = []
    repositories: dict[str, int] = {}
    for change in changes:
        folder = _repository(change.path)
        if folder is None:
            plain.append(change)
        else:
            repositories[folder] = repositories.get(folder, 0) + 1
    return Files(
        listed=tuple(
            File(status=each.status, name=file_name(each.path), key=path_key(each.path))
            for each in plain[:LISTED]
        ),
        more=max(0, len(plain) - LISTED),
        repositories=tuple(repositories.items()),
        known=known,
        partial=tuple(visible(each).text for each in partial),
        left_out=tuple(visible(each).text for each in left_out),
        trouble=trouble,
    )


def path_key(path: bytes) -> str:
    """A path's bytes as they can stand in an address."""
    return urlsafe_b64encode(path).decode()


def path_of(key: str) -> bytes:
    """Inverts `path_key`; raises UsageError."""
    try:
        return urlsafe_b64decode(key.encode())
    except (ValueError, UnicodeEncodeError) as error:
        raise UsageError("the address names no path") from error


def _repository(path: bytes) -> str | None:
    """The repository's folder that a path lies in, None for a path in none."""
    parts = path.split(b"/")
    if b".git" not in parts[:-1]:
        return None
    return file_name(b"/".join(parts[: parts.index(b".git") + 1]))
