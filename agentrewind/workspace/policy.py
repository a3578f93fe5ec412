"""Which paths of a workspace are tracked, excluded or volatile.

The rules are part of a run: they are recorded with it and with every snapshot. No ignore file of the
workspace has a say. Inside a `.git` directory only `inner_repositories` decides, so that a branch called
`server.key` cannot make a repository come back incomplete.
"""

from __future__ import annotations

import fnmatch
import os
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property

from agentrewind.errors import UsageError
from agentrewind.records import Json, JsonObject

GIT_NAME = b".git"
_GIT = ".git"

TEMPORARY_PREFIX = ".agentrewind-tmp-"
"""Names that a restore in progress gives to unfinished files; left over only if it was killed."""

DEFAULT_EXCLUDED = (
    ".env*",
    "*.pem",
    "*.key",
    "*.p12",
    "*.pfx",
    "*.ppk",
    "id_rsa",
    "id_dsa",
    "id_ecdsa",
    "id_ecdsa_sk",
    "id_ed25519",
    "id_ed25519_sk",
)
DEFAULT_VOLATILE = (
    "__pycache__",
    ".pytest_cache",
    ".mypy_cache",
    ".ruff_cache",
)
DEFAULT_MAX_FILE_BYTES = 1 << 30
DEFAULT_SNAPSHOT_SECONDS = 60


class PathClass(StrEnum):
    """What happens to a path: reverted, left as it is, or deleted at a restore."""

    TRACKED = "tracked"
    EXCLUDED = "excluded"
    VOLATILE = "volatile"


@dataclass(frozen=True, kw_only=True)
class Policy:
    """The path rules of one run.

    A pattern without a slash is matched against every component of a path, one with a slash against the
    whole path from the workspace's root (`*` then also matches slashes). Where both lists match, excluded
    wins: nothing that a rule protects is deleted as a cache.

    Attributes:
        excluded: never read, never changed, never deleted.
        volatile: never captured, deleted at a restore.
        track_everything: no pattern applies; sizes still do.
        inner_repositories: whether `.git` (at the root too) is part of the state, or left as it is.
        max_file_bytes: larger files are left out, kept at a restore and named.
        snapshot_seconds: so long a node waits for its snapshot; what was not read by then makes it partial.
    """

    excluded: tuple[str, ...] = DEFAULT_EXCLUDED
    volatile: tuple[str, ...] = DEFAULT_VOLATILE
    track_everything: bool = False
    inner_repositories: bool = True
    max_file_bytes: int = DEFAULT_MAX_FILE_BYTES
    snapshot_seconds: int = DEFAULT_SNAPSHOT_SECONDS

    @classmethod
    def default(cls) -> Policy:
        return cls()

    def with_excluded(self, patterns: Iterable[str]) -> Policy:
        """The same rules and some more names to leave alone."""
        return replace(self, excluded=(*self.excluded, *patterns))

    @cached_property
    def _excluded_names(self) -> re.Pattern[str] | None:
        return _compiled(self.excluded, whole=False)

    @cached_property
    def _excluded_paths(self) -> re.Pattern[str] | None:
        return _compiled(self.excluded, whole=True)

    @cached_property
    def _volatile_names(self) -> re.Pattern[str] | None:
        return _compiled(self.volatile, whole=False)

    @cached_property
    def _volatile_paths(self) -> re.Pattern[str] | None:
        return _compiled(self.volatile, whole=True)

    def classify(self, path: bytes, is_dir: bool) -> PathClass:  # noqa: FBT001 - asked for in this form
        """The class of a path relative to the root, judged by itself and by everything above it.

        `is_dir` tells what stands there; a rule that only concerns one kind may use it.

        >>> Policy.default().classify(b"app/.env.local", is_dir=False).value
        'excluded'
        >>> Policy.default().classify(b"app/__pycache__/x.pyc", is_dir=False).value
        'volatile'
        >>> Policy.default().classify(b".git/refs/heads/server.key", is_dir=False).value
        'tracked'
        """
        components = path.split(b"/")
        outside_git = components
        if GIT_NAME in components:
            if not self.inner_repositories:
                return PathClass.EXCLUDED
            outside_git = components[: components.index(GIT_NAME)]
        if components[-1].startswith(os.fsencode(TEMPORARY_PREFIX)) and not is_dir:
            return PathClass.VOLATILE
        if self.track_everything or not outside_git:
            return PathClass.TRACKED
        names = [os.fsdecode(component) for component in outside_git]
        if _matches(names, self._excluded_names, self._excluded_paths):
            return PathClass.EXCLUDED
        if _matches(names, self._volatile_names, self._volatile_paths):
            return PathClass.VOLATILE
        return PathClass.TRACKED

    def judge_in(self, directory: bytes) -> Callable[[str, bool], PathClass]:
        """What `classify` says of names in a tracked directory, for many names at once."""
        components = directory.split(b"/") if directory else []
        in_git, prefix = GIT_NAME in components, os.fsdecode(directory) + "/" if directory else ""
        by_name, by_path = self._excluded_names, self._excluded_paths
        caches_by_name, caches_by_path = self._volatile_names, self._volatile_paths
        all_tracked = in_git or self.track_everything

        def judge(name: str, is_dir: bool) -> PathClass:  # noqa: FBT001 - as `classify`
            if name == _GIT and not self.inner_repositories:
                return PathClass.EXCLUDED
            if not is_dir and name.startswith(TEMPORARY_PREFIX):
                return PathClass.VOLATILE
            if all_tracked or name == _GIT:
                return PathClass.TRACKED
            if (by_name and by_name.match(name)) or (by_path and by_path.match(prefix + name)):
                return PathClass.EXCLUDED
            if caches_by_name and caches_by_name.match(name):
                return PathClass.VOLATILE
            if caches_by_path and caches_by_path.match(prefix + name):
                return PathClass.VOLATILE
            return PathClass.TRACKED

        return judge

    def judges_alike_anywhere(self, path: bytes) -> bool:
        """Whether what lies below a tracked directory keeps its classes when the directory is renamed."""
        by_whole_path = self._excluded_paths is not None or self._volatile_paths is not None
        return not by_whole_path and GIT_NAME not in path.split(b"/")

    def to_json(self) -> JsonObject:
        return {
            "excluded": list(self.excluded),
            "volatile": list(self.volatile),
            "track_everything": self.track_everything,
            "inner_repositories": self.inner_repositories,
            "max_file_bytes": self.max_file_bytes,
            "snapshot_seconds": self.snapshot_seconds,
        }

    @classmethod
    def from_json(cls, value: JsonObject) -> Policy:
        """The policy that `to_json` wrote; a missing field has its default.

        Raises:
            UsageError: an unknown field or a value of the wrong type, named.
        """
        unknown = sorted(set(value) - set(cls().to_json()))
        if unknown:
            raise UsageError(f"path rules: unknown field {unknown[0]!r}; known: {', '.join(cls().to_json())}")
        default = cls()
        return cls(
            excluded=_patterns(value, "excluded", default.excluded),
            volatile=_patterns(value, "volatile", default.volatile),
            track_everything=_switch(value, "track_everything", default=default.track_everything),
            inner_repositories=_switch(value, "inner_repositories", default=default.inner_repositories),
            max_file_bytes=_number(value, "max_file_bytes", default.max_file_bytes),
            snapshot_seconds=_number(value, "snapshot_seconds", default.snapshot_seconds),
        )


def _compiled(patterns: tuple[str, ...], *, whole: bool) -> re.Pattern[str] | None:
    chosen = [pattern.strip("/") for pattern in patterns if ("/" in pattern.strip("/")) is whole]
    if not chosen:
        return None
    return re.compile("|".join(fnmatch.translate(pattern) for pattern in chosen))


def _matches(names: list[str], by_name: re.Pattern[str] | None, by_path: re.Pattern[str] | None) -> bool:
    if by_name is not None and any(by_name.match(name) for name in names):
        return True
    if by_path is None:
        return False
    return any(by_path.match("/".join(names[:end])) for end in range(1, len(names) + 1))


def _patterns(value: JsonObject, name: str, default: tuple[str, ...]) -> tuple[str, ...]:
    found: Json = value.get(name, list(default))
    if not isinstance(found, list):
        raise UsageError(f"path rules: {name} must be a list of patterns, not {found!r}")
    patterns = []
    for item in found:
        if not isinstance(item, str) or not item.strip("/"):
            raise UsageError(
                f"path rules: {name} holds {item!r}; a pattern is non-empty text such as '*.pem'"
            )
        patterns.append(item)
    return tuple(patterns)


def _switch(value: JsonObject, name: str, *, default: bool) -> bool:
    found: Json = value.get(name, default)
    if not isinstance(found, bool):
        raise UsageError(f"path rules: {name} must be true or false, not {found!r}")
    return found


def _number(value: JsonObject, name: str, default: int) -> int:
    found: Json = value.get(name, default)
    if isinstance(found, bool) or not isinstance(found, int) or found < 0:
        raise UsageError(f"path rules: {name} must be a whole number, 0 or more, not {found!r}")
    return found
