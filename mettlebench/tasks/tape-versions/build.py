"""Builds an archive that grew for years: many versions of a name, ends in the middle, one damaged header."""

from __future__ import annotations

import hashlib
import io
import random
from dataclasses import dataclass

from mettlebench.craft import EPOCH, Craft

NAMES = (
    *(f"notebooks/{name}.txt" for name in ("alloys", "assays", "ceramics", "furnace-2", "glass", "melts")),
    "notebooks/x-ray/series-a.txt",
    "notebooks/x-ray/series-b.txt",
    f"notebooks/{'very-' * 12}long-title/{'part-' * 10}one.txt",
)
BLOCK = 512


@dataclass(frozen=True, kw_only=True)
class Member:
    """One member on the tape; damaged ones cannot be seen."""

    name: str
    kind: str
    data: bytes
    mtime: int
    damaged: bool = False

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.data).hexdigest() if self.kind == "file" else ""


def header(member: Member) -> bytes:
    name, prefix = member.name, ""
    if len(name) > 100:
        prefix, _, name = name.rpartition("/")
    size, mtime = f"{len(member.data):011o}\0", f"{member.mtime:011o}\0"
    kind, mode = ("0", "0000644\0") if member.kind == "file" else ("5", "0000755\0")
    fields = [
        name.ljust(100, "\0"),
        mode,
        "0000000\0",
        "0000000\0",
        size,
        mtime,
        " " * 8,
        kind,
        "\0" * 100,
    ]
    fields += ["ustar\00000", "\0" * 64, "0000000\0", "0000000\0", prefix.ljust(155, "\0"), "\0" * 12]
    raw = "".join(fields).encode()
    total = sum(raw) + (1 if member.damaged else 0)
    return raw[:148] + f"{total:06o}\0 ".encode() + raw[156:]


def archive(members: list[Member], ends: tuple[int, ...]) -> tuple[bytes, list[tuple[int, Member]]]:
    """The bytes of an archive, zero blocks after the members numbered in `ends`, and what an index finds."""
    held, found = io.BytesIO(), []
    for number, member in enumerate(members):
        if not member.damaged:
            found.append((held.tell(), member))
        held.write(header(member) + member.data + bytes(-len(member.data) % BLOCK))
        held.write(bytes(BLOCK * 4 if number in ends else 0))
    held.write(bytes(BLOCK * 2))
    return held.getvalue(), found


def index(found: list[tuple[int, Member]]) -> str:
    lines = ["offset,name,type,size,mtime,sha256"]
    for offset, each in found:
        lines.append(f"{offset},{each.name},{each.kind},{len(each.data)},{each.mtime},{each.digest}")
    return "\n".join(lines) + "\n"


def nights(seed: int, count: int) -> list[Member]:
    chance = random.Random(seed)
    lines: dict[str, list[str]] = {}
    members: list[Member] = []
    for night in range(count):
        at = EPOCH - (count - night) * 86400
        if night % 17 == 0:
            members.append(Member(name="notebooks/", kind="folder", data=b"", mtime=at))
        for name in NAMES:
            held = lines.setdefault(name, [])
            if held and chance.random() < 0.75:
                continue
            for _ in range(chance.randrange(1, 6)):
                sample = f"sample {chance.randrange(100, 999)}, {chance.uniform(10, 900):.2f} °C"
                held.append(f"{night:03}/{len(held):03} {sample}, {chance.choice('αβγ')}")
            if night > 5 and chance.random() < 0.25:
                held.remove(chance.choice(held[:-1]) if len(held) > 1 else held[0])
            if chance.random() < 0.1:
                held[0] = held[0] + " (checked)" * (not held[0].endswith(")"))
            data = ("\n".join(held) + "\n").encode()
            members.append(Member(name=name, kind="file", data=data, mtime=at + chance.randrange(3600)))
    return members


def tape() -> tuple[bytes, list[tuple[int, Member]]]:
    members = nights(31, 32)
    spoilt = members[40]
    # what a torn header hides is the same version a second time, so that nothing is lost with it
    members.insert(
        41, Member(name=spoilt.name, kind="file", data=spoilt.data, mtime=spoilt.mtime, damaged=True)
    )
    return archive(members, (23, 55))


def files() -> list[tuple[int, Member]]:
    return [(offset, member) for offset, member in tape()[1] if member.kind == "file"]


def struck() -> list[tuple[str, str, str, str]]:
    found = []
    for place, (offset, member) in enumerate(files()):
        later = next(((o, m) for o, m in files()[place + 1 :] if m.name == member.name), None)
        if later is None:
            continue
        kept = later[1].data.decode().splitlines()
        gone = [line for line in member.data.decode().splitlines() if line not in kept]
        found += [(member.name, str(offset), str(later[0]), line) for line in gone]
    return found


def last() -> dict[str, Member]:
    return dict(sorted({member.name: member for _, member in files()}.items()))


def build(craft: Craft) -> None:
    craft.write("tape/notebooks.tar", tape()[0])
