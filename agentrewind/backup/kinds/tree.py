"""Reads a file, a link or a whole directory as it is on the disk, following nothing."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from agentrewind.backup.kind import CaptureError, Store
from agentrewind.errors import DamagedError
from agentrewind.fields import Fields
from agentrewind.jsonform import dump_plain, from_plain, load_plain, to_plain
from agentrewind.records import Json, JsonObject

FILE, DIRECTORY, LINK, FIFO, SOCKET, CHARACTERS, BLOCKS = (
    "file",
    "dir",
    "link",
    "fifo",
    "socket",
    "char",
    "block",
)

BUDGET = 8 << 30
"""Bytes that one backup may copy."""

_KINDS = {
    stat.S_IFREG: FILE,
    stat.S_IFDIR: DIRECTORY,
    stat.S_IFLNK: LINK,
    stat.S_IFIFO: FIFO,
    stat.S_IFSOCK: SOCKET,
    stat.S_IFCHR: CHARACTERS,
    stat.S_IFBLK: BLOCKS,
}
_KEPT_FREE = 64 << 20
_OPEN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_PIECE = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One path of a tree.

    Attributes:
        path: relative to the tree's root, empty for the root itself.
        mode: permission bits.
        content: name of the payload of a file, empty where contents are left out.
        link: where a symbolic link points.
        twin: device and inode of a file that has other names as well, empty where it has none.
        links: how many names it has.
        attributes: extended attributes.
        device: what a device node stands for.
    """

    path: bytes
    kind: str
    mode: int
    uid: int
    gid: int
    mtime_ns: int
    size: int = 0
    content: str = ""
    link: bytes = b""
    twin: str = ""
    links: int = 1
    attributes: dict[str, bytes] = field(default_factory=dict)
    device: int = 0


Take = Callable[[Path], str]
"""Gives the content's name for a file at this absolute path."""


def scan(root: Path, take: Take, *, skip: Iterable[Path] = (), deep: bool = True) -> list[Item]:
    """The tree at `root`, parents before what they hold, names in order; empty where there is nothing.

    `take` is asked for the content of every file; the absolute paths in `skip` are left out, with all
    below them; without `deep` it is the root alone. Raises CaptureError where a path cannot be read.
    """
    left_out = frozenset(skip)
    found: list[Item] = []
    waiting = [b""]
    while waiting:
        path = waiting.pop()
        full = place(root, path)
        if full in left_out:
            continue
        item = _readable(full, path, take)
        if item is None:
            if path:
                raise CaptureError(f"{show(full)} vanished while it was being preserved")
            return []
        found.append(item)
        if item.kind == DIRECTORY and deep:
            waiting += [_below(path, each.name) for each in _inside(full)]
    return found


def _below(path: bytes, name: str) -> bytes:
    return path + b"/" + os.fsencode(name) if path else os.fsencode(name)


def place(root: Path, path: bytes) -> Path:
    """Where an item of the tree lies."""
    return root / os.fsdecode(path) if path else root


def show(path: Path) -> str:
    """A path for people."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def sizes(root: Path, *, skip: Iterable[Path] = ()) -> Collection[int]:
    """Bytes of each file of a tree, each inode once; of what is no file 0."""
    return {(item.twin or item.path): item.size for item in scan(root, nothing, skip=skip)}.values()


def hashed(path: Path) -> str:
    """The name that the store would give a file's content, without keeping it."""
    found = hashlib.sha256()
    handle = os.open(path, _OPEN)
    try:
        while piece := os.read(handle, _PIECE):
            found.update(piece)
    finally:
        os.close(handle)
    return f"sha256:{found.hexdigest()}"


def nothing(_path: Path) -> str:
    """No content at all: for what changes only modes, owners and times."""
    return ""


def check_budget(root: Path, store: Store, *, skip: Iterable[Path] = ()) -> None:
    """Raises CaptureError where the tree is more than a backup may hold, or than the store has room for."""
    needed = sum(sizes(root, skip=skip))
    if needed > BUDGET:
        raise CaptureError(
            f"{show(root)} holds {needed / 1e9:.1f} GB, more than the {BUDGET / 1e9:.1f} GB that a backup "
            "may take; move it aside instead, or preserve it yourself first"
        )
    if needed > store.room() - _KEPT_FREE:
        raise CaptureError(
            f"{show(root)} holds {needed / 1e6:.0f} MB, and {store.directory} has only "
            f"{store.room() / 1e6:.0f} MB left; make room first"
        )


def digest(items: Iterable[Item]) -> str:
    """A fingerprint of a tree; times of directories are left out, since whatever is put back changes them."""
    found = hashlib.sha256()
    any_item = False
    for item in items:
        any_item = True
        written = write_item(item)
        for name in ("twin", "links", *(("mtime_ns",) if item.kind == DIRECTORY else ())):
            written.pop(name, None)
        found.update(dump_plain(to_plain(written)))
    return found.hexdigest() if any_item else ""


def encode(items: Iterable[Item]) -> bytes:
    """The list of a tree's paths as a payload."""
    listed: list[Json] = [write_item(item) for item in items]
    return dump_plain(to_plain(listed))


def decode(data: bytes) -> list[Item]:
    """Inverts `encode`. Raises DamagedError."""
    found = from_plain(load_plain(data, where="tree"))
    if not isinstance(found, list):
        raise DamagedError("the list of a preserved tree's paths cannot be read")
    return [read_item(Fields(each, "tree")) for each in found]


def write_item(item: Item) -> JsonObject:
    """One path as JSON; what is empty is left out."""
    written: JsonObject = {
        "path": item.path,
        "kind": item.kind,
        "mode": item.mode,
        "uid": item.uid,
        "gid": item.gid,
        "mtime_ns": item.mtime_ns,
    }
    if item.kind == FILE:
        written |= {"size": item.size, "content": item.content}
    if item.links > 1:
        written |= {"twin": item.twin, "links": item.links}
    if item.kind == LINK:
        written["link"] = item.link
    if item.attributes:
        written["attributes"] = dict(item.attributes)
    if item.device:
        written["device"] = item.device
    return written


def read_item(fields: Fields) -> Item:
    """Inverts `write_item`. Raises DamagedError."""
    return Item(
        path=_bytes(fields, "path"),
        kind=fields.text("kind"),
        mode=fields.integer("mode"),
        uid=fields.integer("uid"),
        gid=fields.integer("gid"),
        mtime_ns=fields.integer("mtime_ns"),
        size=fields.integer("size", 0),
        content=fields.text("content", ""),
        link=_bytes(fields, "link"),
        twin=fields.text("twin", ""),
        links=fields.integer("links", 1),
        attributes={
            name: value for name, value in fields.mapping("attributes").items() if isinstance(value, bytes)
        },
        device=fields.integer("device", 0),
    )


def _bytes(fields: Fields, name: str) -> bytes:
    found = fields.get(name)
    if found is None:
        return b""
    if not isinstance(found, bytes):
        raise DamagedError(f"the field {fields.place(name)} is no path")
    return found


def _readable(full: Path, path: bytes, take: Take) -> Item | None:
    try:
        return _look(full, path, take)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise CaptureError(f"{show(full)} cannot be read: {error.strerror or error}") from error


def _inside(full: Path) -> list[Path]:
    try:
        return sorted(full.iterdir(), reverse=True)
    except OSError as error:
        raise CaptureError(f"{show(full)} cannot be read: {error.strerror or error}") from error


def _look(full: Path, path: bytes, take: Take) -> Item:
    status = full.lstat()
    kind = _KINDS.get(stat.S_IFMT(status.st_mode), SOCKET)
    several = kind != DIRECTORY and status.st_nlink > 1
    return Item(
        path=path,
        kind=kind,
        mode=stat.S_IMODE(status.st_mode),
        uid=status.st_uid,
        gid=status.st_gid,
        mtime_ns=status.st_mtime_ns,
        size=status.st_size if kind == FILE else 0,
        content=take(full) if kind == FILE else "",
        link=os.fsencode(full.readlink()) if kind == LINK else b"",
        twin=f"{status.st_dev}:{status.st_ino}" if several else "",
        links=status.st_nlink if several else 1,
        attributes=dict(_attributes(full)),
        device=status.st_rdev if kind in (CHARACTERS, BLOCKS) else 0,
    )


def _attributes(full: Path) -> Iterator[tuple[str, bytes]]:
    try:
        names = os.listxattr(full, follow_symlinks=False)
    except OSError:
        return  # a file system without them
    for name in sorted(names):
        try:
            yield name, os.getxattr(full, name, follow_symlinks=False)
        except OSError:
            continue  # one that only the system may read
