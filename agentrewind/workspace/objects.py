"""Git's object and pack encodings, as far as a store that only ever adds whole objects needs them."""

from __future__ import annotations

import hashlib
import importlib
import struct
import zlib
from bisect import bisect_left
from collections.abc import Callable, Iterable
from itertools import count
from typing import NamedTuple

COMMIT, TREE, BLOB = 1, 2, 3
KIND_NAMES = {COMMIT: b"commit", TREE: b"tree", BLOB: b"blob"}
_PREFIXES = {COMMIT: b"commit %d\0", TREE: b"tree %d\0", BLOB: b"blob %d\0"}
_LONG = 1 << 16

MODE_DIRECTORY = 0o040000
MODE_FILE = 0o100644
MODE_EXECUTABLE = 0o100755
MODE_LINK = 0o120000

_STORED_BLOCK = 0xFFFF
_BLOCK = struct.Struct("<BHH")
_CHECKSUM = struct.Struct(">I")
_SMALL = 512
_PROBE = 1 << 14
_ALREADY_PACKED = (
    b"\x78\x01",  # a loose git object, and zlib streams in general
    b"\x78\x9c",
    b"\x78\x5e",
    b"\x78\xda",
    b"PACK",
    b"\x1f\x8b",
    b"PK\x03\x04",
    b"\x89PNG",
    b"\xff\xd8\xff",
    b"\x28\xb5\x2f\xfd",
    b"\xfd7zXZ",
)


def _compressor() -> Callable[[bytes, int], bytes]:
    try:  # optional: the same zlib format, several times faster
        faster: Callable[[bytes, int], bytes] = importlib.import_module("isal.isal_zlib").compress
    except ImportError:
        return _compress
    return faster


def _compress(data: bytes, level: int) -> bytes:
    # a window no larger than the data: to make ready a larger one takes longer than to compress a small file
    size = len(data)
    return zlib.compress(data, level, 13 if size <= 1 << 13 else 14 if size <= 1 << 14 else 15)


_fast_compress = _compressor()


class TreeItem(NamedTuple):
    """One entry of a git tree; `oid` is the binary object id."""

    mode: int
    name: bytes
    oid: bytes


class IndexEntry(NamedTuple):
    """Where an object stands in a pack, and the checksum of its packed bytes."""

    oid: bytes
    offset: int
    crc: int


def object_id(kind: int, data: bytes) -> bytes:
    """The binary SHA-1 under which git knows this object."""
    prefix = _PREFIXES[kind] % len(data)
    if len(data) < _LONG:
        return hashlib.sha1(prefix + data, usedforsecurity=False).digest()
    digest = hashlib.sha1(prefix, usedforsecurity=False)
    digest.update(data)
    return digest.digest()


class CommitText(NamedTuple):
    """What a commit says: binary ids of its tree and parents, the committer's time in seconds, a message."""

    tree: bytes
    parents: tuple[bytes, ...]
    at: int
    message: bytes


def decode_commit(data: bytes) -> CommitText:
    """A commit of any program.

    Raises:
        ValueError: the bytes are no commit.
    """
    header, _, message = data.partition(b"\n\n")
    pairs = [(key, value) for key, _, value in (line.partition(b" ") for line in header.split(b"\n"))]
    trees = [bytes.fromhex(value.decode()) for key, value in pairs if key == b"tree"]
    times = [int(value.split()[-2]) for key, value in pairs if key == b"committer" and value.count(b" ") > 1]
    parents = tuple(bytes.fromhex(value.decode()) for key, value in pairs if key == b"parent")
    if len(trees) != 1 or len(times) != 1 or any(len(oid) != 20 for oid in (*trees, *parents)):
        raise ValueError("it names no tree or no committer")
    return CommitText(tree=trees[0], parents=parents, at=times[0], message=message)


def encode_tree(items: Iterable[TreeItem]) -> bytes:
    """A git tree; the items may come in any order, names must be distinct."""
    # git sorts a directory as if its name ended in a slash
    ordered = sorted(
        (name + b"/" if mode == MODE_DIRECTORY else name, mode, name, oid) for mode, name, oid in items
    )
    return b"".join([b"%o %s\0%s" % (mode, name, oid) for _, mode, name, oid in ordered])


def decode_tree(data: bytes) -> list[TreeItem]:
    """The entries of a git tree in its own order.

    Raises:
        ValueError: the bytes are no tree.
    """
    items = []
    position, end = 0, len(data)
    while position < end:
        space = data.index(b" ", position)
        zero = data.index(b"\0", space)
        oid = data[zero + 1 : zero + 21]
        if len(oid) != 20:
            raise ValueError("a tree ends in the middle of an entry")
        items.append(TreeItem(int(data[position:space], 8), data[space + 1 : zero], oid))
        position = zero + 21
    return items


def deflate(data: bytes) -> bytes:
    """A zlib stream of the data, compressed only where that is likely to pay."""
    if len(data) <= _SMALL or data.startswith(_ALREADY_PACKED):
        return store_only(data)
    if len(data) > 4 * _PROBE and len(_fast_compress(data[:_PROBE], 1)) > _PROBE * 15 // 16:
        return store_only(data)
    return _fast_compress(data, 1)


def store_only(data: bytes) -> bytes:
    """A zlib stream that holds the data as it is; far cheaper to make than a compressed one."""
    size = len(data)
    if size <= _STORED_BLOCK:
        return b"\x78\x01" + _BLOCK.pack(1, size, size ^ 0xFFFF) + data + _CHECKSUM.pack(zlib.adler32(data))
    blocks = [b"\x78\x01"]
    for start in range(0, size, _STORED_BLOCK):
        block = data[start : start + _STORED_BLOCK]
        last = start + _STORED_BLOCK >= size
        blocks.append(_BLOCK.pack(last, len(block), len(block) ^ 0xFFFF))
        blocks.append(block)
    blocks.append(_CHECKSUM.pack(zlib.adler32(data)))
    return b"".join(blocks)


def pack_entry(kind: int, data: bytes) -> bytes:
    """An object as it stands in a pack."""
    size = len(data)
    packed = store_only(data) if kind == TREE or size <= _SMALL else deflate(data)
    # the usual sizes without a loop: four bits in the first byte, seven in each that follows
    if 16 <= size < 1 << 11:
        return bytes((kind << 4 | size & 15 | 0x80, size >> 4)) + packed
    if 1 << 11 <= size < 1 << 18:
        return bytes((kind << 4 | size & 15 | 0x80, size >> 4 & 0x7F | 0x80, size >> 11)) + packed
    header = bytearray()
    first = (kind << 4) | (size & 15)
    size >>= 4
    while size:
        header.append(first | 0x80)
        first = size & 0x7F
        size >>= 7
    header.append(first)
    return bytes(header) + packed


def pack_header(count: int) -> bytes:
    return b"PACK" + struct.pack(">II", 2, count)


def encode_index(entries: Iterable[IndexEntry], pack_checksum: bytes) -> bytes:
    """A version 2 pack index."""
    ordered = sorted(entries)
    ids, offsets, crcs = zip(*ordered, strict=True) if ordered else ((), (), ())
    fan_out = [bisect_left(ids, bytes((byte,))) for byte in range(1, 256)] + [len(ids)]
    large: list[int] = []
    if offsets and max(offsets) >= 1 << 31:
        large = [offset for offset in offsets if offset >= 1 << 31]
        numbers = count()
        offsets = tuple(offset if offset < 1 << 31 else (1 << 31) | next(numbers) for offset in offsets)
    body = b"".join(
        [
            b"\xfftOc" + struct.pack(">I", 2),
            struct.pack(">256I", *fan_out),
            b"".join(ids),
            struct.pack(f">{len(crcs)}I", *crcs),
            struct.pack(f">{len(offsets)}I", *offsets),
            struct.pack(f">{len(large)}Q", *large),
            pack_checksum,
        ]
    )
    return body + hashlib.sha1(body, usedforsecurity=False).digest()


def index_ids(index: bytes) -> list[bytes]:
    """The ids that a version 2 pack index lists.

    Raises:
        ValueError: the bytes are no such index.
    """
    if index[:8] != b"\xfftOc\0\0\0\2" or len(index) < 1032 + 40:
        raise ValueError("not a version 2 pack index")
    (count,) = struct.unpack_from(">I", index, 1028)
    names = index[1032 : 1032 + 20 * count]
    if len(index) < 1032 + 28 * count + 40:
        raise ValueError("a pack index is cut short")
    return [names[start : start + 20] for start in range(0, len(names), 20)]


def decode_index(index: bytes) -> list[IndexEntry]:
    """All that a version 2 pack index says.

    Raises:
        ValueError: the bytes are no such index.
    """
    ids = index_ids(index)
    count = len(ids)
    crcs = struct.unpack_from(f">{count}I", index, 1032 + 20 * count)
    offsets = struct.unpack_from(f">{count}I", index, 1032 + 24 * count)
    large = 1032 + 28 * count
    return [
        IndexEntry(
            oid,
            offset
            if offset < 1 << 31
            else struct.unpack_from(">Q", index, large + 8 * (offset & 0x7FFF_FFFF))[0],
            crc,
        )
        for oid, offset, crc in zip(ids, offsets, crcs, strict=True)
    ]
