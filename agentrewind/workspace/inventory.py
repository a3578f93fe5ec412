"""The workspace as last seen: a tree of directories with the stat data and object ids of their entries.

It is a cache that is compared with the disk, never trusted over it. A directory whose `tree` and `meta` are
None has changed since its objects were last made; then all its ancestors are in that state too.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import TypeAlias

from agentrewind.workspace.attributes import Attributes
from agentrewind.workspace.sidecar import FileKind, Omission

Line: TypeAlias = tuple[bytes, bytes, bytes]
"""A leaf's name, its entry in a git tree, and its records in a sidecar."""


Listed: TypeAlias = tuple[tuple[bytes, bytes], tuple[bytes, bytes]]
"""A directory's entries in the `files` and the `meta` tree above it, each after what it is sorted by."""


class FileEntry:
    """A file or symbolic link with its stat key and what was captured of it.

    `trusted` means that the stat key was old enough when it was taken: an edit since must have changed it.
    `line` keeps what trees say of it, None where that has to be put together.
    """

    __slots__ = (
        "attributes",
        "ctime_ns",
        "dev",
        "ino",
        "kind",
        "leader",
        "line",
        "mode",
        "mtime_ns",
        "nlink",
        "oid",
        "pieces",
        "size",
        "trusted",
    )

    def __init__(self, kind: FileKind, status: os.stat_result, oid: bytes, pieces: bytes | None) -> None:
        self.kind = kind
        self.oid = oid
        self.pieces = pieces
        self.attributes: Attributes = ()
        self.leader: bytes | None = None
        self.line: Line | None = None
        self.trusted = False
        self.adopt(status)

    def adopt(self, status: os.stat_result) -> None:
        """Take over the stat data."""
        self.mode = status.st_mode & 0o7777
        self.size = status.st_size
        self.mtime_ns = status.st_mtime_ns
        self.ctime_ns = status.st_ctime_ns
        self.ino = status.st_ino
        self.dev = status.st_dev
        self.nlink = status.st_nlink

    def says(self, kind: FileKind, status: os.stat_result, oid: bytes, attributes: Attributes) -> bool:
        """Whether a snapshot would say the same of both (hard-link groups apart)."""
        return (
            self.oid == oid
            and self.kind is kind
            and self.mtime_ns == status.st_mtime_ns
            and self.mode == status.st_mode & 0o7777
            and self.attributes == attributes
        )

    def same_stat(self, status: os.stat_result) -> bool:
        """Whether nothing can have happened to the file, as far as stat data tell."""
        return (
            self.ctime_ns == status.st_ctime_ns
            and self.mtime_ns == status.st_mtime_ns
            and self.size == status.st_size
            and self.ino == status.st_ino
            and self.mode == status.st_mode & 0o7777
            and self.nlink == status.st_nlink
        )


class Directory:
    """A directory of the workspace; names are as `os.fsdecode` gives them.

    `ctime_ns` is 0 unless it was old enough when it was taken: attributes set since must have changed it.
    `plain` means that `meta` is the sidecar itself, `rewritten` that its trees were made here before.
    `listed` keeps what the trees above say of it while `tree` and `meta` stand.
    """

    __slots__ = (
        "attributes",
        "children",
        "ctime_ns",
        "dev",
        "ino",
        "listed",
        "meta",
        "mode",
        "mtime_ns",
        "name",
        "omitted",
        "parent",
        "plain",
        "rewritten",
        "tree",
        "volatile",
    )

    def __init__(self, name: str, parent: Directory | None) -> None:
        self.name = name
        self.parent = parent
        self.mode = 0
        self.mtime_ns = 0
        self.ino = 0
        self.dev = 0
        self.ctime_ns = 0
        self.attributes: Attributes = ()
        self.children: dict[str, Child] = {}
        self.omitted: dict[str, Omission] = {}
        self.volatile: set[str] = set()
        self.tree: bytes | None = None
        self.meta: bytes | None = None
        self.listed: Listed | None = None
        self.plain = False
        self.rewritten = False

    def parts(self) -> tuple[str, ...]:
        """The names from the root to this directory; empty for the root."""
        names = []
        node = self
        while node.parent is not None:
            names.append(node.name)
            node = node.parent
        return tuple(reversed(names))

    def names(self) -> list[str]:
        """Everything that is known to stand in it, left out or not."""
        return [*self.children, *self.omitted, *self.volatile]

    def path_of(self, name: str) -> bytes:
        """The path of one of its entries, relative to the root."""
        return os.fsencode("/".join((*self.parts(), name)))

    def path(self) -> bytes:
        """Its own path, empty for the root."""
        return os.fsencode("/".join(self.parts()))

    def mark(self) -> None:
        """Note that something in this directory changed."""
        node: Directory | None = self
        while node is not None and node.tree is not None:
            node.tree = node.meta = None
            node = node.parent

    def set_own(self, status: os.stat_result, attributes: Attributes) -> None:
        """Take over the directory's own mode, time and attributes."""
        mode = status.st_mode & 0o7777
        if (self.mode, self.mtime_ns) != (mode, status.st_mtime_ns) or self.attributes != attributes:
            self.mode, self.mtime_ns, self.attributes = mode, status.st_mtime_ns, attributes
            self.mark()
        self.ino, self.dev = status.st_ino, status.st_dev

    def walk(self) -> Iterator[Directory]:
        """This directory and all below it."""
        pending = [self]
        while pending:
            node = pending.pop()
            yield node
            pending.extend(child for child in node.children.values() if type(child) is Directory)


Child: TypeAlias = FileEntry | Directory


class Inventory:
    """The tree, and where in it the entries are that need more than a look at changed names.

    Attributes:
        linked: names with more than one hard link, by directory.
        links_changed: whether hard-link groups must be worked out anew.
        omitting: directories with left-out names.
        caching: directories with volatile names.
        dropped: directories that were taken out since somebody last emptied this list.
        parked: what is known of directories that were put off, by where they hang; the next look takes it up.
    """

    def __init__(self) -> None:
        self.root = Directory("", None)
        self.linked: dict[Directory, set[str]] = {}
        self.links_changed = False
        self._fresh_links: set[tuple[int, int]] = set()
        self.omitting: set[Directory] = set()
        self.caching: set[Directory] = set()
        self.dropped: list[Directory] = []
        self.parked: dict[tuple[Directory, str], Directory] = {}

    def put(self, directory: Directory, name: str, child: Child) -> None:
        """Set what stands under a name."""
        self.forget(directory, name)
        directory.children[name] = child
        if type(child) is FileEntry:
            self.note_links(directory, name, child)
        directory.mark()

    def note_links(self, directory: Directory, name: str, entry: FileEntry) -> None:
        """Keep account of an entry whose link count was just read."""
        if entry.nlink > 1:
            self.linked.setdefault(directory, set()).add(name)
            self.links_changed = True
            self._fresh_links.add((entry.dev, entry.ino))
        else:
            self._unlink(directory, name)
            _lead(directory, name, None)

    def omit(self, directory: Directory, name: str, reason: Omission) -> None:
        """Note that a name is left out, and why."""
        if directory.omitted.get(name) is reason and name not in directory.children:
            return
        self.forget(directory, name)
        directory.omitted[name] = reason
        self.omitting.add(directory)
        directory.mark()

    def set_volatile(self, directory: Directory, name: str) -> None:
        """Note that a regenerable cache stands under a name."""
        if name not in directory.volatile:
            self.forget(directory, name)
            directory.volatile.add(name)
            self.caching.add(directory)

    def forget(self, directory: Directory, name: str) -> Directory | None:
        """Drop whatever is known under a name; returns the directory that was there, now detached."""
        if name in directory.volatile:
            directory.volatile.discard(name)
            if not directory.volatile:
                self.caching.discard(directory)
        if directory.omitted.pop(name, None) is not None:
            directory.mark()
            if not directory.omitted:
                self.omitting.discard(directory)
        child = directory.children.pop(name, None)
        if child is None:
            return None
        directory.mark()
        self._unlink(directory, name)
        if type(child) is Directory:
            self._detach(child)
            return child
        return None

    def park(self, directory: Directory, name: str) -> None:
        """Leave a name out until it is looked at again, without losing what is known of what it holds."""
        child = directory.children.get(name)
        self.omit(directory, name, Omission.LATE)
        if type(child) is Directory:
            self.parked[directory, name] = child

    def adopt(self, directory: Directory, name: str, child: Directory) -> None:
        """Hang a directory that was detached elsewhere under a new name, with all that is known of it."""
        child.name, child.parent, child.listed = name, directory, None
        self.put(directory, name, child)
        for node in child.walk():
            if node.omitted:
                self.omitting.add(node)
            if node.volatile:
                self.caching.add(node)
            for leaf, entry in node.children.items():
                if type(entry) is FileEntry and entry.nlink > 1:
                    self.note_links(node, leaf, entry)

    def _unlink(self, directory: Directory, name: str) -> None:
        if not self.linked:
            return
        names = self.linked.get(directory)
        if names is not None and name in names:
            names.discard(name)
            self.links_changed = True
            if not names:
                del self.linked[directory]

    def _detach(self, directory: Directory) -> None:
        directory.parent = None
        self.dropped.append(directory)
        for node in directory.walk():
            self.omitting.discard(node)
            self.caching.discard(node)
            if self.linked.pop(node, None):
                self.links_changed = True

    def omissions(self) -> list[tuple[bytes, Omission]]:
        """Everything that is left out, sorted by path."""
        found = [
            (node.path_of(name), reason) for node in self.omitting for name, reason in node.omitted.items()
        ]
        return sorted(found)

    def relink(self) -> bool:
        """Work out which names are hard links of which path; the first name in walking order leads.

        Returns whether all names are known of the files whose link count was just read; other names of theirs
        may lie outside the workspace, or be names that had no reason to be looked at.
        """
        if not self.links_changed:
            return True
        complete = True
        groups: dict[tuple[int, int], list[tuple[tuple[bytes, ...], Directory, str]]] = {}
        for node, names in self.linked.items():
            for name in names:
                entry = node.children[name]
                if isinstance(entry, FileEntry):
                    groups.setdefault((entry.dev, entry.ino), []).append((_order(node, name), node, name))
        for inode, members in groups.items():
            members.sort(key=lambda member: member[0])
            _, node, name = members[0]
            entry = node.children[name]
            if inode in self._fresh_links and isinstance(entry, FileEntry) and entry.nlink > len(members):
                complete = False
            first = b"/".join(members[0][0])
            for position, (_, node, name) in enumerate(members):
                _lead(node, name, first if position else None)
        self.links_changed = False
        self._fresh_links.clear()
        return complete


def find_present(root: Directory, path: bytes) -> Directory | FileEntry | None:
    """What the inventory has under a path."""
    node: Directory | FileEntry | None = root
    for name in path.split(b"/"):
        node = node.children.get(os.fsdecode(name)) if isinstance(node, Directory) else None
    return node


def _order(node: Directory, name: str) -> tuple[bytes, ...]:
    return tuple(os.fsencode(part) for part in (*node.parts(), name))


def _lead(node: Directory, name: str, leader: bytes | None) -> None:
    entry = node.children[name]
    if isinstance(entry, FileEntry) and entry.leader != leader:
        entry.leader = leader
        entry.line = None
        node.mark()


def with_ancestors(directories: Iterable[Directory]) -> set[Directory]:
    """The directories and all above them."""
    found: set[Directory] = set()
    for directory in directories:
        node: Directory | None = directory
        while node is not None and node not in found:
            found.add(node)
            node = node.parent
    return found
