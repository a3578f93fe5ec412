"""Makes the git trees and sidecars of directories that changed, and reads them back.

A snapshot's tree has three entries: `files` holds the workspace under its real names, `meta` mirrors its
directories (each with its sidecar as `m`, sub-directories as `d<name>`, pieces of large files as `c<name>`),
and `policy` is a blob with the path rules in force.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass

from agentrewind.workspace.contents import Sink
from agentrewind.workspace.inventory import Directory, FileEntry
from agentrewind.workspace.objects import (
    BLOB,
    MODE_DIRECTORY,
    MODE_LINK,
    TREE,
    decode_tree,
)
from agentrewind.workspace.sidecar import (
    FileKind,
    Sidecar,
    attribute_records,
    decode_sidecar,
    directory_record,
    file_record,
    join_records,
)

SIDECAR = b"m"

_ENCODING = sys.getfilesystemencoding()
_ERRORS = sys.getfilesystemencodeerrors()


def write_trees(directory: Directory, sink: Sink) -> tuple[bytes, bytes]:
    """The ids of a directory's `files` and `meta` trees, made anew only where something changed."""
    if directory.tree is not None and directory.meta is not None:
        return directory.tree, directory.meta
    tree: list[tuple[bytes, bytes, bytes]] = []
    meta: list[tuple[bytes, bytes, bytes]] = []
    records: list[tuple[bytes, bytes]] = []
    for name, child in directory.children.items():
        raw = name.encode(_ENCODING, _ERRORS)
        if type(child) is Directory:
            inner_tree, inner_meta = child.tree, child.meta
            if inner_tree is None or inner_meta is None:
                inner_tree, inner_meta = write_trees(child, sink)
            sorted_as = raw + b"/"
            tree.append((sorted_as, b"40000 " + raw, inner_tree))
            meta.append((b"d" + sorted_as, b"40000 d" + raw, inner_meta))
        elif isinstance(child, FileEntry):
            tree.append((raw, _git_mode(child) + raw, child.oid))
            if child.pieces is not None:
                meta.append((b"c" + raw + b"/", b"40000 c" + raw, child.pieces))
            record = file_record(child.kind, child.mode, child.mtime_ns, child.size, raw, child.leader)
            if child.attributes and child.leader is None:
                record += attribute_records(child.attributes)
            records.append((raw, record))
    omitted = {os.fsencode(name): reason for name, reason in directory.omitted.items()}
    own = directory_record(directory.mode, directory.mtime_ns, directory.attributes)
    sidecar = join_records(own, records, omitted)
    meta.append((SIDECAR, b"100644 " + SIDECAR, sink.add(BLOB, sidecar)))
    directory.tree = sink.add(TREE, _joined(tree))
    directory.meta = sink.add(TREE, _joined(meta))
    return directory.tree, directory.meta


def _joined(items: list[tuple[bytes, bytes, bytes]]) -> bytes:
    """A tree from sorting keys, modes with names, and ids: `encode_tree` as a hot path needs it."""
    items.sort()
    return b"".join([b"%s\0%s" % (entry, oid) for _, entry, oid in items])


def _git_mode(entry: FileEntry) -> bytes:
    if entry.kind is FileKind.LINK:
        return b"120000 "
    return b"100755 " if entry.mode & 0o100 else b"100644 "


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectoryIds:
    """The two trees of a stored directory."""

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
    """A directory from the bytes of its two trees and its sidecar.

    Raises:
        ValueError: they do not fit together.
    """
    items = {item.name: item for item in decode_tree(tree)}
    beside = {item.name: item.oid for item in decode_tree(meta)}
    facts = decode_sidecar(sidecar)
    directories = {}
    for name, item in items.items():
        if item.mode == MODE_DIRECTORY:
            inner = beside.get(b"d" + name)
            if inner is None:
                raise ValueError(f"directory {name!r} has no sidecar")
            directories[name] = DirectoryIds(tree=item.oid, meta=inner)
        elif name not in facts.files:
            raise ValueError(f"the sidecar does not know {name!r}")
    blobs = {name: item.oid for name, item in items.items() if item.mode != MODE_DIRECTORY}
    missing = sorted(set(facts.files) - set(blobs))
    if missing:
        raise ValueError(f"the sidecar names {missing[0]!r}, the tree does not")
    return StoredDirectory(
        sidecar=facts,
        blobs=blobs,
        pieces={name[1:]: oid for name, oid in beside.items() if name.startswith(b"c")},
        links=frozenset(name for name, item in items.items() if item.mode == MODE_LINK),
        directories=directories,
    )


def sidecar_id(meta: bytes) -> bytes:
    """The blob that holds the sidecar, from the bytes of a `meta` tree.

    Raises:
        ValueError: it names none.
    """
    for item in decode_tree(meta):
        if item.name == SIDECAR:
            return item.oid
    raise ValueError("a directory without a sidecar")
