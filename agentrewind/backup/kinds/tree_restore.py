"""Brings a file, a link or a directory back to what was captured, changing nothing that is equal already."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import IO, Protocol

from agentrewind.backup.kinds.tree import (
    BLOCKS,
    CHARACTERS,
    DIRECTORY,
    FILE,
    LINK,
    SOCKET,
    Item,
    Take,
    hashed,
    nothing,
    place,
    scan,
    show,
)
from agentrewind.errors import AgentRewindError


class Opens(Protocol):
    """Gives payloads by their names."""

    def open(self, name: str) -> IO[bytes]: ...


@dataclass(slots=True)
class TreeRestore:
    """One tree that is put back.

    Attributes:
        root: absolute path of the tree.
        wanted: what was captured, parents first; empty where there was nothing.
        skip: absolute paths that are left as they are.
        contents: whether file contents were captured; without, only modes, owners and times are set.
        first: for files of several names, where the first of them is; shared by trees that go together.
    """

    root: Path
    wanted: Sequence[Item]
    store: Opens
    skip: Sequence[Path] = ()
    contents: bool = True
    first: dict[str, Path] = field(default_factory=dict)
    restored: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def run(self) -> None:
        """Put it back and compare; `restored`, `missing` and `notes` tell what came of it."""
        wanted = {item.path: item for item in self.wanted}
        with suppress(OSError):
            _beside(self.root).unlink()  # left by a restore that was killed
        present = {item.path: item for item in self._scan()}
        steps = plan(present, wanted, contents=self.contents)
        for item in steps.remove:
            self._try(item, self._remove)
        if steps.make:
            self._try(self.wanted[0], lambda _item: self.root.parent.mkdir(parents=True, exist_ok=True))
        made = {item.path for item in steps.make}
        for item in self.wanted:
            if item.twin and item.path not in made:
                self.first.setdefault(item.twin, self._full(item))
        for item in steps.make:
            there = present.get(item.path)
            self._try(item, lambda item, there=there: self._make(item, there))  # type: ignore[misc]
        for item in reversed((*steps.make, *steps.dress, *steps.around)):
            self._try(item, self._dress)
        self._compare(wanted)

    def _compare(self, wanted: Mapping[bytes, Item]) -> None:
        left = plan({item.path: item for item in self._scan()}, wanted, contents=self.contents)
        known = {line.partition(": ")[0] for line in self.missing}
        for item in (*left.remove, *left.make, *left.dress, *left.gone):
            name = self._name(item)
            if name not in known and item.kind != SOCKET:
                self.missing.append(f"{name}: it is not what was preserved")
                known.add(name)
        if not self.wanted or any(self._name(item) not in known for item in self.wanted):
            self.restored.append(show(self.root))

    def _scan(self) -> list[Item]:
        take: Take = hashed if self.contents else nothing
        return scan(self.root, take, skip=self.skip)

    def _name(self, item: Item) -> str:
        return show(self._full(item))

    def _full(self, item: Item) -> Path:
        return place(self.root, item.path)

    def _try(self, item: Item, act: Callable[[Item], None]) -> None:
        try:
            act(item)
        except (OSError, AgentRewindError) as error:
            reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            line = f"{self._name(item)}: {reason}"
            if line not in self.missing:
                self.missing.append(line)

    def _remove(self, item: Item) -> None:
        full = self._full(item)
        self._unlock(item)
        if item.kind != DIRECTORY:
            full.unlink()
        elif not any(full in path.parents for path in self.skip):
            full.rmdir()

    def _unlock(self, item: Item) -> None:
        """Make the directory around an item writable for its owner; its own mode is set again at the end."""
        parent = self._full(item).parent
        if item.path and not os.access(parent, os.W_OK | os.X_OK):
            parent.chmod(stat.S_IMODE(parent.lstat().st_mode) | stat.S_IRWXU)

    def _make(self, item: Item, there: Item | None) -> None:
        full = self._full(item)
        self._unlock(item)
        twin = self.first.get(item.twin) or self._twin_beside(item, full)
        if twin is not None and twin != full:
            _in_place(full, lambda beside: os.link(twin, beside, follow_symlinks=False))
        else:
            self._make_anew(item, full, there)
        if item.twin:
            self.first[item.twin] = full

    def _make_anew(self, item: Item, full: Path, there: Item | None) -> None:
        match item.kind:
            case "dir":
                with suppress(FileExistsError):
                    full.mkdir(0o700)
            case "file":
                self._make_file(item, full, there)
            case "link":
                _in_place(full, lambda beside: beside.symlink_to(os.fsdecode(item.link)))
            case "fifo":
                _in_place(full, lambda beside: os.mkfifo(beside, 0o600))
            case "char" | "block":
                _in_place(full, lambda beside: os.mknod(beside, _device_mode(item), item.device))
            case _:
                self.notes.append(f"{self._name(item)} was a socket; the program that made it makes it anew")

    def _make_file(self, item: Item, full: Path, there: Item | None) -> None:
        if item.twin and there is not None and there.twin == item.twin:
            # its other names lie elsewhere and see the same bytes: they come back with it
            if not os.access(full, os.W_OK):
                full.chmod(there.mode | stat.S_IWUSR)
            with self.store.open(item.content) as source, full.open("r+b") as file:
                shutil.copyfileobj(source, file)
                file.truncate()
        else:
            _in_place(full, lambda beside: self._copy(item, beside))
            names = sum(each.twin == item.twin for each in self.wanted) if item.twin else 1
            if item.links > names:
                self.notes.append(f"{self._name(item)} had other names; it is a file of its own now")

    def _twin_beside(self, item: Item, full: Path) -> Path | None:
        """Another name of the same file in the same directory, where it still has these bytes."""
        if not item.twin or item.kind != FILE:
            return None
        for other in full.parent.iterdir():
            status = other.lstat()
            same = f"{status.st_dev}:{status.st_ino}" == item.twin and stat.S_ISREG(status.st_mode)
            if same and other != full and hashed(other) == item.content:
                return other
        return None

    def _copy(self, item: Item, beside: Path) -> None:
        handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with self.store.open(item.content) as source, os.fdopen(handle, "wb") as file:
            shutil.copyfileobj(source, file)
            file.flush()
            os.fsync(file.fileno())

    def _dress(self, item: Item) -> None:
        """Owner, mode, attributes, times, as far as they differ; a directory's after what it holds."""
        full = self._full(item)
        status = full.lstat()
        if (status.st_uid, status.st_gid) != (item.uid, item.gid):
            os.chown(full, item.uid, item.gid, follow_symlinks=False)
        if self.contents:
            _attribute(full, item.attributes)
        # after the owner, whose change takes the set-user-id bit away
        if item.kind not in (LINK, SOCKET) and stat.S_IMODE(full.lstat().st_mode) != item.mode:
            full.chmod(item.mode)
        if full.lstat().st_mtime_ns != item.mtime_ns:
            os.utime(full, ns=(status.st_atime_ns, item.mtime_ns), follow_symlinks=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What has to be done.

    Attributes:
        remove: deepest first.
        make: parents first.
        dress: only owner, mode, attributes or times differ.
        around: directories whose time changes when something in them is made or removed.
        gone: what is missing and cannot be made, since its contents were not captured.
    """

    remove: tuple[Item, ...] = ()
    make: tuple[Item, ...] = ()
    dress: tuple[Item, ...] = ()
    around: tuple[Item, ...] = ()
    gone: tuple[Item, ...] = ()


def plan(present: Mapping[bytes, Item], wanted: Mapping[bytes, Item], *, contents: bool) -> Plan:
    """How `present` becomes `wanted`. Without contents, what exists is only dressed, and nothing is made."""
    if wanted and not contents:
        there = {path for path, item in wanted.items() if _kind_at(present, path) == item.kind}
        return Plan(
            dress=tuple(
                item for path, item in wanted.items() if path in there and not _dressed(present[path], item)
            ),
            gone=tuple(item for path, item in wanted.items() if path not in there),
        )
    remove = [
        item
        for path, item in present.items()
        if path not in wanted or (item.kind == DIRECTORY) != (wanted[path].kind == DIRECTORY)
    ]
    gone = {item.path for item in remove}
    now = _twins({path: item for path, item in present.items() if path not in gone})
    then = _twins(wanted)
    equal = {
        path
        for path, item in wanted.items()
        if path not in gone and _same(present.get(path), item) and now.get(path) == then.get(path)
    }
    make = [item for path, item in wanted.items() if path not in equal]
    dress = [
        item
        for path, item in wanted.items()
        if path in equal and not _dressed(present[path], item, attributes=True)
    ]
    touched = {item.path.rpartition(b"/")[0] for item in (*remove, *make) if item.path}
    listed = {item.path for item in (*make, *dress)}
    around = [wanted[path] for path in sorted(touched) if path in wanted and path not in listed]
    return Plan(
        remove=tuple(sorted(remove, key=lambda item: item.path, reverse=True)),
        make=tuple(make),
        dress=tuple(dress),
        around=tuple(around),
    )


def _kind_at(present: Mapping[bytes, Item], path: bytes) -> str:
    return present[path].kind if path in present else ""


def _twins(items: Mapping[bytes, Item]) -> dict[bytes, frozenset[bytes]]:
    """For every file of several names in the tree: those names."""
    groups: dict[str, set[bytes]] = {}
    for path, item in items.items():
        if item.twin:
            groups.setdefault(item.twin, set()).add(path)
    return {path: frozenset(group) for group in groups.values() if len(group) > 1 for path in group}


def _same(there: Item | None, item: Item) -> bool:
    return there is not None and (there.kind, there.content, there.link, there.device) == (
        item.kind,
        item.content,
        item.link,
        item.device,
    )


def _dressed(there: Item, item: Item, *, attributes: bool = False) -> bool:
    if attributes and there.attributes != item.attributes:
        return False
    return (there.mode, there.uid, there.gid, there.mtime_ns) == (
        item.mode,
        item.uid,
        item.gid,
        item.mtime_ns,
    )


def _beside(full: Path) -> Path:
    """Where the new file is made; always the same place, so that what a kill leaves is found again."""
    return full.with_name(f".agentrewind-{sha256(os.fsencode(full.name)).hexdigest()[:12]}")


def _in_place(full: Path, make: Callable[[Path], None]) -> None:
    """Make it beside, and then put it in the place of what is there."""
    beside = _beside(full)
    beside.unlink(missing_ok=True)
    try:
        make(beside)
        beside.replace(full)
    finally:
        with suppress(FileNotFoundError):
            beside.unlink()


def _device_mode(item: Item) -> int:
    return {CHARACTERS: 0o020000, BLOCKS: 0o060000}[item.kind] | item.mode


def _attribute(full: Path, wanted: Mapping[str, bytes]) -> None:
    try:
        there = set(os.listxattr(full, follow_symlinks=False))
    except OSError:
        return
    for name in there - wanted.keys():
        os.removexattr(full, name, follow_symlinks=False)
    for name, value in wanted.items():
        if name not in there or os.getxattr(full, name, follow_symlinks=False) != value:
            os.setxattr(full, name, value, follow_symlinks=False)
