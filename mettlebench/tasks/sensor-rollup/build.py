"""Builds a store's database, and knows what the lost program says about any store."""

from __future__ import annotations

import datetime
import itertools
import random
import sqlite3
from dataclasses import dataclass, field

from mettlebench.craft import Craft

SCHEMA = """
create table sensors (id integer primary key, place text not null);
create table readings (
    sensor integer not null, at integer not null, milli integer, primary key (sensor, at)
);
create table swaps (
    old integer not null, new integer not null, since integer not null, until integer not null
);
"""
BEGIN = 1767007800  # 29 December 2025, 11:30 UTC
BEFORE = 1767139200
PLACES = ("cold-1", "cold-2", "dock")

Reading = tuple[int, int, int | None]


@dataclass(kw_only=True)
class Store:
    """The tables of a store, and rollups of an earlier expiry."""

    sensors: list[tuple[int, str]]
    readings: list[Reading]
    swaps: list[tuple[int, int, int, int]]
    rollups: dict[tuple[int, int], tuple[int, int, int, int]] = field(default_factory=dict)

    def values(self, sensor: int) -> list[tuple[int, int]]:
        return sorted((at, milli) for who, at, milli in self.readings if who == sensor and milli is not None)

    def gaps(self) -> list[tuple[int, int, int, int]]:
        found = []
        for sensor in sorted({who for who, _, _ in self.readings}):
            times = [at for at, _ in self.values(sensor)]
            found += [(sensor, a, b, b - a) for a, b in itertools.pairwise(times) if b - a > 90]
        return found

    def offsets(self) -> list[tuple[int, int, int, int]]:
        own: dict[int, tuple[int, int, int]] = {}
        for old, new, since, until in self.swaps:
            before, after = dict(self.values(old)), dict(self.values(new))
            shared = [at for at in before if at in after and since <= at <= until]
            total = sum(before[at] - after[at] for at in shared)
            own[new] = (old, len(shared), divided(total, len(shared)) if shared else 0)
        found = []
        for new in sorted(own):
            old, pairs, offset = own[new]
            while old in own:
                old, offset = own[old][0], offset + own[old][2]
            found.append((new, own[new][0], pairs, offset))
        return found

    def rolled(self) -> dict[tuple[int, int], tuple[int, int, int, int]]:
        shift = {new: offset for new, _, _, offset in self.offsets()}
        found: dict[tuple[int, int], list[int]] = {}
        for sensor, at, milli in self.readings:
            if milli is not None:
                found.setdefault((sensor, at // 300 * 300), []).append(milli + shift.get(sensor, 0))
        return {
            key: (len(held), min(held), max(held), divided(sum(held), len(held)))
            for key, held in sorted(found.items())
        }

    def expire(self, before: int) -> None:
        present = {(sensor, at // 300 * 300) for sensor, at, _ in self.readings}
        kept = {key: row for key, row in self.rollups.items() if key not in present}
        self.rollups = dict(sorted((kept | self.rolled()).items()))
        limit = before // 300 * 300
        self.readings = [each for each in self.readings if each[1] >= limit]


def divided(total: int, count: int) -> int:
    """Rounded, halves away from zero."""
    whole = (2 * abs(total) + count) // (2 * count)
    return whole if total >= 0 else -whole


def make_store(seed: int, steps: int) -> Store:
    chance = random.Random(seed)
    sensors = [(1, PLACES[0]), (2, PLACES[1]), (3, PLACES[2]), (4, PLACES[0]), (5, PLACES[0])]
    end = BEGIN + steps * 60
    third = steps * 20
    spans = {1: (BEGIN, BEGIN + third + 1200), 2: (BEGIN, end), 3: (BEGIN, end)}
    spans[4] = (BEGIN + third, BEGIN + 2 * third + 1200)
    spans[5] = (BEGIN + 2 * third, end)
    bias = {1: 0, 2: 0, 3: 9000, 4: chance.randrange(-900, 900), 5: chance.randrange(-900, 900)}
    readings: list[Reading] = []
    for sensor, (since, until) in spans.items():
        at = since // 60 * 60
        while at < until:
            lost = chance.random()
            if lost > 0.01:
                milli = -18000 + bias[sensor] + chance.randrange(-400, 400) + (at % 86400) // 300
                readings.append((sensor, at, None if lost < 0.03 else milli))
            else:
                at += 60 * chance.randrange(0, 9)
            at += 60
    swaps = [(1, 4, BEGIN + third, BEGIN + third + 1200), (4, 5, BEGIN + 2 * third, BEGIN + 2 * third + 1200)]
    return Store(sensors=sensors, readings=sorted(readings, key=str), swaps=swaps)


def story() -> Store:
    return make_store(29, 2700)


def fill(connection: sqlite3.Connection, store: Store) -> None:
    connection.executescript(SCHEMA)
    connection.executemany("insert into sensors values (?,?)", store.sensors)
    connection.executemany("insert into readings values (?,?,?)", store.readings)
    connection.executemany("insert into swaps values (?,?,?,?)", store.swaps)
    connection.commit()


def database_bytes(store: Store) -> bytes:
    connection = sqlite3.connect(":memory:")
    fill(connection, store)
    return connection.serialize()


def daily(store: Store) -> list[tuple[str, str, int, int, int]]:
    place = dict(store.sensors)
    found: dict[tuple[str, str], list[tuple[int, int, int, int]]] = {}
    for (sensor, start), row in store.rollups.items():
        day = datetime.datetime.fromtimestamp(start, datetime.UTC).strftime("%Y-%m-%d")
        found.setdefault((day, place[sensor]), []).append(row)
    rows = []
    for (day, where), held in sorted(found.items()):
        mean = divided(sum(count * mean for count, _, _, mean in held), sum(count for count, _, _, _ in held))
        rows.append((day, where, min(row[1] for row in held), max(row[2] for row in held), mean))
    return rows


def build(craft: Craft) -> None:
    store = story()
    craft.database(
        "store.db", SCHEMA, {"sensors": store.sensors, "readings": store.readings, "swaps": store.swaps}
    )
