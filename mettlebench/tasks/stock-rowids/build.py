"""Builds a stock database whose rows are known by their implicit numbers, full of holes."""

from __future__ import annotations

import json
import random
import sqlite3
from dataclasses import dataclass, field

from mettlebench.craft import Craft

OLD = """
create table article (sku text not null, name text not null, unit text not null, bin text not null);
create table supplier (code text not null, name text not null);
create table movement (
  id integer primary key, article integer not null, supplier integer, qty integer, day text
);
create table scan (picture blob);
"""
THINGS = (
    "Hex bolt",
    "Washer",
    "Threaded rod",
    "Wood screw",
    "Wall plug",
    "Cable tie",
    "Angle bracket, perforated",
)
SUPPLIERS = ("Brandt & Sohn", "Eisen-Karl", "Nordschraube", "Ferro", "Tessile", "Vogt")
REPORTS = ("2025-03-31", "2025-06-30", "2025-09-30")


@dataclass(kw_only=True)
class Stock:
    """The rows of the database, by number."""

    articles: dict[int, tuple[str, str, str, str]] = field(default_factory=dict)
    suppliers: dict[int, tuple[str, str]] = field(default_factory=dict)
    movements: dict[int, tuple[int, int | None, int, str]] = field(default_factory=dict)

    @property
    def orphans(self) -> dict[int, tuple[int, int | None, int, str]]:
        return {key: row for key, row in self.movements.items() if row[0] not in self.articles}

    @property
    def kept(self) -> dict[int, tuple[int, int | None, int, str]]:
        return {key: row for key, row in self.movements.items() if row[0] in self.articles}


def stock(seed: int) -> Stock:
    chance, made = random.Random(seed), Stock()
    for number in sorted(chance.sample(range(1, 400), 64)):
        thing = chance.choice(THINGS)
        name = f"{thing} M{chance.randrange(3, 20)}" + chance.choice(("", " stainless", " zinc plated"))
        unit, shelf = (
            chance.choice(("pcs", "pcs", "m", "box")),
            f"{chance.choice('ABCD')}-{chance.randrange(1, 30):02}",
        )
        made.articles[number] = (f"{thing[:2].upper()}-{number * 7 % 1000:04}", name, unit, shelf)
    for number, name in zip(sorted(chance.sample(range(1, 40), len(SUPPLIERS))), SUPPLIERS, strict=True):
        made.suppliers[number] = (name[:3].upper(), name)
    gone = [number for number in range(1, 400) if number not in made.articles]
    key = 0
    for day in range(1, 280):
        for _ in range(chance.randrange(0, 3)):
            key += chance.randrange(1, 4)
            article = chance.choice(gone) if chance.random() < 0.05 else chance.choice(tuple(made.articles))
            supplier = chance.choice((None, *made.suppliers))
            qty = chance.randrange(1, 90) * (1 if supplier or chance.random() < 0.2 else -1)
            made.movements[key] = (article, supplier, qty, f"2025-{day // 31 + 1:02}-{day % 28 + 1:02}")
    return made


def listing(held: Stock, day: str) -> str:
    sums: dict[int, int] = {}
    for article, _, qty, when in held.kept.values():
        if when <= day:
            sums[article] = sums.get(article, 0) + qty
    lines = [f"ON HAND {day}"]
    for number in sorted(sums, key=lambda each: (held.articles[each][3], held.articles[each][0])):
        sku, name, unit, shelf = held.articles[number]
        qty = sums[number]
        if qty:
            short = name if len(name) <= 20 else name[:19] + "~"
            shown = f"{-qty}-" if qty < 0 else str(qty)
            lines.append(f"{shelf:6} {sku:8} {short:20} {shown:>7} {unit}")
    short_count = sum(line.split()[-2].endswith("-") for line in lines[1:])
    return "\n".join([*lines, f"TOTAL {len(lines) - 1}, {short_count} short"]) + "\n"


def labels(held: Stock) -> dict[str, dict[str, int | str]]:
    chance = random.Random(9)
    found: dict[str, dict[str, int | str]] = {}
    for number in range(1, 41):
        article = chance.choice(tuple(held.articles)) if chance.random() < 0.9 else chance.randrange(400, 500)
        found[f"{number:04}"] = {
            "label": number,
            "article": article,
            "printed": f"2024-{chance.randrange(1, 13):02}-02",
        }
    return found


def fill(connection: sqlite3.Connection) -> None:
    """Make the database as it is handed out, with the free pages that a clean-out left."""
    held = stock(7)
    connection.executescript(OLD)
    connection.execute("begin")
    pictures = [(random.Random(number).randbytes(6000),) for number in range(60)]
    connection.executemany("insert into scan values (?)", pictures)
    for table, columns, rows in (
        ("article", "rowid, sku, name, unit, bin", held.articles),
        ("supplier", "rowid, code, name", held.suppliers),
        ("movement", "id, article, supplier, qty, day", held.movements),
    ):
        marks = ", ".join("?" * len(columns.split()))
        values = [(key, *row) for key, row in rows.items()]
        connection.executemany(f"insert into {table} ({columns}) values ({marks})", values)
    connection.execute("drop table scan")
    connection.execute("commit")


def build(craft: Craft) -> None:
    (craft.root / "stock").mkdir()
    connection = sqlite3.connect(craft.root / "stock/stock.db", isolation_level=None)
    fill(connection)
    connection.close()
    held = stock(7)
    for name, label in labels(held).items():
        craft.write(f"labels/{name}.json", json.dumps(label, indent=1) + "\n")
    for day in REPORTS:
        craft.write(f"reports/onhand-{day}.txt", listing(held, day))
