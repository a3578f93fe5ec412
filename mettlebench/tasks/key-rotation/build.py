"""Builds vault, archives and keys; which record holds what, and which was tampered with, is known here."""

from __future__ import annotations

import base64
import functools
import hashlib
import hmac
import json
import random
import subprocess
from dataclasses import dataclass, replace

from mettlebench.craft import Craft

KEYS = {name: hashlib.sha256(f"vault {name}".encode()).hexdigest() for name in ("k1", "k2", "k3")}
PLACES = ("archive-2021.tar.gz", "archive-2023.tar.gz", "vault")


@dataclass(frozen=True, kw_only=True)
class Held:
    """One record, where it is, and what is in it."""

    place: str
    id: str
    format: int
    key: str
    iv: str
    content: bytes
    tampered: bool


def crypt(content: bytes, key: str, iv: str) -> bytes:
    command = ["openssl", "enc", "-aes-256-ctr", "-K", key, "-iv", iv]
    return subprocess.run(command, input=content, capture_output=True, check=True).stdout


def record(held: Held) -> dict[str, object]:
    key = KEYS[held.key]
    raw = crypt(held.content, key, held.iv)
    data = base64.b64encode(raw).decode() if held.format == 1 else raw.hex()
    text = data if held.format == 1 else "|".join((held.id, held.key, held.iv, data))
    seal = hmac.new(bytes.fromhex(key), text.encode(), hashlib.sha256).hexdigest()
    if held.tampered:
        seal = seal[:10] + ("0" if seal[10] != "0" else "1") + seal[11:]
    return {"id": held.id, "format": held.format, "key": held.key, "iv": held.iv, "data": data, "mac": seal}


def records(seed: int, count: int, tampered: int) -> list[Held]:
    chance = random.Random(seed)
    made = []
    for number in range(count):
        place = PLACES[number % 3]
        form = 1 if place == PLACES[0] or chance.random() < 0.3 else 2
        text = f"{chance.choice(('IBAN', 'pass', 'token', 'größe'))} {chance.randrange(10**12)}\n"
        made.append(
            Held(
                place=place,
                id=f"r{number:03}",
                format=form,
                key=chance.choice(("k1", "k2") if form == 1 else ("k2", "k3")),
                iv=f"{chance.randrange(16**32):032x}",
                content=text.encode() * chance.randrange(1, 5),
                tampered=False,
            )
        )
    bad = {each.id for each in chance.sample(made, tampered)}
    made = [replace(each, tampered=each.id in bad) for each in made]
    return sorted(made, key=lambda each: (each.place, each.id))


HELD = records(2026, 66, 5)


@functools.cache
def file_bytes(held: Held) -> bytes:
    return (json.dumps(record(held), indent=1) + "\n").encode()


def build(craft: Craft) -> None:
    for name, key in KEYS.items():
        craft.write(f"keys/{name}.key", key + "\n", mode=0o600)
    craft.write("keys/ring.json", json.dumps({"current": "k3", "keys": list(KEYS)}) + "\n")
    for held in HELD:
        if held.place == "vault":
            craft.write(f"vault/{held.id}.json", file_bytes(held))
    for place in PLACES[:2]:
        own = [held for held in HELD if held.place == place]
        craft.tar(f"archive/{place}", {f"records/{held.id}.json": file_bytes(held) for held in own})
