"""Keeps an inventory between processes, so that a fresh one need not read every file again.

The file is a cache of what one commit holds: it is used only if that commit is in the store, and every entry
in it is compared with the disk before it counts. A damaged or foreign file is the same as none.
"""

from __future__ import annotations

import hashlib
import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from agentrewind.records import CommitId
from agentrewind.workspace.attributes import Attributes
from agentrewind.workspace.inventory import Directory, FileEntry, Inventory
from agentrewind.workspace.pack_writer import replace_file
from agentrewind.workspace.sidecar import FileKind, Omission

_MAGIC = b"agentrewind-stat-cache 2\n"
_DIRECTORY = struct.Struct("<IqQQ20s20sIIII?")
_FILE = struct.Struct("<cHqqqQQI20s20s??")
_NO_PIECES = bytes(20)
_LENGTH = struct.Struct("<I")


@dataclass(frozen=True, slots=True, kw_only=True)
class CachedInventory:
    """An inventory, the commit it was the same as, and the ref under which that was made."""

    inventory: Inventory
    commit: CommitId
    ref: str


def save_inventory(path: Path, cached: CachedInventory) -> None:
    """Write the cache; by rename, so that a reader sees all of it or what was there before.

    Raises:
        OSError: it cannot be written.
    """
    parts = [_MAGIC, f"{cached.commit} {cached.ref}\n".encode()]
    _encode(cached.inventory.root, parts)
    body = b"".join(parts)
    replace_file(path, body + hashlib.sha1(body, usedforsecurity=False).digest())


def load_inventory(path: Path) -> CachedInventory | None:
    """The cache that was saved last, None where there is none that can be used."""
    try:
        data = path.read_bytes()
        body, checksum = data[:-20], data[-20:]
        if not body.startswith(_MAGIC) or hashlib.sha1(body, usedforsecurity=False).digest() != checksum:
            return None
        end = body.index(b"\n", len(_MAGIC))
        commit, _, ref = body[len(_MAGIC) : end].decode().partition(" ")
        inventory = Inventory()
        _decode(body, end + 1, inventory, inventory.root)
    except (OSError, ValueError, KeyError, StopIteration, struct.error):
        return None
    return CachedInventory(inventory=inventory, commit=CommitId(commit), ref=ref)


def _encode(directory: Directory, parts: list[bytes]) -> None:
    files = [(name, child) for name, child in directory.children.items() if isinstance(child, FileEntry)]
    inner = [child for child in directory.children.values() if isinstance(child, Directory)]
    owners: list[Directory | FileEntry] = [directory, *(entry for _, entry in files)]
    dressed = [_attributes_text(owner.attributes) for owner in owners if owner.attributes]
    parts.append(
        _DIRECTORY.pack(
            directory.mode,
            directory.mtime_ns,
            directory.ino,
            directory.dev,
            directory.tree or bytes(20),
            directory.meta or bytes(20),
            len(files),
            len(inner),
            len(directory.omitted),
            len(dressed),
            bool(directory.attributes),
        )
    )
    names = [name for name, _ in files] + [child.name for child in inner]
    names += [name for pair in directory.omitted.items() for name in pair]
    names += dressed
    names += [os.fsdecode(entry.leader or b"") for _, entry in files if entry.nlink > 1]
    text = os.fsencode("\0".join(names))
    parts.append(_LENGTH.pack(len(text)))
    parts.append(text)
    pack = _FILE.pack
    parts += [
        pack(
            entry.kind.value.encode(),
            entry.mode,
            entry.size,
            entry.mtime_ns,
            entry.ctime_ns,
            entry.ino,
            entry.dev,
            entry.nlink,
            entry.oid,
            entry.pieces or _NO_PIECES,
            entry.trusted,
            bool(entry.attributes),
        )
        for _, entry in files
    ]
    for child in inner:
        _encode(child, parts)


def _decode(body: bytes, position: int, inventory: Inventory, directory: Directory) -> int:
    mode, mtime, ino, dev, tree, meta, *counts, own = _DIRECTORY.unpack_from(body, position)
    files, inner, omitted, dressed = counts
    position += _DIRECTORY.size
    (length,) = _LENGTH.unpack_from(body, position)
    position += _LENGTH.size
    text = body[position : position + length]
    names = os.fsdecode(text).split("\0")
    position += length
    directory.mode, directory.mtime_ns, directory.ino, directory.dev = mode, mtime, ino, dev
    end = files + inner + 2 * omitted
    attributes = map(_attributes, names[end : end + dressed])
    leaders = iter(names[end + dressed :])
    directory.attributes = next(attributes) if own else ()
    for name in names[:files]:
        entry = _entry(body, position, attributes)
        position += _FILE.size
        directory.children[name] = entry
        if entry.nlink > 1:
            entry.leader = os.fsencode(next(leaders)) or None
            inventory.note_links(directory, name, entry)
    for name in names[files : files + inner]:
        child = Directory(name, directory)
        position = _decode(body, position, inventory, child)
        directory.children[name] = child
    rest = names[files + inner : end]
    for name, reason in zip(rest[::2], rest[1::2], strict=True):
        directory.omitted[name] = Omission(reason)
        inventory.omitting.add(directory)
    if tree != bytes(20):
        directory.tree, directory.meta = tree, meta
        in_pieces = any(type(child) is FileEntry and child.pieces for child in directory.children.values())
        directory.plain = directory.parent is not None and not inner and not in_pieces
    return position


_KINDS = {kind.value.encode(): kind for kind in FileKind}


def _attributes_text(attributes: Attributes) -> str:
    return ",".join(f"{name.hex()}={value.hex()}" for name, value in attributes)


def _attributes(text: str) -> Attributes:
    pairs = (pair.split("=") for pair in text.split(","))
    return tuple((bytes.fromhex(name), bytes.fromhex(value)) for name, value in pairs)


def _entry(body: bytes, position: int, attributes: Iterator[Attributes]) -> FileEntry:
    kind, mode, size, mtime, ctime, ino, dev, nlink, oid, pieces, *flags = _FILE.unpack_from(body, position)
    entry = FileEntry.__new__(FileEntry)
    entry.kind = _KINDS[kind]
    entry.mode, entry.size, entry.mtime_ns, entry.ctime_ns = mode, size, mtime, ctime
    entry.ino, entry.dev, entry.nlink, entry.oid = ino, dev, nlink, oid
    entry.pieces = None if pieces == _NO_PIECES else pieces
    entry.leader = None
    entry.line = None
    entry.attributes = next(attributes) if flags[1] else ()
    entry.trusted = flags[0]
    return entry
