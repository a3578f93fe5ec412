"""Makes the git trees and sidecars of directories that changed, and reads them back.

A snapshot's tree has three entries: `files` holds the workspace under its real names, `meta` mirrors its
directories (each with its sidecar as `m`, sub-directories as `d<name>`, pieces of large files as `c<name>`; a
directory with neither is its sidecar alone), and `policy` is a blob with the path rules in force.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass

from agentrewind.workspace.contents import Sink
from agentrewind.workspace.inventory import Directory, FileEntry, Line, Listed
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
