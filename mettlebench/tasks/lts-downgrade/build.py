"""Builds a host with shelf 2.1 installed, its stores, and the archive of shelf 1.8."""

from __future__ import annotations

import hashlib
import json
import random
import zlib
from dataclasses import dataclass, field

from mettlebench.craft import Craft

STORES = ("archive", "desk", "garden", "kitchen", "lab", "office", "travel", "workshop")
TEXTS = (
    "Order more seals.\nThe blue ones, not the grey.",
    "Meeting moved\u2028to Thursday",
    "",
    "Key is with Ö. Brandt\tasks for Tuesday",
    "C:\\temp is full\nagain",
    "formula:\x0cE = mc²\x85",
    "done",
)

INIT = '"""Notes on a shelf."""\n\n__version__ = "{}"\n'
STORE_2 = '''"""Stores of format 2: items with all their revisions."""

import zlib

MAGIC = b"SHELF\\x02"


def load(path):
    """(key, tags, [(time, text or None), ...]) of each item, by key."""
    with open(path, "rb") as file:
        data = file.read()
    if not data.startswith(MAGIC):
        raise ValueError(f"{path} is no store of format 2")
    body, place = zlib.decompress(data[len(MAGIC):]), 0
    found = []

    def number():
        nonlocal place
        value = shift = 0
        while True:
            byte = body[place]
            place += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    def text():
        nonlocal place
        size = number()
        place += size
        return body[place - size : place].decode("utf-8")

    while place < len(body):
        key, tags = text(), [text() for _ in range(number())]
        time, revisions = 0, []
        for _ in range(number()):
            time += number()
            revisions.append((time, text() if number() else None))
        found.append((key, tags, revisions))
    return sorted(found)
'''
MAIN_2 = '''"""`python3 -m shelf list|export FILE`."""

import json
import sys

from shelf.store import load

command, path = sys.argv[1:]
for key, tags, revisions in load(path):
    if command == "export":
        print(json.dumps({"key": key, "tags": tags, "revisions": revisions}, ensure_ascii=False))
    elif command == "list":
        print(key, len(revisions), sep="\\t")
    else:
        sys.exit(__doc__)
'''
STORE_1 = '''"""Stores of format 1: a line an item."""

HEAD = "shelf 1\\n"
ESCAPES = {"\\\\": "\\\\\\\\", "\\n": "\\\\n", "\\t": "\\\\t", "\\r": "\\\\r"}


def escaped(text):
    return "".join(ESCAPES.get(char, char) for char in text)


def save(path, items):
    """Write (key, time, tags, text) of each item, by key."""
    with open(path, "w", encoding="utf-8", newline="") as file:
        file.write(HEAD)
        for key, time, tags, text in sorted(items):
            file.write("\\t".join((escaped(key), str(time), ",".join(tags), escaped(text))) + "\\n")


def check(path):
    """Raise ValueError for a file that is no store of format 1."""
    with open(path, "rb") as file:
        if file.read(len(HEAD)) != HEAD.encode():
            raise ValueError(f"{path} is no store of format 1")
'''
MAIN_1 = '''"""`python3 -m shelf list FILE`."""

import sys

from shelf.store import HEAD, check

command, path = sys.argv[1:]
check(path)
with open(path, encoding="utf-8", newline="") as file:
    for line in file.read()[len(HEAD):].split("\\n")[:-1]:
        print(line.split("\\t")[0])
'''
CHANGES_1 = """1.8
---
Security fixes until 2031.
A store of another format is refused. To come back from 2.x, export under 2.x first:
1.x cannot read what 2.x writes.
"""
OLD = {
    "CHANGES": "2.1\n---\nRevisions are kept.\n",
    "__init__.py": INIT.format("2.1"),
    "__main__.py": MAIN_2,
    "store.py": STORE_2,
    "revisions.py": '"""Reserved."""\n',
}
NEW = {"CHANGES": CHANGES_1, "__init__.py": INIT.format("1.8"), "__main__.py": MAIN_1, "store.py": STORE_1}


@dataclass(kw_only=True)
class Item:
    """One item with its revisions, the newest last."""

    key: str
    tags: list[str]
    revisions: list[tuple[int, str | None]] = field(default_factory=list)

    @property
    def deleted(self) -> bool:
        return self.revisions[-1][1] is None


def number(value: int) -> bytes:
    parts = []
    while value > 127:
        parts.append(value & 127 | 128)
        value >>= 7
    return bytes([*parts, value])


def text(value: str) -> bytes:
    return number(len(value.encode())) + value.encode()


def format_2(items: list[Item]) -> bytes:
    body = b""
    for item in items:
        body += (
            text(item.key)
            + number(len(item.tags))
            + b"".join(map(text, item.tags))
            + number(len(item.revisions))
        )
        before = 0
        for time, held in item.revisions:
            body += number(time - before) + (number(0) if held is None else number(1) + text(held))
            before = time
    return b"SHELF\x02" + zlib.compress(body)


def format_1(items: list[Item]) -> str:
    escapes = {"\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}
    lines = ["shelf 1"]
    for item in sorted(items, key=lambda each: each.key):
        time, held = item.revisions[-1]
        if held is not None:
            cells = [item.key, str(time), ",".join(item.tags), "".join(escapes.get(c, c) for c in held)]
            lines.append("\t".join(cells))
    return "\n".join(lines) + "\n"


def export(items: list[Item]) -> str:
    held = sorted(items, key=lambda each: each.key)
    lines = [{"key": each.key, "tags": each.tags, "revisions": each.revisions} for each in held]
    return "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)


def stores(seed: int = 21) -> dict[str, list[Item]]:
    chance, found = random.Random(seed), {}
    for name in STORES:
        items = []
        for count in range(chance.randrange(4, 9)):
            item = Item(
                key=f"{name[:3]}/{chance.randrange(100, 999)}-{count}",
                tags=chance.sample(["now", "tools", "später"], 2),
            )
            time = 1_600_000_000
            for _ in range(chance.randrange(1, 5)):
                time += chance.randrange(60, 9_000_000)
                item.revisions.append((time, chance.choice(TEXTS) if chance.random() < 0.85 else None))
            items.append(item)
        found[name] = items
    return found


def record() -> str:
    lines = []
    for name, held in NEW.items():
        lines.append(f"shelf/{name},{hashlib.sha256(held.encode()).hexdigest()},{len(held.encode())}\n")
    return "".join(sorted(lines))


def build(craft: Craft) -> None:
    for name, held in OLD.items():
        craft.write(f"site/shelf/{name}", held)
    lines = [
        f"shelf/{n},{hashlib.sha256(t.encode()).hexdigest()},{len(t.encode())}\n" for n, t in OLD.items()
    ]
    craft.write("site/shelf.RECORD", "".join(sorted(lines)))
    packed: dict[str, str | bytes] = {f"shelf-1.8/shelf/{name}": held for name, held in NEW.items()}
    craft.tar("packages/shelf-1.8.tar.gz", packed)
    for name, items in stores().items():
        craft.write(f"state/{name}.shelf", format_2(items))
