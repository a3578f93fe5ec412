"""The store of snapshots: a private bare git repository that is only ever read and added to here.

It is never reached through the git program; no configuration, attribute, hook or environment variable of git
has a say.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from datetime import datetime
from fcntl import LOCK_EX, LOCK_NB, LOCK_SH, LOCK_UN, flock
from pathlib import Path

from agentrewind.durable import make_directory
from agentrewind.errors import MissingSnapshotError, UnsupportedFormatError, UsageError
from agentrewind.records import Change, CommitId
from agentrewind.workspace import differences, refs, views
from agentrewind.workspace.objects import (
    BLOB,
    COMMIT,
    MODE_DIRECTORY,
    MODE_FILE,
    TREE,
    TreeItem,
    decode_commit,
    encode_tree,
)
from agentrewind.workspace.pack_writer import PackWriter, replace_file, storage_errors
from agentrewind.workspace.packs import PackedObjects
from agentrewind.workspace.trees import DirectoryIds, StoredDirectory, sidecar_id, stored_directory

STORE_FORMAT = 2
_FORMAT_FILE = "agentrewind-store"
_COMMIT_ID = re.compile(r"[0-9a-f]{40}")
_IDENTITY = b"AgentRewind <snapshots@agentrewind.invalid>"
SETTINGS = {
    "HEAD": b"ref: refs/heads/none\n",
    "config": b"[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = true\n",
    # should the git program ever touch the store, it rewrites no bytes
    "info/attributes": b"* -text -eol -filter -ident -working-tree-encoding\n",
}
"""What the git program would read as settings; equal in every store."""
_FILES = {**SETTINGS, _FORMAT_FILE: b"%d\n" % STORE_FORMAT}


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitInfo:
    """A snapshot: its trees, the blob of its path rules, its predecessor, when and what for."""

    commit: CommitId
    root: DirectoryIds
    policy: bytes
    parents: tuple[CommitId, ...]
    label: str
    at: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitLinks:
    """The objects that a commit names."""

    tree: bytes
    parents: tuple[bytes, ...]


class SnapshotStore(PackedObjects):
    """The snapshots of one workspace; safe to be used by several processes at once.

    Use `open`. Writers share a lock that only `exclusively` (for gc) keeps out.
    """

    def __init__(self, git_dir: Path) -> None:
        super().__init__(git_dir)
        self._lock_path = git_dir / "agentrewind.lock"
        self._generation = b""
        self._shallow: frozenset[bytes] = frozenset()
        self._format = STORE_FORMAT
        self._directories: dict[DirectoryIds, StoredDirectory] = {}

    @classmethod
    def open(cls, git_dir: Path) -> SnapshotStore:
        """The store in this directory, made (readable by its owner only) where there is none.

        Raises:
            StorageError: it cannot be made or read.
            UnsupportedFormatError: a newer version made it.
        """
        with storage_errors(git_dir):
            for name in ("objects/pack", "refs", "info"):
                make_directory(git_dir / name)
            for name, data in _FILES.items():
                if not (git_dir / name).exists():
                    replace_file(git_dir / name, data)
            (git_dir / "agentrewind.lock").touch(mode=0o600)
            found = (git_dir / _FORMAT_FILE).read_bytes().strip()
        if not found.isdigit() or int(found) > STORE_FORMAT:
            raise UnsupportedFormatError(found=int(found) if found.isdigit() else -1, known=STORE_FORMAT)
        store = cls(git_dir)
        store.reload()
        store._format = int(found)
        return store

    @contextmanager
    def writing(self) -> Iterator[bytes]:
        """Hold gc off while objects are added and named; gives the `generation` of the store."""
        with self.holding_gc_off():
            generation = self.generation()
            if generation != self._generation:
                self.reload()
            if self._format < STORE_FORMAT:
                # before anything that an older version would take for damage
                with storage_errors(self.git_dir):
                    replace_file(self.git_dir / _FORMAT_FILE, _FILES[_FORMAT_FILE])
                self._format = STORE_FORMAT
            yield generation

    def holding_gc_off(self) -> AbstractContextManager[None]:
        """Keep what others have half written from being swept, without looking at what changed."""
        return self._held(LOCK_SH)

    @contextmanager
    def exclusively(self) -> Iterator[None]:
        """Keep every writer out, and tell them afterwards that objects may be gone."""
        with self._held(LOCK_EX):
            self.reload()
            try:
                yield
            finally:
                with storage_errors(self.git_dir):
                    replace_file(self.git_dir / "generation", os.urandom(8).hex().encode())
                self.reload()

    @contextmanager
    def packing(self) -> Iterator[bool]:
        """Let one process at a time replace packs by others; gives whether it is this one."""
        with storage_errors(self.git_dir):
            handle = os.open(self.git_dir / "packing.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            try:
                flock(handle, LOCK_EX | LOCK_NB)
            except BlockingIOError:
                yield False
            else:
                yield True
        finally:
            _let_go(handle)

    @contextmanager
    def _held(self, kind: int) -> Iterator[None]:
        with storage_errors(self.git_dir):
            # one of its own for each holder, so that no thread lets go of what another one holds
            handle = os.open(self._lock_path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            with storage_errors(self.git_dir):
                flock(handle, kind)
            yield
        finally:
            _let_go(handle)

    def generation(self) -> bytes:
        """Another one than before tells that a gc ran: objects may be gone."""
        try:
            return (self.git_dir / "generation").read_bytes()
        except FileNotFoundError:
            return b""

    def reload(self) -> None:
        """See what other processes did to the store."""
        with storage_errors(self.git_dir):
            self._generation = self.generation()
            self._shallow = refs.read_shallow(self.git_dir)
        super().reload()

    def directory(self, ids: DirectoryIds) -> StoredDirectory:
        """A directory of some snapshot."""
        known = self._directories.get(ids)
        if known is not None:
            return known
        kind, meta = self.read(ids.meta)
        try:
            meta, sidecar = (b"", meta) if kind == BLOB else (meta, self.blob(sidecar_id(meta)))
            found = stored_directory(self.read_as(ids.tree, TREE), meta, sidecar)
        except ValueError as error:
            raise MissingSnapshotError(ids.meta.hex(), str(error)) from error
        if len(self._directories) >= 4096:
            self._directories.clear()
        self._directories[ids] = found
        return found

    # commits and refs

    def add_commit(
        self,
        writer: PackWriter,
        *,
        root: DirectoryIds,
        policy: bytes,
        parents: Sequence[CommitId],
        label: str,
        at: str,
    ) -> CommitId:
        """Add a commit to the pack that holds its objects; `at` is ISO 8601 text."""
        items = [
            TreeItem(MODE_DIRECTORY, b"files", root.tree),
            TreeItem(MODE_DIRECTORY, b"meta", root.meta),
            TreeItem(MODE_FILE, b"policy", policy),
        ]
        tree = writer.add(TREE, encode_tree(items))
        stamp = b"%s %d +0000" % (_IDENTITY, int(datetime.fromisoformat(at).timestamp()))
        lines = [
            b"tree " + tree.hex().encode(),
            *[b"parent " + parent.encode() for parent in parents],
            b"author " + stamp,
            b"committer " + stamp,
            b"",
            label.encode("utf-8", "backslashreplace") + b"\n",
        ]
        return CommitId(writer.add(COMMIT, b"\n".join(lines)).hex())

    def commit_links(self, oid: bytes) -> CommitLinks:
        """What a commit of any program leads to.

        Raises:
            MissingSnapshotError: it is missing or damaged.
        """
        try:
            found = decode_commit(self.read_as(oid, COMMIT))
        except ValueError as error:
            raise MissingSnapshotError(oid.hex(), f"the commit is damaged ({error})") from error
        return CommitLinks(tree=found.tree, parents=() if oid in self._shallow else found.parents)

    def commit(self, commit: CommitId) -> CommitInfo:
        """What a commit says.

        Raises:
            UsageError: not a commit id.
            MissingSnapshotError: it is missing, damaged, or none of ours.
        """
        if not _COMMIT_ID.fullmatch(commit):
            raise UsageError(f"{commit!r} is no snapshot id; one has 40 hexadecimal digits")
        oid = bytes.fromhex(commit)
        try:
            found = decode_commit(self.read_as(oid, COMMIT))
            items = {item.name: item.oid for item in self.tree(found.tree)}
            return CommitInfo(
                commit=commit,
                root=DirectoryIds(tree=items[b"files"], meta=items[b"meta"]),
                policy=items[b"policy"],
                parents=() if oid in self._shallow else tuple(CommitId(one.hex()) for one in found.parents),
                label=found.message.decode("utf-8", "replace").rstrip("\n"),
                at=found.at,
            )
        except MissingSnapshotError as error:
            raise MissingSnapshotError(commit, error.reason) from error
        except (KeyError, ValueError) as error:
            raise MissingSnapshotError(commit, "it was not made by this program") from error

    def is_ancestor(self, commit: CommitId, tip: CommitId) -> bool:
        """Whether the history of a commit, itself included, holds another one."""
        pending, seen = [tip], {tip}
        while pending:
            found = pending.pop()
            if found == commit:
                return True
            fresh = set(self.commit(found).parents) - seen
            pending += fresh
            seen |= fresh
        return False

    def refs(self) -> dict[str, CommitId]:
        """All refs and what they name."""
        return refs.read_refs(self.git_dir)

    def ref(self, name: str) -> CommitId | None:
        """What a ref names, None where there is no such ref."""
        return refs.read_ref(self.git_dir, name)

    def set_ref(self, name: str, commit: CommitId, *, durable: bool = False) -> None:
        """Make a ref name a commit."""
        refs.write_ref(self.git_dir, name, commit, durable=durable)

    def set_shallow(self, commits: Iterable[bytes]) -> None:
        """Let these commits count as having no predecessors, since those were lost."""
        refs.write_shallow(self.git_dir, commits)
        self._shallow = refs.read_shallow(self.git_dir)

    def delete_ref(self, name: str) -> None:
        """Forget a ref; its snapshots may be dropped by the next gc. An absent ref is no error."""
        refs.delete_ref(self.git_dir, name)

    # what a snapshot holds

    def entries(self, commit: CommitId) -> Iterator[views.SnapshotEntry]:
        """Everything in a snapshot, directories before what they hold, sorted by name."""
        with naming(commit):
            yield from views.entries(self, self.commit(commit).root)

    def read_file(self, commit: CommitId, path: bytes) -> bytes:
        """The bytes of a file, or the target of a symbolic link.

        Raises:
            UsageError: the snapshot holds no file of that path.
            MissingSnapshotError: the store is damaged.
        """
        with naming(commit):
            found = views.find(self, self.commit(commit).root, path)
            if found is None or found.kind is views.EntryKind.DIRECTORY:
                raise UsageError(f"snapshot {commit} holds no file {views.shown(path)!r}")
            return b"".join(views.contents(self, found))

    def diff(self, before: CommitId, after: CommitId, *, known: bool = False) -> tuple[Change, ...]:
        """What changed from one snapshot to another, sorted by path; times alone are no change.

        With `known`, nothing is said of what one of them did not look at in time.
        """
        roots = self.commit(before).root, self.commit(after).root
        try:
            return differences.diff(self, *roots, known=known)
        except MissingSnapshotError:
            for commit in (before, after):
                self.left_out(commit)  # reads all of it, so that the error names the one that is damaged
            raise

    def left_out(self, commit: CommitId) -> tuple[str, ...]:
        """What a snapshot does not hold and why, as `path (reason)`."""
        with naming(commit):
            return tuple(
                f"{views.shown(path)} ({why.explanation})"
                for path, why in views.omissions(self, self.commit(commit).root)
            )


@contextmanager
def naming(commit: CommitId) -> Iterator[None]:
    """Let an error about an object of a snapshot name that snapshot, which is what people know."""
    try:
        yield
    except MissingSnapshotError as error:
        if error.commit == commit:
            raise
        raise MissingSnapshotError(commit, f"object {error.commit}: {error.reason}") from error


def _let_go(handle: int) -> None:
    flock(handle, LOCK_UN)  # a child that was forked meanwhile has the descriptor as well
    os.close(handle)
