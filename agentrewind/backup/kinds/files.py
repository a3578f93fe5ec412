"""Files and directories outside the workspace: contents, modes, owners, times, links; absence as well."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import IO

from agentrewind.backup.kind import Captured, CaptureError, Outcome, Parameters, Store
from agentrewind.backup.kinds.files_moved import (
    capture_move,
    fingerprint_move,
    is_move,
    restore_move,
)
from agentrewind.backup.kinds.files_targets import (
    as_json,
    as_path,
    file_targets,
    inside,
    paths_in,
)
from agentrewind.backup.kinds.sole_file import is_sole
from agentrewind.backup.kinds.tree import (
    Item,
    Take,
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
from agentrewind.backup.values import Command, Context, Target
from agentrewind.errors import DamagedError
from agentrewind.fields import Fields
from agentrewind.records import Json, JsonObject


class Files:
    """Files and directories by their paths.

    Parameters of a rule: `paths` says which words name them (see `files_written`), `contents = false` that
    only modes, owners and times change, `recursive` which options make it go below a directory, `follow`
    that a link at the end of a path is followed, `unlinks` that names are removed and no file is written.
    """

    def targets(self, command: Command, parameters: Parameters, context: Context) -> tuple[Target, ...]:
        return file_targets(command, parameters, context)

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
            source = _ByHash(store)
            work = TreeRestore(
                root=path,
                wanted=[source.known(item) for item in wanted],
                store=source,
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
        if _linked(target):
            return (
                f"{target.name}, by links to its files",
                "what differs is written back, what is new removed",
            )
        return f"{target.name} as it is", "what differs is written back, what is new is removed"


def capture_tree(path: Path, target: Target, store: Store, context: Context) -> tuple[JsonObject, list[Item]]:
    """One tree preserved, with its entry for the manifest. Raises CaptureError."""
    skip = _skip(target)
    if _contents(target):
        if target.detail.get("linked") not in _ALL_LINKED:
            check_budget(path, store, skip=skip)
        take = _linking(store, target) if _linked(target) else store.put_file
        items = scan(path, take, skip=skip)
    else:
        items = _scan(path, target)
    name = store.put(encode(items))
    again = _scan(path, target, contents=False)
    if [_stamp(item) for item in again] != [_stamp(item) for item in items] or decode(
        store.get(name)
    ) != items:
        raise CaptureError(f"{show(path)} changed while it was being preserved; try again")
    tree: JsonObject = {
        "path": as_json(path),
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
        yield as_path(fields.value("path")), fields


def _scan(path: Path, target: Target, *, contents: bool | None = None) -> list[Item]:
    read = _times_and_sizes if _linked(target) else hashed
    take = read if (_contents(target) if contents is None else contents) else nothing
    if target.detail.get("deep") is False:
        return scan(path, take, skip=_skip(target), deep=False)
    return scan(path, take, skip=_skip(target))


class _ByHash:
    """Files that are kept by links, under the names of their bytes, by which a restore compares."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._names: dict[str, str] = {}

    def known(self, item: Item) -> Item:
        """The item with the name of its bytes; as it is where these cannot be had, so that its turn fails."""
        if not item.content.startswith("link:"):
            return item
        try:
            with self._store.open(item.content) as file:
                found = sha256()
                while piece := file.read(1 << 20):
                    found.update(piece)
        except DamagedError:
            return item
        name = f"sha256:{found.hexdigest()}"
        self._names[name] = item.content
        return replace(item, content=name)

    def open(self, name: str) -> IO[bytes]:
        """The payload, however it is kept."""
        return self._store.open(self._names.get(name, name))


_ALL_LINKED = ("all", True)
"""Every file is kept by a link; the second is how earlier versions said so."""


def _linked(target: Target) -> bool:
    return target.detail.get("linked") in (*_ALL_LINKED, "sole")


def _linking(store: Store, target: Target) -> Take:
    """Keeps each file by a link, or as a copy: on another file system than the store, or in doubt."""
    always = target.detail.get("linked") in _ALL_LINKED

    def take(path: Path) -> str:
        found = store.link_file(path) if always or is_sole(path) else None
        return found or store.put_file(path)

    return take


def _times_and_sizes(path: Path) -> str:
    """What tells a large file's content, without reading it."""
    status = path.lstat()
    return f"{status.st_mtime_ns:x}-{status.st_size:x}"


def _contents(target: Target) -> bool:
    return target.detail.get("contents") is not False


def _skip(target: Target) -> tuple[Path, ...]:
    return tuple(as_path(each) for each in Fields(target.detail, "target").items("skip"))


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
