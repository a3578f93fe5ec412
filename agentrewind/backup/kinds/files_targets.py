"""Which files and directories outside the workspace a command may change, as targets."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from agentrewind.backup.kind import Parameters, UnclearError
from agentrewind.backup.kinds.files_moved import is_large_move
from agentrewind.backup.kinds.files_names import check_names, linked_below, shared_below, writes_in_place
from agentrewind.backup.kinds.files_written import written_paths
from agentrewind.backup.kinds.tree import show, sizes
from agentrewind.backup.kinds.words import resolved
from agentrewind.backup.values import Command, Context, Target
from agentrewind.errors import DamagedError
from agentrewind.fields import Fields
from agentrewind.records import Json, JsonObject

KIND = "files"

_EACH = 16
"""Up to so many paths of one command are targets of their own, more of them one target together."""

LINKED = 256 << 20
"""Bytes from which on what a call removes is kept by links instead of copies, whatever else the call does."""

SOLE = 1 << 20
"""Bytes from which on it is so where the call does nothing else, for files that are nobody else's."""

SOLE_FILES = 100
"""The same for a number of files: each copy costs more than its bytes."""

_NO_FILES = ("/proc", "/sys", "/dev")


def file_targets(command: Command, parameters: Parameters, context: Context) -> tuple[Target, ...]:
    """What a command may change outside the workspace, as targets. Raises UnclearError."""
    follow = parameters.get("follow") is True
    contents = parameters.get("contents") is not False
    found: dict[Path, None] = {}
    paths = written_paths(command, parameters, context)
    moved = _large_moves(paths, context) if parameters.get("paths") == "moved" else {}
    deep = contents or _goes_deep(command, parameters)
    reached = [real for path in paths if path not in moved for real in resolved(path, follow=follow)]
    if deep and not contents:
        reached += _reached_below(command, reached, context)
    for real in reached:
        if not inside(real, context.workspace):
            found.setdefault(_first_missing(_fit(real)))
    if context.workspace is not None and writes_in_place(command, parameters):
        check_names((path for path in reached if inside(path, context.workspace)), context.workspace)
    # what is not there yet is taken away whole, and with its contents where that is undone
    whole = [path for path in _topmost(found) if contents or not os.path.lexists(path)]
    bare = [path for path in _topmost(found) if path not in whole]
    skip = context.workspace
    unlinks = parameters.get("unlinks") is True
    return (
        *{target.name: target for target in moved.values()}.values(),
        *(_by_links(each) if unlinks else each for each in _grouped(whole, skip=skip)),
        *_grouped(bare, contents=False, deep=deep, skip=skip),
    )


def file_target(
    paths: list[Path], *, contents: bool = True, deep: bool = True, skip: Path | None = None
) -> Target:
    """Files at these absolute paths as one target.

    `deep`: with all below them, apart from `skip`, which no restore touches either, whoever makes it.
    """
    listed: list[Json] = [as_json(path) for path in paths]
    name = show(paths[0])
    if len(paths) > 1:
        name = f"{len(paths)} paths below {show(Path(os.path.commonpath(paths)))}"
    if not contents:
        # one call may change both: what is kept of a path has its own name
        name = f"{'modes and times below' if deep else 'mode and times of'} {name}"
    detail: JsonObject = {"paths": listed, "contents": contents, "deep": deep}
    if skip is not None and any(inside(skip, path) for path in paths):
        detail["skip"] = [as_json(skip)]
    return Target(kind=KIND, name=name, detail=detail)


def _by_links(target: Target) -> Target:
    """What only loses its names is kept by links to its files; below a size only to those of nobody else."""
    files = [each for path in paths_in(target) if os.path.lexists(path) for each in sizes(path)]
    if sum(files) >= LINKED:
        return replace(target, detail={**target.detail, "linked": "all"})
    if sum(files) >= SOLE or len(files) >= SOLE_FILES:
        return replace(target, detail={**target.detail, "linked": "sole"})
    return target


def copied(target: Target) -> Target:
    """The target for a call that does more than removing: what it may write into first is copied."""
    if target.detail.get("linked") != "sole":
        return target
    return replace(target, detail={name: each for name, each in target.detail.items() if name != "linked"})


def paths_in(target: Target) -> tuple[Path, ...]:
    """The paths of a target. Raises DamagedError."""
    return tuple(as_path(each) for each in Fields(target.detail, "target").items("paths"))


def inside(path: Path, root: Path | None) -> bool:
    """`path` is `root` or lies in it."""
    return root is not None and (path == root or root in path.parents)


def _large_moves(paths: list[Path], context: Context) -> dict[Path, Target]:
    """What is too large to be copied before it is moved, by source and destination."""
    found: dict[Path, Target] = {}
    for source, into in zip(paths[::2], paths[1::2], strict=True):
        (real,), (place,) = resolved(source, follow=False), resolved(into, follow=False)
        ends = as_json(real), as_json(place)
        inner = [inside(path, context.workspace) for path in (real, place)]
        if any(inner) or inside(context.workspace or Path("/nowhere"), real) or bytes in map(type, ends):
            continue
        if is_large_move(real, place):
            name = f"{show(real)} moved to {show(place)}"
            target = Target(kind=KIND, name=name, detail={"move": {"from": ends[0], "to": ends[1]}})
            found[source] = found[into] = target
    return found


def _grouped(
    paths: list[Path], *, contents: bool = True, deep: bool = True, skip: Path | None = None
) -> Iterator[Target]:
    """One target a path; names of one file go together, and so do very many paths."""
    groups: dict[object, list[Path]] = {}
    for path in paths:
        groups.setdefault(_one_file(path), []).append(path)
    if len(groups) > _EACH:
        yield file_target(paths, contents=contents, deep=deep, skip=skip)
    else:
        yield from (file_target(group, contents=contents, deep=deep, skip=skip) for group in groups.values())


def _one_file(path: Path) -> object:
    try:
        status = path.lstat()
    except OSError:
        return path
    several = status.st_nlink > 1 and not stat.S_ISDIR(status.st_mode)
    return (status.st_dev, status.st_ino) if several else path


def _fit(path: Path) -> Path:
    """Raises UnclearError for what is no file of a disk."""
    try:
        mode = path.lstat().st_mode
    except OSError:
        mode = stat.S_IFREG
    if not any(inside(path, Path(root)) for root in _NO_FILES) or inside(path, Path("/dev/shm")):
        if stat.S_ISBLK(mode) or stat.S_ISCHR(mode):
            raise UnclearError(f"{path} is a device, whose state cannot be read back")
        return path
    raise UnclearError(f"{path} stands for the system's own state and is no file that could be preserved")


def _first_missing(path: Path) -> Path:
    """The path itself, or where it is not there the first directory on the way that is missing as well."""
    missing = path
    while not os.path.lexists(missing) and missing.parent != missing and not os.path.lexists(missing.parent):
        missing = missing.parent
    return missing


def _topmost(paths: Iterable[Path]) -> Iterator[Path]:
    """The paths without those that lie in another of them."""
    found = set(paths)
    for path in sorted(found):
        if not any(parent in found for parent in path.parents):
            yield path


def _reached_below(command: Command, paths: list[Path], context: Context) -> Iterator[Path]:
    """What a change of all that is below these directories reaches by other names."""
    for path in paths:
        if not path.is_symlink() and path.is_dir():
            if _has_option(command, ["-L"]):
                yield from linked_below(path)
            if inside(path, context.workspace):
                yield from shared_below(path)


def _goes_deep(command: Command, parameters: Parameters) -> bool:
    options = parameters.get("deep", [])
    return _has_option(command, options if isinstance(options, list) else [])


def _has_option(command: Command, wanted: list[Json]) -> bool:
    """Any of these options is given: as it is, cut short, or in a cluster."""
    words = [word.text for word in command.argv[1:] if word.text.startswith("-")]
    letters = {f"-{letter}" for word in words if not word.startswith("--") for letter in word[1:]}
    short = {each for each in wanted for word in words if len(word) > 3 and str(each).startswith(word)}
    return any(each in words or each in letters or each in short for each in wanted)


def as_json(path: Path) -> Json:
    raw = os.fsencode(path)
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw


def as_path(found: Json) -> Path:
    if isinstance(found, bytes):
        return Path(os.fsdecode(found))
    if not isinstance(found, str) or not found.startswith("/"):
        raise DamagedError(f"{found!r} is no absolute path")
    return Path(found)
