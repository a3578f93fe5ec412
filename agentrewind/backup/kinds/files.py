"""Files and directories outside the workspace: contents, modes, owners, times, links; absence as well."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from hashlib import sha256
from pathlib import Path

from agentrewind.backup.kind import Captured, CaptureError, Outcome, Parameters, Store, UnclearError
from agentrewind.backup.kinds.files_moved import (
    capture_move,
    fingerprint_move,
    is_large_move,
    is_move,
    restore_move,
)
from agentrewind.backup.kinds.files_written import written_paths
from agentrewind.backup.kinds.tree import (
    Item,
    check_budget,
    decode,
    digest,
    encode,
    hashed,
    nothing,
    scan,
    show,
)
from agentrewind.backup.kinds.tree_restore import TreeRestore
from agentrewind.backup.kinds.words import resolved
from agentrewind.backup.values import Command, Context, Target
from agentrewind.errors import DamagedError
from agentrewind.fields import Fields
from agentrewind.records import Json, JsonObject

KIND = "files"

_EACH = 16
"""Up to so many paths of one command are targets of their own, more of them one target together."""

_NO_FILES = ("/proc", "/sys", "/dev")


class Files:
    """Files and directories by their paths.

    Parameters of a rule: `paths` says which words name them (see `files_written`), `contents = false` that
    only modes, owners and times change, `recursive` which options make it go below a directory, `follow`
    that a link at the end of a path is followed.
    """

    def targets(self, command: Command, parameters: Parameters, context: Context) -> tuple[Target, ...]:
        follow = parameters.get("follow") is True
        contents = parameters.get("contents") is not False
        found: dict[Path, None] = {}
        paths = written_paths(command, parameters, context)
        moved = _large_moves(paths, context) if parameters.get("paths") == "moved" else {}
        for path in paths:
            for real in () if path in moved else resolved(path, follow=follow):
                if not inside(real, context.workspace):
                    found.setdefault(_first_missing(_fit(real)))
        deep = contents or _goes_deep(command, parameters)
        # what is not there yet is taken away whole, and with its contents where that is undone
        whole = [path for path in _topmost(found) if contents or not os.path.lexists(path)]
        bare = [path for path in _topmost(found) if path not in whole]
        skip = context.workspace
        return (
            *{target.name: target for target in moved.values()}.values(),
            *_grouped(whole, skip=skip),
            *_grouped(bare, contents=False, deep=deep, skip=skip),
        )

    def capture(self, target: Target, store: Store, context: Context) -> Captured:
        if is_move(target):
            return capture_move(target, store)
        trees: list[Json] = []
        blobs: list[str] = []
        notes: list[str] = []
        size = 0
        for path in paths_in(target):
            if inside(store.directory, path) or inside(path, store.directory):
                raise CaptureError(f"{show(path)} holds AgentRewind's own store, which no backup can hold")
            tree, items = capture_tree(path, target, store, context)
            trees.append(tree)
            blobs += list(_payloads(tree, items))
            size += sum(item.size for item in items if item.content)
            notes += _notes(path, items, target)
        return Captured(
            manifest={"trees": trees}, blobs=tuple(dict.fromkeys(blobs)), bytes=size, notes=tuple(notes)
        )

    def fingerprint(self, target: Target, context: Context) -> str:
        if is_move(target):
            return fingerprint_move(target)
        found = sha256()
        anything = False
        for path in paths_in(target):
            each = digest(_scan(path, target))
            anything = anything or bool(each)
            found.update(f"{each};".encode())
        return found.hexdigest() if anything else ""

    def restore(self, target: Target, captured: Captured, store: Store, context: Context) -> Outcome:
        if is_move(target):
            return restore_move(target, captured, store)
        restored: list[str] = []
        missing: list[str] = []
        notes: list[str] = []
        first: dict[str, Path] = {}
        for path, wanted in trees_in(captured, store):
            if path.parent.exists() and path.parent.resolve() != path.parent:
                missing.append(f"{show(path)}: a link on the way leads elsewhere now")
                continue
            work = TreeRestore(
                root=path,
                wanted=wanted,
                store=store,
                skip=_skip(target),
                contents=_contents(target),
                first=first,
            )
            work.run()
            restored += work.restored
            missing += work.missing
            notes += work.notes
        return Outcome(restored=tuple(restored), missing=tuple(missing), notes=tuple(notes))

    def plan(self, target: Target, captured: Captured, context: Context) -> tuple[str, ...]:
        if is_move(target):
            return (f"move {target.name} back",)
        lines = []
        for path, fields in _manifest(captured):
            state, count = fields.text("state"), fields.integer("count")
            if state == "absent":
                lines.append(f"remove {show(path)}, which was not there")
            elif not _contents(target):
                lines.append(f"set mode, owner and times of {count} path(s) at {show(path)}")
            elif state == "dir":
                lines.append(f"bring back {show(path)} with {count} path(s), and remove what is new in it")
            else:
                lines.append(f"write back {show(path)} ({fields.integer('bytes')} bytes)")
        return tuple(lines)

    def describe(self, target: Target) -> tuple[str, str]:
        if is_move(target):
            return f"{target.name}, which the move itself keeps", "it is moved back"
        if not _contents(target):
            return f"{target.name}, owners as well", "they are set again; what was not there is removed"
        return f"{target.name} as it is", "what differs is written back, what is new is removed"


def _large_moves(paths: list[Path], context: Context) -> dict[Path, Target]:
    """What is too large to be copied before it is moved, by source and destination."""
    found: dict[Path, Target] = {}
    for source, into in zip(paths[::2], paths[1::2], strict=True):
        (real,), (place,) = resolved(source, follow=False), resolved(into, follow=False)
        ends = _as_json(real), _as_json(place)
        inner = [inside(path, context.workspace) for path in (real, place)]
        if any(inner) or inside(context.workspace or Path("/nowhere"), real) or bytes in map(type, ends):
            continue
        if is_large_move(real, place):
            name = f"{show(real)} moved to {show(place)}"
            target = Target(kind=KIND, name=name, detail={"move": {"from": ends[0], "to": ends[1]}})
            found[source] = found[into] = target
    return found


def file_target(
    paths: list[Path], *, contents: bool = True, deep: bool = True, skip: Path | None = None
) -> Target:
    """Files at these absolute paths as one target.

    `deep`: with all below them, apart from `skip`, which no restore touches either, whoever makes it.
    """
    listed: list[Json] = [_as_json(path) for path in paths]
    name = show(paths[0])
    if len(paths) > 1:
        name = f"{len(paths)} paths below {show(Path(os.path.commonpath(paths)))}"
    if not contents:
        # one call may change both: what is kept of a path has its own name
        name = f"{'modes and times below' if deep else 'mode and times of'} {name}"
    detail: JsonObject = {"paths": listed, "contents": contents, "deep": deep}
    if skip is not None and any(inside(skip, path) for path in paths):
        detail["skip"] = [_as_json(skip)]
    return Target(kind=KIND, name=name, detail=detail)


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


def paths_in(target: Target) -> tuple[Path, ...]:
    """The paths of a target. Raises DamagedError."""
    return tuple(_as_path(each) for each in Fields(target.detail, "target").items("paths"))


def inside(path: Path, root: Path | None) -> bool:
    """`path` is `root` or lies in it."""
    return root is not None and (path == root or root in path.parents)


def capture_tree(path: Path, target: Target, store: Store, context: Context) -> tuple[JsonObject, list[Item]]:
    """One tree preserved, with its entry for the manifest. Raises CaptureError."""
    skip = _skip(target)
    if _contents(target):
        check_budget(path, store, skip=skip)
        items = scan(path, store.put_file, skip=skip)
    else:
        items = _scan(path, target)
    name = store.put(encode(items))
    again = _scan(path, target, contents=False)
    if [_stamp(item) for item in again] != [_stamp(item) for item in items] or decode(
        store.get(name)
    ) != items:
        raise CaptureError(f"{show(path)} changed while it was being preserved; try again")
    tree: JsonObject = {
        "path": _as_json(path),
        "state": items[0].kind if items else "absent",
        "tree": name,
        "count": len(items),
        "bytes": sum(item.size for item in items),
    }
    return tree, items


def trees_in(captured: Captured, store: Store) -> Iterator[tuple[Path, list[Item]]]:
    """The trees of a manifest. Raises DamagedError."""
    for path, fields in _manifest(captured):
        yield path, decode(store.get(fields.text("tree")))


def _manifest(captured: Captured) -> Iterator[tuple[Path, Fields]]:
    for each in Fields(captured.manifest, "manifest").items("trees"):
        fields = Fields(each, "manifest.trees")
        yield _as_path(fields.value("path")), fields


def _scan(path: Path, target: Target, *, contents: bool | None = None) -> list[Item]:
    take = hashed if (_contents(target) if contents is None else contents) else nothing
    if target.detail.get("deep") is False:
        return scan(path, take, skip=_skip(target), deep=False)
    return scan(path, take, skip=_skip(target))


def _contents(target: Target) -> bool:
    return target.detail.get("contents") is not False


def _skip(target: Target) -> tuple[Path, ...]:
    return tuple(_as_path(each) for each in Fields(target.detail, "target").items("skip"))


def _stamp(item: Item) -> tuple[object, ...]:
    return item.path, item.kind, item.mode, item.mtime_ns, item.size, item.link


def _payloads(tree: JsonObject, items: Iterable[Item]) -> Iterator[str]:
    name = tree["tree"]
    assert isinstance(name, str)
    yield name
    yield from (item.content for item in items if item.content)


def _notes(path: Path, items: list[Item], target: Target) -> Iterator[str]:
    inner = {item.twin for item in items if item.twin}
    if any(
        item.links > sum(each.twin == item.twin for each in items) for item in items if item.twin in inner
    ):
        yield f"{show(path)} has other names elsewhere; whether they are one file again depends on the call"
    if any(item.kind == "socket" for item in items):
        yield f"sockets at {show(path)} cannot be brought back"
    for left in _skip(target):
        if inside(left, path):
            yield f"{show(left)}, a workspace, is left to its own snapshots"


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


def _goes_deep(command: Command, parameters: Parameters) -> bool:
    options = parameters.get("deep", [])
    wanted = options if isinstance(options, list) else []
    words = [word.text for word in command.argv[1:] if word.text.startswith("-")]
    letters = {f"-{letter}" for word in words if not word.startswith("--") for letter in word[1:]}
    return any(each in words or each in letters for each in wanted)


def _as_json(path: Path) -> Json:
    raw = os.fsencode(path)
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw


def _as_path(found: Json) -> Path:
    if isinstance(found, bytes):
        return Path(os.fsdecode(found))
    if not isinstance(found, str) or not found.startswith("/"):
        raise DamagedError(f"{found!r} is no absolute path")
    return Path(found)
