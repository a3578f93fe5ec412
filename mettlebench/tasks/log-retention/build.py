"""Builds the gateways' logs: three zones, rotated, overlapping, with one address too many."""

from __future__ import annotations

import datetime
import gzip
import hashlib
import random
from collections.abc import Sequence
from dataclasses import dataclass

from mettlebench.craft import Craft

ADDRESS = "203.0.113.77"
ZONES = {"gw-bern": 60, "gw-halifax": -240, "gw-kochi": 330}
USERS = ("mvogt", "lsteiner", "apinto", "hchen", "rroy", "tbaum", "svc-sync")
STOLEN = ("lsteiner", "rroy", "svc-sync", "hchen")
BEGIN = 1764547200  # 1 December 2025
DAY = 86400
CUTOFF = "2025-12-22T00:00:00Z"


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One entry as a gateway wrote it."""

    at: int
    gateway: str
    session: str
    user: str
    source: str
    event: str
    raw: str

    @property
    def time(self) -> str:
        return utc(self.at)


def utc(at: int) -> str:
    return datetime.datetime.fromtimestamp(at, datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def local(at: int, minutes: int) -> str:
    zone = datetime.timezone(datetime.timedelta(minutes=minutes))
    return datetime.datetime.fromtimestamp(at, zone).isoformat()


def entry(
    chance: random.Random, gateway: str, at: int, source: str, user: str, session: str, event: str
) -> Entry:
    raw = f"{local(at, ZONES[gateway])} {gateway} session={session} user={user} from={source} event={event}"
    if event in ("deny", "copy"):
        raw += f" detail={'password' if event == 'deny' else 'volume'}"
        for _ in range(chance.randrange(1, 3)):
            raw += f"\n\tnote {chance.choice(('retry', 'chunk', 'größer'))}={chance.randrange(10**6)}"
    return Entry(at=at, gateway=gateway, session=session, user=user, source=source, event=event, raw=raw)


def entries() -> list[Entry]:
    chance = random.Random(77)
    made: list[Entry] = []
    for gateway in ZONES:
        at = BEGIN + chance.randrange(3600)
        for number in range(170):
            at += chance.randrange(4000, 30000)
            session = f"{chance.randrange(16**4):04x}"
            user, source = chance.choice(USERS), f"198.51.100.{chance.randrange(2, 30)}"
            event = chance.choice(("login", "deny", "route", "copy", "logout"))
            if at > BEGIN + 33 * DAY:
                break
            made.append(entry(chance, gateway, at, source, user, session, event))
            if 20 < number < 110 and number % 6 == 0:
                made += intrusion(chance, gateway, at)
    return sorted(made, key=lambda each: (each.at, each.gateway))


def intrusion(chance: random.Random, gateway: str, at: int) -> list[Entry]:
    user, session = chance.choice(STOLEN), f"{chance.randrange(16**4):04x}"
    events = [
        *["deny"] * chance.randrange(3),
        "login",
        *chance.sample(["route", "copy", "copy"], 2),
        "logout",
    ]
    return [
        entry(chance, gateway, at + 60 + 97 * n, ADDRESS, user, session, event)
        for n, event in enumerate(events)
    ]


ENTRIES = entries()


def files() -> dict[str, list[Entry]]:
    """File name to its entries, in order; neighbours of one gateway overlap."""
    found: dict[str, list[Entry]] = {}
    for gateway in ZONES:
        own = [each for each in ENTRIES if each.gateway == gateway]
        size = len(own) // 5
        for number in range(5):
            begin = max(number * size - 3 * (number % 3 != 0), 0)
            end = len(own) if number == 4 else (number + 1) * size
            age = 4 - number
            name = f"{gateway}.log" + (f".{age}" if age else "") + (".gz" if age > 1 else "")
            found[name] = own[begin:end]
    return dict(sorted(found.items()))


def file_bytes(name: str, held: Sequence[Entry]) -> bytes:
    raw = "".join(each.raw + "\n" for each in held).encode()
    return gzip.compress(raw, mtime=held[-1].at) if name.endswith(".gz") else raw


FILES = files()


def digest(name: str) -> str:
    return hashlib.sha256(file_bytes(name, FILES[name])).hexdigest()


def timeline() -> list[Entry]:
    return [each for each in ENTRIES if each.source == ADDRESS]


def window() -> list[Entry]:
    own = timeline()
    first = min(each.at for each in own if each.event == "login")
    last = max(each.at for each in own if each.event == "logout")
    return [each for each in ENTRIES if first <= each.at <= last]


def chain() -> list[str]:
    lines: list[str] = []
    for each in window():
        before = lines[-1] if lines else ""
        lines.append(hashlib.sha256((before + each.raw).encode()).hexdigest())
    return lines


def build(craft: Craft) -> None:
    for name, held in FILES.items():
        craft.write(f"logs/{name}", file_bytes(name, held), at=held[-1].at)
