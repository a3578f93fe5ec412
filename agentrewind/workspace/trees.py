"""Makes the git trees and sidecars of directories that changed, and reads them back.

A snapshot's tree has three entries: `files` holds the workspace under its real names, `meta` mirrors its
directories (each with its sidecar as `m`, sub-directories as `d<name>`, pieces of large files as `c<name>`; a
directory with neither is its sidecar alone), and `policy` is a blob with the path rules in force.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from agentrewind.workspace.contents import Sink
from agentrewind.workspace.inventory import Directory, FileEntry, Line, Listed
from agentrewind.workspace.objects import (
    BLOB,
    MODE_DIRECTORY,
    MODE_EXECUTABLE,
    MODE_FILE,
    MODE_LINK,
    TREE,
    TreeItem,
    decode_tree,
)
from agentrewind.workspace.sidecar import (
    FileFacts,
    FileKind,
    Sidecar,
    attribute_records,
    decode_sidecar,
    directory_record,
    file_record,
    join_records,
)

SIDECAR = b"m"

_MODES = frozenset((MODE_DIRECTORY, MODE_EXECUTABLE, MODE_FILE, MODE_LINK))
_NO_NAMES = frozenset((b"", b".", b".."))
_MOST_MODE = 0o7777
_SECOND = 10**9
_TIMES = range(-(1 << 63) * _SECOND, (1 << 63) * _SECOND)
"""Nanoseconds that the system takes: whole seconds are a signed number of 64 bits."""

_ENCODING = sys.getfilesystemencoding()
_ERRORS = sys.getfilesystemencodeerrors()


def write_trees(directory: Directory, sink: Sink) -> tuple[bytes, bytes]:
    """The ids of a directory's `files` tree and of its `meta`, made anew only where something changed."""
    if directory.tree is not None and directory.meta is not None:
        return directory.tree, directory.meta
    lines: list[Line] = []
    tree: list[tuple[bytes, bytes]] = []
    meta: list[tuple[bytes, bytes]] = []
    for name, child in directory.children.items():
        if type(child) is FileEntry:
            line = child.line or _line(name, child, keep=directory.rewritten)
            lines.append(line)
            if child.pieces is not None:
                meta.append((b"c" + line[0] + b"/", b"40000 c%s\0%s" % (line[0], child.pieces)))
        elif type(child) is Directory:
            in_tree, in_meta = _listed(name, child, sink)
            tree.append(in_tree)
            meta.append(in_meta)
    lines.sort()
    if tree:
        tree += [line[:2] for line in lines]
        tree.sort()
    directory.tree = sink.add(TREE, b"".join([entry[1] for entry in tree or lines]))
    directory.meta = _write_meta(directory, [record for _, _, record in lines], meta, sink)
    directory.rewritten = True
    return directory.tree, directory.meta


def _line(name: str, entry: FileEntry, *, keep: bool) -> Line:
    raw = name.encode(_ENCODING, _ERRORS)
    record = file_record(entry.kind, entry.mode, entry.mtime_ns, entry.size, raw, entry.leader)
    if entry.attributes and entry.leader is None:
        record += attribute_records(entry.attributes)
    mode = b"100755" if entry.mode & 0o100 else b"100644"
    if entry.kind is FileKind.LINK:
        mode = b"120000"
    line = raw, b"%s %s\0%s" % (mode, raw, entry.oid), record
    if keep:  # where work goes on; elsewhere it would only take room
        entry.line = line
    return line


def _listed(name: str, child: Directory, sink: Sink) -> Listed:
    """How a directory stands in the two trees above it."""
    if child.tree is not None and child.listed is not None:
        return child.listed
    tree, meta = write_trees(child, sink)
    raw = name.encode(_ENCODING, _ERRORS)
    # git sorts a directory as if its name ended in a slash
    in_tree = raw + b"/", b"40000 %s\0%s" % (raw, tree)
    if child.plain:
        child.listed = in_tree, (b"d" + raw, b"100644 d%s\0%s" % (raw, meta))
    else:
        child.listed = in_tree, (b"d" + raw + b"/", b"40000 d%s\0%s" % (raw, meta))
    return child.listed


def _write_meta(
    directory: Directory, records: list[bytes], inside: list[tuple[bytes, bytes]], sink: Sink
) -> bytes:
    omitted = {os.fsencode(name): reason for name, reason in directory.omitted.items()}
    own = directory_record(directory.mode, directory.mtime_ns, directory.attributes)
    sidecar = sink.add(BLOB, join_records(own, records, omitted))
    directory.plain = not inside and directory.parent is not None
    if directory.plain:
        return sidecar
    inside.append((SIDECAR, b"100644 %s\0%s" % (SIDECAR, sidecar)))
    inside.sort()
    return sink.add(TREE, b"".join([entry for _, entry in inside]))


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectoryIds:
    """The two trees of a stored directory; `meta` may be its sidecar."""

    tree: bytes
    meta: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredDirectory:
    """A directory of a snapshot: its sidecar, the blobs of its leaves, its sub-directories."""

    sidecar: Sidecar
    blobs: Mapping[bytes, bytes]
    pieces: Mapping[bytes, bytes]
    links: frozenset[bytes]
    directories: Mapping[bytes, DirectoryIds]


def stored_directory(tree: bytes, meta: bytes, sidecar: bytes) -> StoredDirectory:
    """A directory from the bytes of its two trees and its sidecar, which may come from anywhere.

    Raises:
        ValueError: they do not fit together, or hold what no directory can have: a name that leads elsewhere,
            a time or mode out of range.
    """
    items = _by_name(tree)
    beside = _by_name(meta)
    facts = decode_sidecar(sidecar)
    _check_facts(facts)
    directories = {}
    for name, item in items.items():
        if name in facts.omitted:
            raise ValueError(f"{_quoted(name)} is in the tree, and left out by the sidecar")
        if item.mode == MODE_DIRECTORY:
            inner = beside.get(b"d" + name)
            if inner is None:
                raise ValueError(f"the directory {_quoted(name)} has no sidecar")
            if name in facts.files:
                raise ValueError(f"{_quoted(name)} is a directory in the tree and none in the sidecar")
            directories[name] = DirectoryIds(tree=item.oid, meta=inner.oid)
        elif name not in facts.files:
            raise ValueError(f"the sidecar does not know {_quoted(name)}")
        else:
            _check_leaf(name, item, facts.files[name], in_pieces=b"c" + name in beside)
    missing = sorted(set(facts.files) - set(items))
    if missing:
        raise ValueError(f"the sidecar names {_quoted(missing[0])}, the tree does not")
    return StoredDirectory(
        sidecar=facts,
        blobs={name: item.oid for name, item in items.items() if item.mode != MODE_DIRECTORY},
        pieces={name[1:]: item.oid for name, item in beside.items() if name.startswith(b"c")},
        links=frozenset(name for name, item in items.items() if item.mode == MODE_LINK),
        directories=directories,
    )


def _by_name(tree: bytes) -> dict[bytes, TreeItem]:
    items = decode_tree(tree)
    found = {item.name: item for item in items}
    _check_names(found)
    if len(found) != len(items):
        raise ValueError("the tree names something twice")
    if not _MODES.issuperset(item.mode for item in items):
        raise ValueError("the tree holds something that is no directory, file or symbolic link")
    order = [item.name + b"/" if item.mode == MODE_DIRECTORY else item.name for item in items]
    if order != sorted(order):
        raise ValueError("the tree is not in the order that git demands")
    return found


def _check_names(names: Collection[bytes]) -> None:
    """Raise ValueError for what would lead out of its directory."""
    # all at once: a restore reads every name of the snapshot
    if not _NO_NAMES.isdisjoint(names) or b"/" in b"".join(names):
        bad = next(name for name in names if name in _NO_NAMES or b"/" in name)
        raise ValueError(f"{_quoted(bad)} cannot be a name in a directory")


def _check_facts(sidecar: Sidecar) -> None:
    _check_names(sidecar.omitted)
    if not 0 <= sidecar.mode <= _MOST_MODE or sidecar.mtime_ns not in _TIMES:
        raise ValueError("the mode or modification time of the directory is out of range")
    for name, facts in sidecar.files.items():
        if not 0 <= facts.mode <= _MOST_MODE or facts.mtime_ns not in _TIMES:
            raise ValueError(f"the mode or modification time of {_quoted(name)} is out of range")


def _check_leaf(name: bytes, item: TreeItem, facts: FileFacts, *, in_pieces: bool) -> None:
    if facts.leader is not None:
        _check_names(facts.leader.split(b"/"))
    elif (facts.kind is FileKind.LINK) is not (item.mode == MODE_LINK):
        raise ValueError(f"{_quoted(name)} is a symbolic link by its tree or its sidecar, not by both")
    elif (facts.kind is FileKind.PIECES) is not in_pieces:
        raise ValueError(f"{_quoted(name)} is in pieces by its sidecar or has pieces, not both")


def _quoted(name: bytes) -> str:
    text = name.decode("utf-8", "backslashreplace")
    return repr(text if len(text) < 200 else text[:200] + "…")


def sidecar_id(meta: bytes) -> bytes:
    """The blob that holds the sidecar, from the bytes of a `meta` tree.

    Raises:
        ValueError: it names none.
    """
    for item in decode_tree(meta):
        if item.name == SIDECAR:
            return item.oid
    raise ValueError("a directory without a sidecar")
