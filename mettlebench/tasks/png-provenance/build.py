"""Builds the photo archive: small pictures whose text chunks are of all three kinds, two of them damaged."""

from __future__ import annotations

import random
import struct
import zlib
from dataclasses import dataclass

from mettlebench.craft import Craft

SIGNATURE = b"\x89PNG\r\n\x1a\n"
AUTHORS = ("Jürg Amstad", "Žofie Dvořáková", "Søren Holm", "Łucja Żak", "Inês Prado", "Ola Berg")
LICENCES = {
    "NK": ("CC-BY-4.0", "2019-12-31"),
    "HF": ("CC0-1.0", "2030-12-31"),
    "OS": ("CC-BY-SA-4.0", "2012-06-30"),
}
KEPT = ("IHDR", "PLTE", "tRNS", "gAMA", "IDAT", "IEND")

Chunk = tuple[str, bytes]


@dataclass(frozen=True, kw_only=True)
class Photo:
    """One photo of the archive as it is handed out."""

    name: str
    width: int
    height: int
    capture: str
    author: str
    taken: str
    data: bytes
    pixels: bytes
    damaged: bool

    @property
    def licence(self) -> str | None:
        licence, last = LICENCES.get(self.capture.split("-")[0], ("", ""))
        return licence if licence and self.taken <= last else None


def image(chunks: list[Chunk]) -> bytes:
    parts = [SIGNATURE]
    for kind, body in chunks:
        typed = kind.encode() + body
        parts.append(struct.pack(">I", len(body)) + typed + struct.pack(">I", zlib.crc32(typed)))
    return b"".join(parts)


def text_chunk(keyword: str, text: str, kind: str) -> Chunk:
    try:
        plain = text.encode("latin-1")
    except UnicodeEncodeError:
        kind = "iTXt" if kind == "tEXt" else kind + "!"
        plain = b""
    key = keyword.encode("latin-1") + b"\0"
    if kind == "tEXt":
        return kind, key + plain
    if kind == "zTXt":
        return kind, key + b"\0" + zlib.compress(plain)
    if kind == "iTXt":
        return kind, key + b"\0\0" + b"cs\0Autor\0" + text.encode()
    return "iTXt", key + b"\1\0" + b"\0\0" + zlib.compress(text.encode())


def photos() -> list[Photo]:
    chance = random.Random(36)
    made = []
    for number in range(1, 37):
        width, height = chance.randrange(4, 15), chance.randrange(4, 15)
        pixels = b"".join(b"\0" + chance.randbytes(3 * width) for _ in range(height))
        series = chance.choice(("NK", "NK", "HF", "OS", "OS", "WM"))
        capture = f"{series}-{chance.randrange(100, 999):04}"
        author = chance.choice(AUTHORS)
        taken = f"20{chance.randrange(8, 24):02}-{chance.randrange(1, 13):02}-{chance.randrange(1, 29):02}"
        kinds = [chance.choice(("tEXt", "zTXt", "iTXt")) for _ in range(3)]
        facts = {"Author": author, "Capture": capture, "Taken": taken}
        notes = [text_chunk(*fact, kind) for fact, kind in zip(facts.items(), kinds, strict=True)]
        body = zlib.compress(pixels)
        half = len(body) // 2
        chunks: list[Chunk] = [("IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))]
        if number % 4 == 0:
            chunks.append(("gAMA", struct.pack(">I", 45455)))
        chunks += [notes[0], ("tIME", bytes(7)), notes[1], ("IDAT", body[:half]), ("IDAT", body[half:])]
        chunks += [notes[2], ("IEND", b"")]
        data = image(chunks)
        damaged = number in (11, 29)
        if damaged:
            data = data[:-30] + bytes([data[-30] ^ 64]) + data[-29:] if number == 11 else data[:-9]
        made.append(
            Photo(
                name=f"scan-{number:03}.png",
                width=width,
                height=height,
                capture=capture,
                author=author,
                taken=taken,
                data=data,
                pixels=pixels,
                damaged=damaged,
            )
        )
    return made


def build(craft: Craft) -> None:
    for photo in photos():
        craft.write(f"photos/{photo.name}", photo.data)
