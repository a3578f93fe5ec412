"""What the demo's scripted agent types: the files it writes, the snippets it runs."""

from __future__ import annotations

SAMPLE = """\
import sqlite3

database = sqlite3.connect("data/orders.db")
print(database.execute("SELECT COUNT(*) FROM orders").fetchone()[0], "orders")
for row in database.execute("SELECT * FROM orders WHERE id IN (2, 3, 8, 15)"):
    print(row)
"""

AMOUNTS = '''\
"""Amounts as the clerks enter them (docs/schema.md tells the rules)."""

import re

_SIGNS = {"€": "EUR", "eur": "EUR", "£": "GBP", "gbp": "GBP"}


def parse(entry):
    """Cents and currency of an entry; ValueError names one that cannot be read."""
    text, currency = entry.casefold().strip(), "EUR"
    for sign, code in _SIGNS.items():
        if sign in text:
            text, currency = text.replace(sign, ""), code
    quantity, _, price = text.rpartition("x")
    digits = price.replace(" ", "").removesuffix(",-")
    found = re.fullmatch(r"([0-9][0-9.,]*?)(?:[.,]([0-9]{1,2}))?", digits)
    if not found:
        raise ValueError(f"no amount: {entry!r}")
    whole, fraction = re.sub("[.,]", "", found[1]), (found[2] or "").ljust(2, "0")
    return int(whole + fraction) * int(quantity or 1), currency
'''

AMOUNTS_TEST = """\
import unittest

from quayside.amounts import parse

ENTRIES = {
    "12.50": (1250, "EUR"),
    " 1.234,50": (123450, "EUR"),
    "€1,234.5": (123450, "EUR"),
    "310,-": (31000, "EUR"),
    "1 234,05 eur": (123405, "EUR"),
    "12 x 4,20": (5040, "EUR"),
    "£ 1,234": (123400, "GBP"),
    "7 GBP": (700, "GBP"),
}


class ParseTest(unittest.TestCase):
    def test_entries(self):
        for entry, meaning in ENTRIES.items():
            with self.subTest(entry=entry):
                self.assertEqual(parse(entry), meaning)

    def test_nonsense(self):
        with self.assertRaises(ValueError):
            parse("call me")


if __name__ == "__main__":
    unittest.main()
"""

REPORT = '''\
"""What each customer bought in a month: python3 -m quayside.report 2023-03"""

import sqlite3
import sys

QUERY = """
SELECT c.name, o.currency, SUM(o.amount_cents), COUNT(*)
FROM orders o JOIN customers c ON c.id = o.customer_id
WHERE o.status <> 'cancelled' AND substr(o.placed_on, 1, 7) = ?
GROUP BY c.name, o.currency ORDER BY c.name, o.currency
"""


def main(month):
    rows = sqlite3.connect("data/orders.db").execute(QUERY, (month,)).fetchall()
    for name, currency, cents, _ in rows:
        print(name, currency, f"{cents // 100}.{cents % 100:02}", sep="\\t")
    print("orders", sum(row[3] for row in rows), sep="\\t")


if __name__ == "__main__":
    main(sys.argv[1])
'''

MIGRATION = '''\
"""Schema 1 to 2: python3 migrations/002_amounts.py [--dry-run] DATABASE"""

import pathlib
import sqlite3
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))

from quayside.amounts import parse

NEW = """
CREATE TABLE orders_new(
  id INTEGER PRIMARY KEY, customer_id INTEGER NOT NULL REFERENCES customers(id), placed_on TEXT NOT NULL,
  amount_cents INTEGER NOT NULL, currency TEXT NOT NULL, status TEXT NOT NULL)
"""


def main(dry_run, path):
    database = sqlite3.connect(path)
    if database.execute("PRAGMA user_version").fetchone()[0] != 1:
        sys.exit("this database is not at schema version 1")
    customers = {name: number for number, name in database.execute("SELECT id, name FROM customers")}
    rows = [
        (number, customers[customer], placed_on, *parse(amount), status)
        for number, customer, placed_on, amount, status in database.execute("SELECT * FROM orders")
    ]
    if not dry_run:
        with database:
            database.execute("BEGIN IMMEDIATE")
            database.execute(NEW)
            database.executemany("INSERT INTO orders_new VALUES (?, ?, ?, ?, ?, ?)", rows)
            database.execute("DROP TABLE orders")
            database.execute("ALTER TABLE orders_new RENAME TO orders")
            database.execute("PRAGMA user_version = 2")
        database.execute("VACUUM")
    print(len(rows), "orders", "can be migrated" if dry_run else "migrated")


main("--dry-run" in sys.argv, sys.argv[-1])
'''

DOCUMENTS = '''\
from pathlib import Path

changelog, schema = Path("CHANGELOG.md"), Path("docs/schema.md")
section = """## 2.0.0

- Orders hold amount_cents and currency in place of free text (migration 002).
- The monthly report works again; it adds up per currency and leaves out cancelled orders.

"""
text = changelog.read_text(encoding="utf-8")
changelog.write_text(text.replace("## 1.4.0", section + "## 1.4.0", 1), encoding="utf-8")
columns = "`orders(id, customer_id, placed_on, amount_cents, currency, status)`: integer cents.\\n"
text = schema.read_text(encoding="utf-8")
schema.write_text(text + "\\n# Schema, version 2\\n\\n" + columns, encoding="utf-8")
'''

FIGURES_BEFORE = """\
import sqlite3
from collections import Counter
from pathlib import Path

from quayside.amounts import parse

entries = [entry for (entry,) in sqlite3.connect("data/orders.db").execute("SELECT amount FROM orders")]
totals = Counter()
for cents, currency in map(parse, entries):
    totals[currency] += cents
lines = ["# Migration 002: amounts", "", f"Orders before: {len(entries)}"]
lines += [f"Total {name}: {cents // 100}.{cents % 100:02}" for name, cents in sorted(totals.items())]
Path("docs/migrations/002.md").write_text("\\n".join(lines) + "\\n")
"""

FIGURES_AFTER = """\
import sqlite3
from pathlib import Path

database = sqlite3.connect("data/orders.db")
record = Path("docs/migrations/002.md")
text = record.read_text()
for name, cents in database.execute("SELECT currency, SUM(amount_cents) FROM orders GROUP BY currency"):
    assert f"Total {name}: {cents // 100}.{cents % 100:02}" in text, (name, cents)
count = database.execute("SELECT COUNT(*) FROM orders").fetchone()[0]
record.write_text(text + f"Orders after: {count}\\n")
"""

EXPORT = """\
import csv
import sqlite3

rows = sqlite3.connect("data/orders.db").execute("SELECT id, amount FROM orders ORDER BY id").fetchall()
with open("archive/amounts-as-entered.csv", "w", newline="", encoding="utf-8") as file:
    writer = csv.writer(file, lineterminator="\\n")
    writer.writerow(["order_id", "amount_as_entered"])
    writer.writerows(rows)
print(len(rows), "entries archived")
"""

REBUILD = """\
import csv
import sqlite3

rows = sqlite3.connect("data/orders.db").execute("SELECT id, amount_cents, currency FROM orders ORDER BY id")
seen = SEEN
with open("archive/amounts-as-entered.csv", "w", newline="", encoding="utf-8") as file:
    writer = csv.writer(file, lineterminator="\\n")
    writer.writerow(["order_id", "amount_as_entered"])
    for number, cents, currency in rows:
        writer.writerow([number, seen.get(number, AMOUNT)])
"""
