"""Takes PNG files apart into chunks, and puts them together."""

import struct
import zlib

SIGNATURE = b"\x89PNG\r\n\x1a\n"


class Damaged(Exception):
    """The file is no sound PNG image."""


def read_chunks(data, lenient=False):
    """The chunks as (type, data); Damaged where a checksum is wrong, unless lenient, or the file is cut short."""
    if not data.startswith(SIGNATURE):
        raise Damaged("no PNG signature")
    chunks = []
    place = len(SIGNATURE)
    while place < len(data):
        if place + 12 > len(data):
            raise Damaged("ends within a chunk")
        length, kind = struct.unpack(">I4s", data[place : place + 8])
        body = data[place + 8 : place + 8 + length]
        if len(body) < length or place + 12 + length > len(data):
            raise Damaged("ends within a chunk")
        (check,) = struct.unpack(">I", data[place + 8 + length : place + 12 + length])
        if check != zlib.crc32(body) and not lenient:
            raise Damaged("wrong checksum in " + kind.decode("latin-1"))
        chunks.append((kind.decode("latin-1"), body))
        place += 12 + length
        if kind == b"IEND":
            break
    if not chunks or chunks[-1][0] != "IEND":
        raise Damaged("has no end")
    if place != len(data) and not lenient:
        raise Damaged("something follows the end")
    return chunks


def write_chunks(chunks):
    """The bytes of an image made of these chunks."""
    parts = [SIGNATURE]
    for kind, body in chunks:
        name = kind.encode("latin-1")
        parts.append(struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(body)))
    return b"".join(parts)
