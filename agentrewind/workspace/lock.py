"""One run at a time per workspace, also where one lies inside another; and per copy of one that a run has."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from fcntl import LOCK_EX, LOCK_NB, LOCK_SH, LOCK_UN, flock, lockf
from pathlib import Path
from types import TracebackType
from typing import BinaryIO

from agentrewind.durable import make_directory
from agentrewind.errors import StorageError, WorkspaceBusyError
from agentrewind.records import Json, JsonObject
from agentrewind.workspace.roots import workspace_directory


class WorkspaceLock:
    """A held lock; released by `release`, by leaving its `with`, or by the death of the process.

    Attributes:
        taken_over: describes the owner that died without releasing the lock, None where there was none.
    """

    def __init__(self, handle: int, taken_over: str | None) -> None:
        self._handle = handle
        self.taken_over = taken_over

    @classmethod
    def acquire(
        cls, home: Path, root: Path, *, owner: Mapping[str, Json], copy: Path | None = None
    ) -> WorkspaceLock:
        """Lock a workspace (a resolved root), or the copy of it in which a run works.

        Args:
            home: where locks are kept.
            root: the workspace.
            owner: says who asks, for whoever finds the lock taken; at best `pid` and `run`.
            copy: the folder with the run's own files, which nobody else works in; the workspace stays free.

        Raises:
            WorkspaceBusyError: a live process holds it, or holds one around it or inside it.
            StorageError: the lock cannot be written.
        """
        try:
            if copy is not None:
                return cls._take(lock_directory(home, root, copy), copy, owner)
            with _registry(home):
                for other, path in _locks(home):
                    if other != root and _overlap(other, root) and _is_held(path):
                        raise WorkspaceBusyError(str(root), f"{_describe(_read(path))} in {other}")
                make_directory(lock_directory(home, root))
                return cls._take(lock_directory(home, root), root, owner)
        except OSError as error:
            raise StorageError(f"the lock of workspace {root} cannot be written: {error}") from error

    @classmethod
    def _take(cls, directory: Path, root: Path, owner: Mapping[str, Json]) -> WorkspaceLock:
        handle = os.open(directory / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            flock(handle, LOCK_EX | LOCK_NB)
        except BlockingIOError as error:
            os.close(handle)
            raise WorkspaceBusyError(str(root), _describe(_read(directory / "lock"))) from error
        former = _read(directory / "lock")
        text = json.dumps({**owner, "root": os.fsencode(root).hex()}).encode()
        os.ftruncate(handle, 0)
        os.pwrite(handle, text, 0)
        return cls(handle, _describe(former) if former else None)

    def release(self) -> None:
        """Give the lock back; a second time does nothing."""
        if self._handle < 0:
            return
        os.ftruncate(self._handle, 0)
        flock(self._handle, LOCK_UN)
        os.close(self._handle)
        self._handle = -1

    def __enter__(self) -> WorkspaceLock:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


def lock_directory(home: Path, root: Path, copy: Path | None = None) -> Path:
    """Where the lock of a workspace stands; that of a run's own copy stands beside it, in the run."""
    return workspace_directory(home, root) if copy is None else copy.parent


def alone(directory: Path) -> BinaryIO:
    """Make this process the only agent process of the run kept in `directory`, until it closes the file.

    Raises WorkspaceBusyError where another one is at work on it: one that outlived its supervisor.
    """
    try:
        file = open(directory / "agent.lock", "ab", opener=_private)  # noqa: SIM115 - held until it is closed
    except OSError as error:
        raise StorageError(f"the lock of the run in {directory} cannot be written: {error}") from error
    try:
        # a lock of this process alone: a fork of it that outlives it must not hold the run
        lockf(file, LOCK_EX | LOCK_NB)
    except OSError as error:
        file.close()
        raise WorkspaceBusyError(str(directory), "another agent process of this run") from error
    return file


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


@contextmanager
def idle(directory: Path) -> Iterator[bool]:
    """Whether nobody holds the lock that stands in `directory`; nobody begins meanwhile."""
    handle = os.open(directory / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        flock(handle, LOCK_EX | LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        yield False
        return
    try:
        yield True
    finally:
        flock(handle, LOCK_UN)
        os.close(handle)


def owner_of(directory: Path) -> JsonObject | None:
    """What the live owner of the lock in `directory` said about itself; None where nobody holds it."""
    path = directory / "lock"
    if not _is_held(path):
        return None
    found = _read(path)
    found.pop("root", None)
    return found


@contextmanager
def _registry(home: Path) -> Iterator[None]:
    """Keep two processes from looking for overlapping locks at the same time."""
    directory = home / "workspaces"
    make_directory(directory)
    handle = os.open(directory / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        flock(handle, LOCK_EX)
        yield
    finally:
        os.close(handle)


def _locks(home: Path) -> Iterator[tuple[Path, Path]]:
    for path in sorted((home / "workspaces").glob("*/lock")):
        root = _read(path).get("root")
        if isinstance(root, str):
            with contextlib.suppress(ValueError):
                yield Path(os.fsdecode(bytes.fromhex(root))), path


def _overlap(one: Path, other: Path) -> bool:
    return one in other.parents or other in one.parents


def _is_held(path: Path) -> bool:
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        flock(handle, LOCK_SH | LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(handle)
    return False


def _read(path: Path) -> JsonObject:
    try:
        found = json.loads(path.read_bytes() or b"{}")
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _describe(owner: JsonObject) -> str:
    parts = [f"{name} {owner[name]!s}" for name in ("run", "pid", "command") if owner.get(name) is not None]
    return ", ".join(parts) or "another process"
