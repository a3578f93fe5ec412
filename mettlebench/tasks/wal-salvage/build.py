"""Builds the till's files: a database, and a log whose last transaction was cut off."""

from __future__ import annotations

import random
import sqlite3
import struct
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from mettlebench.craft import Craft

PAGE = 1024
LITTLE, BIG = 0x377F0682, 0x377F0683
SKUS = ("espresso", "ristretto", "flat-white", "brioche", "quiche", "lemonade", "granola", "cheesecake")

Sale = tuple[int, str, str, int, int, str]


@dataclass(frozen=True, kw_only=True)
class Till:
    """What came from the till, and what is true of it."""

    database: bytes
    log: bytes
    ledger: list[tuple[int, int, int, str, str]]
    old: list[Sale]
    final: list[Sale]
    corrections: list[tuple[int, int, int, int]] = field(default_factory=list)

    @property
    def salvaged(self) -> list[Sale]:
        known = {sale[0] for sale in self.old}
        return [sale for sale in self.final if sale[0] not in known]


def checksum(data: bytes, order: str, start: tuple[int, int] = (0, 0)) -> tuple[int, int]:
    s1, s2 = start
    for x, y in struct.iter_unpack(f"{order}II", data):
        s1 = (s1 + x + s2) & 0xFFFFFFFF
        s2 = (s2 + y + s1) & 0xFFFFFFFF
    return s1, s2


def make_log(
    magic: int, salts: tuple[int, int], frames: list[tuple[int, int, bytes]], page: int = PAGE
) -> bytes:
    """A log of frames (page number, size after commit, page)."""
    order = "<" if magic == LITTLE else ">"
    head = struct.pack(">6I", magic, 3007000, page, 3, *salts)
    running = checksum(head, order)
    log = head + struct.pack(">2I", *running)
    for number, size, data in frames:
        begin = struct.pack(">2I", number, size)
        running = checksum(data, order, checksum(begin, order, running))
        log += begin + struct.pack(">4I", *salts, *running) + data
    return log


def ledger(log: bytes, count: int, committed: int, page: int = PAGE) -> list[tuple[int, int, int, str, str]]:
    rows = []
    for number in range(1, count + 1):
        place = 32 + (number - 1) * (24 + page)
        page_number, _, salt, _, _, check = struct.unpack(">6I", log[place : place + 24])
        rows.append((number, page_number, int(number <= committed), f"{salt:08x}", f"{check:08x}"))
    return rows


def make_till(seed: int = 4) -> Till:
    chance = random.Random(seed)
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "till.db"
        connection = sqlite3.connect(path, isolation_level=None)
        connection.executescript(
            f"pragma page_size={PAGE}; pragma journal_mode=wal; pragma wal_autocheckpoint=0;"
            "create table sales (id integer primary key, receipt text not null, sku text not null,"
            " qty integer not null, cents integer not null, sold_at text not null);"
        )
        number = _sell(connection, chance, 0, 140, day=8)
        connection.execute("pragma wal_checkpoint(truncate)")
        old = _sales(connection)
        database = _even(path.read_bytes())
        frames: list[tuple[int, int, bytes]] = []
        corrections: list[tuple[int, int, int, int]] = []
        final, committed = old, 0
        for turn in range(17):
            number = _transaction(connection, chance, number, turn)
            raw = path.with_name("till.db-wal").read_bytes()
            fresh = _frames(raw)[len(frames) :]
            frames += fresh
            if turn < 16:
                now = _sales(connection)
                before = {sale[0]: sale[4] for sale in final}
                corrections += [
                    (len(frames), sale[0], before[sale[0]], sale[4])
                    for sale in now
                    if sale[0] in before and before[sale[0]] != sale[4]
                ]
                final, committed = now, len(frames)
        connection.close()
    # the last transaction never got as far as its commit
    frames = frames[:-1]
    salts = (0x5A17C0DE, 0x1B0C4711)
    log = make_log(LITTLE, salts, frames)
    stale = make_log(LITTLE, (0x5A17C0DD, 0x77AA0102), frames[:5])[32:]
    return Till(
        database=database,
        log=log + stale,
        ledger=ledger(log, len(frames), committed),
        old=old,
        final=final,
        corrections=corrections,
    )


def _transaction(connection: sqlite3.Connection, chance: random.Random, number: int, turn: int) -> int:
    connection.execute("begin")
    number = _sell(connection, chance, number, chance.randrange(2, 7), day=9 + turn // 9)
    if turn in (2, 5, 6, 9, 11, 12, 14):
        # the till takes a correction, sometimes for a line it has corrected before
        for target in (number - 3, 60 + 7 * (turn % 3)):
            cents = connection.execute("select cents from sales where id = ?", (target,)).fetchone()[0]
            connection.execute("update sales set cents = ? where id = ?", (cents + 50 + turn, target))
    connection.execute("commit")
    return number


def _sell(connection: sqlite3.Connection, chance: random.Random, number: int, count: int, *, day: int) -> int:
    for _ in range(count):
        number += 1
        minute = 480 + number % 600
        row = (
            number,
            f"R4-{2000 + number // 3}",
            chance.choice(SKUS),
            chance.randrange(1, 5),
            chance.randrange(180, 2900),
            f"2025-12-{_day(day, number):02}T{minute // 60:02}:{minute % 60:02}:00",
        )
        connection.execute("insert into sales values (?,?,?,?,?,?)", row)
    return number


def _day(day: int, number: int) -> int:
    # what was sold before the week of the crash lies on two days
    return day if day > 8 else 7 + (number % 3 == 0)


def _sales(connection: sqlite3.Connection) -> list[Sale]:
    return connection.execute("select * from sales order by id").fetchall()


def _frames(raw: bytes) -> list[tuple[int, int, bytes]]:
    found = []
    for place in range(32, len(raw), 24 + PAGE):
        number, size = struct.unpack(">2I", raw[place : place + 8])
        page = raw[place + 24 : place + 24 + PAGE]
        found.append((number, size, _even(page) if number == 1 else page))
    return found


def _even(page: bytes) -> bytes:
    """The first page without the number of the library that wrote it."""
    return page[:96] + struct.pack(">I", 3040001) + page[100:]


def noise(seed: int, count: int, size: int) -> list[bytes]:
    """Pages that mean nothing."""
    chance = random.Random(seed)
    return [chance.randbytes(size) for _ in range(count)]


def build(craft: Craft) -> None:
    till = make_till()
    craft.write("till/till.db", till.database)
    craft.write("till/till.db-wal", till.log)
