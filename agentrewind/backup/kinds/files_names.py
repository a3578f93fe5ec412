"""What a call in the workspace reaches outside it by another name: hard links, links below a directory."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

from agentrewind.backup.kind import Parameters, UnclearError
from agentrewind.backup.values import Command

_REPLACING = frozenset(
    (
        "install", "ln", "sed", "perl", "ruby", "gzip", "gunzip", "pigz", "bzip2", "bunzip2", "xz",
        "unxz", "zstd", "unzstd", "lz4", "mkdir", "mkfifo", "mknod",
    )
)  # fmt: skip
"""Programs that put a new file in the place of an old one, whose other names stay as they are."""

_REMOVING = frozenset(("rm", "rmdir", "unlink"))

_MOST = 200_000
"""Names that are looked at before it is left open where a file has its others."""


def writes_in_place(command: Command, parameters: Parameters) -> bool:
    """The command may change a file that has other names, not only one of its names."""
    if parameters.get("unlinks") is True or parameters.get("paths") in ("moved", "empty-directories"):
        return False
    if command.name == "find":
        words = [word.text for word in command.argv]
        acts = [words[at + 1 : at + 2] for at, text in enumerate(words) if text.startswith(("-exec", "-ok"))]
        return any(not act or act[0].rpartition("/")[2] not in _REMOVING for act in acts)
    return command.name not in _REPLACING


def check_names(paths: Iterable[Path], workspace: Path) -> None:
    """Raises UnclearError for a file of the workspace that has a name outside it as well.

    Where that is, no file system tells; and once the workspace is rewound, its own name is another file.
    """
    missing: dict[tuple[int, int], int] = {}
    shown: dict[tuple[int, int], Path] = {}
    for path in paths:
        status = _status(path)
        if status is not None and stat.S_ISREG(status.st_mode) and status.st_nlink > 1:
            key = (status.st_dev, status.st_ino)
            missing[key], shown[key] = status.st_nlink, path
    if not missing:
        return
    for name in below(workspace):
        status = _status(name)
        key = (status.st_dev, status.st_ino) if status is not None else (0, 0)
        if key in missing:
            missing[key] -= 1
    for key, left in missing.items():
        if left > 0:
            raise UnclearError(
                f"{shown[key]} has other names outside the workspace, where it changes as well"
            )


def shared_below(path: Path) -> Iterator[Path]:
    """The files below a directory that have several names."""
    for name in below(path):
        status = _status(name)
        if status is not None and stat.S_ISREG(status.st_mode) and status.st_nlink > 1:
            yield name


def linked_below(path: Path) -> Iterator[Path]:
    """Where the links below a directory lead, and the links below those."""
    seen: set[Path] = set()
    left = [path]
    while left:
        for name in below(left.pop()):
            if name.is_symlink():
                real = name.resolve()
                if real not in seen:
                    seen.add(real)
                    left.append(real)
                    yield real


def below(path: Path) -> Iterator[Path]:
    """All names below a directory that are not directories, links among them."""
    count = 0
    for folder, folders, files in os.walk(path):
        for name in (*files, *folders):
            count += 1
            if count > _MOST:
                raise UnclearError(f"there are too many files in {path} to look at")
            yield Path(folder, name)


def _status(path: Path) -> os.stat_result | None:
    try:
        return path.lstat()
    except OSError:
        return None
