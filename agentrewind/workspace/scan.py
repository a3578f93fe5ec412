"""Brings the inventory up to date with the disk, by a full walk or by looking at what is in doubt.

Every step goes through a file descriptor of the directory above and never follows a link, so that a
directory swapped for a link in the middle of a walk leads nowhere.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Mapping
from typing import Protocol

from agentrewind.workspace.attributes import read_attributes
from agentrewind.workspace.contents import Captured, Sink, capture_file, capture_link
from agentrewind.workspace.inventory import Directory, FileEntry, Inventory
from agentrewind.workspace.open_path import OPEN_DIRECTORY, OpenPath
from agentrewind.workspace.policy import PathClass, Policy
from agentrewind.workspace.sidecar import FileKind, Omission

MAX_DEPTH = 180
"""Directories within each other; each takes four calls within each other, and Python allows a thousand."""

_ATTEMPTS = 4
_SMALL = 1 << 16


class Observer(Protocol):
    """Told of each directory just before it is listed, with its open descriptor."""

    def observe(self, handle: int, directory: Directory) -> None: ...


class LostTrackError(Exception):
    """The inventory does not match the disk where it was expected to; a full walk is due."""


class Scanner:
    """One update of an inventory.

    Args:
        root: descriptor of the workspace's root.
        inventory: what is known; changed in place.
        policy: the path rules.
        sink: gets the objects of what is read.
        trusted_before_ns: files stamped later may change again without a change of their stat data.
        observer: a watcher that wants to see every directory.
        late: whether the deadline has passed; what is not known by then is put off and left out.
    """

    def __init__(
        self,
        root: int,
        inventory: Inventory,
        policy: Policy,
        sink: Sink,
        *,
        trusted_before_ns: int,
        observer: Observer | None = None,
        late: Callable[[], bool] = lambda: False,
    ) -> None:
        self._root = root
        self._inventory = inventory
        self._policy = policy
        self._sink = sink
        self._trusted_before = trusted_before_ns
        self._observer = observer
        self.late = late
        self._detached: dict[tuple[int, int], Directory] = {}
        self._judged: Directory = inventory.root
        self._judge = policy.judge_in(b"")
        self.doubtful: set[tuple[Directory, str]] = set()
        """Names to look at again next time: what could not be read, and files whose stat data are too fresh
        to tell whether they changed since they were read."""

    def everything(self) -> None:
        """Walk the whole workspace."""
        self._list(self._root, self._inventory.root, depth=0)
        self._inventory.relink()

    def some(self, doubts: Mapping[Directory, Mapping[str, bool]]) -> None:
        """Look at the given names; True with a name asks to list a directory that stands there anew.

        Raises:
            LostTrackError: a directory is not where it was, or a file has names that are not known.
        """
        for directory, names in doubts.items():
            if True in names.values() and self._attached(directory):
                self._look_for_moves(directory, names)
        # by parents, so that those are opened once
        places = sorted((directory.parts(), number) for number, directory in enumerate(doubts))
        directories = list(doubts)
        path = OpenPath(self._root)
        try:
            for parts, number in places:
                directory = directories[number]
                if self._attached(directory):
                    self._examine_some(path.to(directory), directory, doubts[directory], depth=len(parts))
        finally:
            path.close()
        if not self._inventory.relink():
            raise LostTrackError

    def _attached(self, directory: Directory) -> bool:
        node = directory
        while node.parent is not None:
            node = node.parent
        return node is self._inventory.root

    def _look_for_moves(self, directory: Directory, names: Mapping[str, bool]) -> None:
        """Detach directories that are gone first, so that one that was renamed is known by its inode."""
        children = directory.children
        if not any(renewed and type(children.get(name)) is Directory for name, renewed in names.items()):
            return
        path = OpenPath(self._root)
        try:
            handle = path.to(directory)
            if handle is None:
                raise LostTrackError
            for name in names:
                child = children.get(name)
                if type(child) is Directory:
                    self._detach_if_gone(handle, directory, name, child)
        finally:
            path.close()

    def _detach_if_gone(self, handle: int, directory: Directory, name: str, child: Directory) -> None:
        try:
            status = os.stat(name, dir_fd=handle, follow_symlinks=False)
        except OSError:
            status = None
        if status is None or (status.st_dev, status.st_ino) != (child.dev, child.ino):
            self._forget(directory, name)

    def _examine_some(
        self, handle: int | None, directory: Directory, names: Mapping[str, bool], *, depth: int
    ) -> None:
        if handle is None:
            raise LostTrackError
        for name, renewed in names.items():
            if not self._reread(handle, directory, name):
                self._examine(handle, directory, name, depth=depth, descend=renewed)
        self._set_own(directory, handle, os.fstat(handle))

    def _reread(self, handle: int, directory: Directory, name: str) -> bool:
        """Read a small file: its contents tell as quickly as stat data what changed. False if it is none."""
        known = directory.children.get(name)
        if type(known) is not FileEntry or known.kind is not FileKind.FILE or self.late():
            return False
        if known.size > _SMALL or known.nlink > 1:
            return False
        captured = capture_file(handle, name, self._sink, limit=self._policy.max_file_bytes, late=self.late)
        if captured is None:
            return False
        self._take(handle, directory, name, captured)
        return True

    def _set_own(self, directory: Directory, handle: int, status: os.stat_result) -> None:
        attributes = directory.attributes
        if directory.ctime_ns != status.st_ctime_ns:
            # after the look at the time: whatever is set meanwhile changes it once more
            attributes = read_attributes(handle)
        directory.set_own(status, attributes)
        directory.ctime_ns = status.st_ctime_ns if status.st_ctime_ns < self._trusted_before else 0

    def _list(self, handle: int, directory: Directory, *, depth: int) -> None:
        """Bring one directory and all below it up to date."""
        if self._observer is not None:
            self._observer.observe(handle, directory)
        for _ in range(_ATTEMPTS):
            before = os.fstat(handle)
            names = names_in(handle)
            for known in (directory.children, directory.omitted, directory.volatile):
                for name in known.keys() - names if isinstance(known, dict) else known.difference(names):
                    self._forget(directory, name)
            for name in self._not_as_known(handle, directory, names):
                self._examine(handle, directory, name, depth=depth, descend=True)
            after = os.fstat(handle)
            self._set_own(directory, handle, after)
            if after.st_mtime_ns == before.st_mtime_ns:
                return

    def _not_as_known(self, handle: int, directory: Directory, names: list[str]) -> list[str]:
        """The names but for those of files that are as they were; a walk spends nearly all its time here."""
        known, look = directory.children.get, os.lstat
        others = []
        for name in names:
            entry = known(name)
            if type(entry) is FileEntry and entry.trusted:
                try:
                    status = look(name, dir_fd=handle)
                except OSError:
                    others.append(name)
                    continue
                if (  # as in `same_stat`, without the call
                    entry.ctime_ns == status.st_ctime_ns
                    and entry.mtime_ns == status.st_mtime_ns
                    and entry.size == status.st_size
                    and entry.ino == status.st_ino
                    and entry.mode == status.st_mode & 0o7777
                    and entry.nlink == status.st_nlink
                ):
                    continue
            others.append(name)
        return others

    def _examine(self, handle: int, directory: Directory, name: str, *, depth: int, descend: bool) -> None:
        """Bring one name up to date; `descend` also looks into a directory that is already known."""
        try:
            status = os.stat(name, dir_fd=handle, follow_symlinks=False)
        except FileNotFoundError:
            self._forget(directory, name)
            return
        except OSError:
            self._omit(directory, name, Omission.UNREADABLE)
            return
        known = directory.children.get(name)
        if type(known) is FileEntry and known.trusted and known.same_stat(status):
            return
        self._update(handle, directory, name, status, depth=depth, descend=descend)

    def _update(
        self,
        handle: int,
        directory: Directory,
        name: str,
        status: os.stat_result,
        *,
        depth: int,
        descend: bool,
    ) -> None:
        known = directory.children.get(name)
        kind = stat.S_IFMT(status.st_mode)
        if known is None or (type(known) is Directory) is not (kind == stat.S_IFDIR):
            if self._judged is not directory:
                self._judged, self._judge = directory, self._policy.judge_in(directory.path())
            match self._judge(name, kind == stat.S_IFDIR):
                case PathClass.EXCLUDED:
                    self._inventory.omit(directory, name, Omission.EXCLUDED)
                    return
                case PathClass.VOLATILE:
                    self._inventory.set_volatile(directory, name)
                    return
                case PathClass.TRACKED:
                    pass
        if kind == stat.S_IFDIR:
            self._enter(handle, directory, name, status, depth=depth, descend=descend)
        elif self.late():
            self._put_off(directory, name)
        else:
            self._read(handle, directory, name, status)

    def _read(self, handle: int, directory: Directory, name: str, status: os.stat_result) -> None:
        kind = stat.S_IFMT(status.st_mode)
        if kind == stat.S_IFREG:
            limit = self._policy.max_file_bytes
            captured = capture_file(handle, name, self._sink, limit=limit, late=self.late)
            self._take(handle, directory, name, captured)
        elif kind == stat.S_IFLNK:
            self._take(handle, directory, name, capture_link(handle, name, status, self._sink))
        else:
            self._inventory.omit(directory, name, Omission.SPECIAL)

    def _enter(
        self,
        handle: int,
        directory: Directory,
        name: str,
        status: os.stat_result,
        *,
        depth: int,
        descend: bool,
    ) -> None:
        child = directory.children.get(name)
        same = isinstance(child, Directory) and (child.dev, child.ino) == (status.st_dev, status.st_ino)
        if same and not descend:
            return
        if self.late():
            self._put_off(directory, name)
            return
        if not same:
            child = self._newcomer(directory, name, status)
        assert isinstance(child, Directory)
        if depth >= MAX_DEPTH:
            self._omit(directory, name, Omission.TOO_DEEP)
            return
        try:
            inner = os.open(name, OPEN_DIRECTORY, dir_fd=handle)
        except PermissionError:
            self._omit(directory, name, Omission.UNREADABLE)
            return
        except OSError:
            self._changed_kind(handle, directory, name, depth=depth)
            return
        try:
            self._list(inner, child, depth=depth + 1)
        finally:
            os.close(inner)

    def _newcomer(self, directory: Directory, name: str, status: os.stat_result) -> Directory:
        """The directory that hangs under a name from now on, with what is known of it from elsewhere."""
        inode = (status.st_dev, status.st_ino)
        parked = self._inventory.parked.pop((directory, name), None)
        moved = self._detached.pop(inode, None)
        if moved is not None and not self._policy.judges_alike_anywhere(directory.path_of(name)):
            moved = None
        known = directory.children.get(name)
        if parked is not None and (parked.dev, parked.ino) == inode:
            moved = parked
        if moved is not None:
            self._forget(directory, name)
            self._inventory.adopt(directory, name, moved)
            return moved
        if isinstance(known, Directory):
            return known
        child = Directory(name, directory)
        self._inventory.put(directory, name, child)
        return child

    def _put_off(self, directory: Directory, name: str) -> None:
        self._inventory.park(directory, name)
        self.doubtful.add((directory, name))

    def _changed_kind(self, handle: int, directory: Directory, name: str, *, depth: int) -> None:
        """The name was something else a moment ago: judge it by what it is now."""
        self._forget(directory, name)
        try:
            status = os.stat(name, dir_fd=handle, follow_symlinks=False)
        except OSError:
            return
        if stat.S_ISDIR(status.st_mode):
            self._omit(directory, name, Omission.UNSTABLE)
        else:
            self._update(handle, directory, name, status, depth=depth, descend=True)

    def _take(
        self, handle: int, directory: Directory, name: str, captured: Captured | Omission | None
    ) -> None:
        if captured is None:
            # the name vanished or changed its kind between the look and the reading
            try:
                os.stat(name, dir_fd=handle, follow_symlinks=False)
            except OSError:
                self._forget(directory, name)
            else:
                self._omit(directory, name, Omission.UNSTABLE)
            return
        if isinstance(captured, Omission):
            self._omit(directory, name, captured)
            return
        status = captured.status
        trusted = captured.settled and max(status.st_mtime_ns, status.st_ctime_ns) < self._trusted_before
        if not trusted:
            self.doubtful.add((directory, name))
        known = directory.children.get(name)
        if not isinstance(known, FileEntry):
            entry = FileEntry(captured.kind, status, captured.oid, captured.pieces)
            entry.attributes = captured.attributes
            entry.trusted = trusted
            self._inventory.put(directory, name, entry)
            return
        if not known.says(captured.kind, status, captured.oid, captured.attributes):
            known.line = None
            directory.mark()
        known.kind, known.oid, known.pieces = captured.kind, captured.oid, captured.pieces
        known.attributes = captured.attributes
        known.trusted = trusted
        known.adopt(status)
        self._inventory.note_links(directory, name, known)

    def _omit(self, directory: Directory, name: str, reason: Omission) -> None:
        self._inventory.omit(directory, name, reason)
        if not reason.by_rule:
            self.doubtful.add((directory, name))  # to be tried again, whether or not anything tells of it

    def _forget(self, directory: Directory, name: str) -> None:
        gone = self._inventory.forget(directory, name)
        if gone is not None and self._policy.judges_alike_anywhere(directory.path_of(name)):
            self._detached[(gone.dev, gone.ino)] = gone


def names_in(handle: int) -> list[str]:
    """The names in an open directory."""
    return os.listdir(handle)
