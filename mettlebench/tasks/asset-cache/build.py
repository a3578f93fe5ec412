"""Builds assets, some of them lost, and the old program's cache, which has them all in some generation."""

from __future__ import annotations

import hashlib
import json
import random
import struct
import zlib
from dataclasses import dataclass

from mettlebench.craft import Craft

WORDS = ("cart", "hero", "grid", "price", "badge", "menu", "footer", "search", "badge-größe", "sale")
SUFFIXES = (".css", ".js", ".svg", ".html")


@dataclass(frozen=True, kw_only=True)
class Held:
    """One entry of a cache."""

    name: str
    generation: int
    content: bytes
    method: int
    pack: int
    damaged: bool = False

    @property
    def key(self) -> bytes:
        return hashlib.sha256(b"2\0" + self.name.encode()).digest()[:16]

    @property
    def sha256(self) -> str:
        return "damaged" if self.damaged else hashlib.sha256(self.content).hexdigest()


def content(chance: random.Random, name: str) -> bytes:
    lines = [f"/* {name} */"]
    for _ in range(chance.randrange(3, 20)):
        lines.append(
            f".{chance.choice(WORDS)} {{ order: {chance.randrange(10**5)} }}" + " " * chance.randrange(3)
        )
        lines += [""] * chance.randrange(2)
    return "\n".join(lines).encode() + b"\n" * chance.randrange(3)


def names(chance: random.Random, count: int) -> list[str]:
    found: list[str] = []
    while len(found) < count:
        name = f"{chance.choice(('shop', 'mail', 'kiosk'))}/{chance.choice(WORDS)}{chance.choice(SUFFIXES)}"
        if name not in found:
            found.append(name)
    return sorted(found)


def make_cache(seed: int, assets: list[str], orphans: list[str]) -> list[Held]:
    chance = random.Random(seed)
    held = []
    for name in (*assets, *orphans):
        for generation in range(1, chance.choice((2, 2, 2, 3, 4))):
            held.append(
                Held(
                    name=name,
                    generation=generation,
                    content=content(chance, name),
                    method=chance.randrange(2),
                    pack=chance.randrange(3),
                )
            )
    chance.shuffle(held)
    return held


def cache_files(held: list[Held]) -> dict[str, bytes]:
    """The files of a cache; what is damaged has a byte wrong in its pack."""
    packs: dict[int, bytes] = {}
    index = b"ACI2" + struct.pack("<I", len(held))
    for each in held:
        pack = packs.get(each.pack, b"PACK")
        stored = zlib.compress(each.content) if each.method else each.content
        index += each.key + struct.pack("<BBI", each.pack, each.method, len(pack))
        index += struct.pack("<II", len(stored), len(each.content))
        index += struct.pack("<II", zlib.crc32(each.content), each.generation)
        if each.damaged:
            stored = stored[:9] + bytes([stored[9] ^ 0x41]) + stored[10:]
        packs[each.pack] = pack + stored
    return {"index.bin": index, **{f"pack-{number:02}.bin": data for number, data in sorted(packs.items())}}


def _story() -> tuple[dict[str, Held], list[Held], dict[str, bytes]]:
    """The published generation of each asset, the cache, and the originals that are there."""
    chance = random.Random(3)
    assets = names(chance, 28)
    held = make_cache(4, assets, ["shop/old-hero.css", "kiosk/clock.js", "mail/spring.html"])
    current: dict[str, Held] = {}
    for name in assets:
        own = sorted((each for each in held if each.name == name), key=lambda each: each.generation)
        # a release was taken back now and then, so that the last generation is not always the published one
        current[name] = own[-2] if len(own) > 1 and chance.random() < 0.5 else own[-1]
    spoilt = [each for each in held if each not in current.values()][:2]
    held = [
        Held(
            name=each.name,
            generation=each.generation,
            content=each.content,
            method=each.method,
            pack=each.pack,
            damaged=each in spoilt,
        )
        for each in held
    ]
    lost = set(chance.sample(assets, 12))
    there = {name: current[name].content for name in assets if name not in lost}
    for name in sorted(there)[:3]:
        there[name] += b".edited { order: 1 }\n"
    return current, held, there


CURRENT, CACHE, THERE = _story()
LOST = sorted(set(CURRENT) - set(THERE))
ORIGINALS = THERE | {name: CURRENT[name].content for name in LOST}


def state(each: Held) -> str:
    if each.damaged:
        return "damaged"
    if each.name not in CURRENT:
        return "orphan"
    return "published" if each.sha256 == CURRENT[each.name].sha256 else "older"


def published(data: bytes) -> bytes:
    lines = [line.rstrip() for line in data.splitlines()]
    return b"".join(line + b"\n" for line in lines if line)


def manifest() -> bytes:
    digests = {name: hashlib.sha256(published(data)).hexdigest() for name, data in ORIGINALS.items()}
    return (json.dumps(digests, indent=1, sort_keys=True) + "\n").encode()


def build(craft: Craft) -> None:
    for name, data in cache_files(CACHE).items():
        craft.write(f".cache/{name}", data)
    for name, data in THERE.items():
        craft.write(f"assets/{name}", data)
    craft.csv(
        "assets.csv", ("name", "sha256"), [(name, each.sha256) for name, each in sorted(CURRENT.items())]
    )
