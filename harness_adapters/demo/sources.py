"""The text of the demo's workspace, as the history that its repository tells."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

GITIGNORE = """\
__pycache__/
# The database holds customers' business; it is copied by the nightly job and never committed.
data/*.db
"""

README = """\
# Quayside order desk

The orders of a ship chandler: one sqlite database, one monthly report.

    python3 -m quayside.report 2023-03      what each customer bought in March 2023
    python3 -m unittest discover -s tests   the tests

The database is `data/orders.db`; `docs/schema.md` describes it. Each change of the schema has a script in
`migrations/` and a record in `docs/migrations/`. Before you touch old data read `docs/retention.md`.

## The report

One line per customer and currency with at least one order in that month: name, currency and amount, separated
by tabs, the amount with a point and two decimals and no grouping, sorted by name and then currency. Cancelled
orders do not count. The last line is `orders`, a tab and the number of orders counted. A month without orders
prints only that line.
"""

SCHEMA = """\
# Schema, version 1 (`PRAGMA user_version`)

- `customers(id, name, closed)`: closed accounts stay, their history is still asked for.
- `orders(id, customer, placed_on, amount, status)`: `customer` is the customer's name, `amount` is whatever
  the clerk typed.

## How to read an amount

- Without a currency it is euros. `€` and `eur` mean EUR, `£` and `gbp` mean GBP, in any case, on either side.
- The last point or comma is the decimal mark if one or two digits follow it and nothing else; any other
  point, comma or blank between digits only groups them.
- `310,-` is 310 without cents.
- `12 x 4,20` is twelve times 4,20.
"""

RETENTION = """\
# What has to be kept

- Orders are kept for ten years: cancelled ones and those of closed accounts as well.
- What a clerk entered is a business record. If a change of the schema gives up a column of entries, they must
  be handed over to the archive, character by character.
"""

RECORD_1 = """\
# Migration 001: customers

Orders before: 31
Orders after: 31

Customers got a table of their own. Names in orders were left as they are.
"""

SQL_1 = """\
CREATE TABLE customers(
  id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, closed INTEGER NOT NULL DEFAULT 0);
CREATE TABLE orders(
  id INTEGER PRIMARY KEY, customer TEXT NOT NULL, placed_on TEXT NOT NULL, amount TEXT NOT NULL,
  status TEXT NOT NULL);
PRAGMA user_version = 1;
"""

AMOUNTS = '''\
"""Amounts as the clerks enter them."""


def parse(entry):
    """Cents and currency of an entry."""
    whole, _, fraction = entry.partition(".")
    return int(whole) * 100 + int(fraction or 0), "EUR"
'''

REPORT = '''\
"""What each customer bought in a month: python3 -m quayside.report 2023-03"""

import sqlite3
import sys

from quayside.amounts import parse


def main(month):
    rows = sqlite3.connect("data/orders.db").execute(
        "SELECT customer, amount FROM orders WHERE placed_on LIKE ?", (month + "%",)
    )
    totals = {}
    for customer, amount in rows:
        cents, currency = parse(amount)
        totals[customer] = totals.get(customer, 0) + cents
    for customer in sorted(totals):
        print(customer, totals[customer] / 100)


if __name__ == "__main__":
    main(sys.argv[1])
'''

TESTS = """\
import unittest

from quayside.amounts import parse


class ParseTest(unittest.TestCase):
    def test_plain(self):
        self.assertEqual(parse("12.50"), (1250, "EUR"))


if __name__ == "__main__":
    unittest.main()
"""

CHANGES = {
    "1.0.0": "- First version: the orders and a monthly report.\n",
    "1.3.0": "- Customers have a table of their own (migration 001).\n",
    "1.4.0": "- Old entries are a business record: docs/retention.md says what has to be kept.\n",
}


def changelog(*versions: str) -> str:
    """The changelog with the sections of these versions, in the order given."""
    return "\n".join(["# Changelog\n", *(f"## {version}\n\n{CHANGES[version]}" for version in versions)])


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """A commit of the workspace's history: the files it writes, and the tag it gets."""

    message: str
    at: str
    files: Mapping[str, str] = field(default_factory=dict)
    tag: str = ""


HISTORY = (
    Commit(
        message="Keep the orders in sqlite",
        at="2022-01-03T09:00:00+00:00",
        files={
            ".gitignore": GITIGNORE,
            "README.md": README,
            "migrations/001_orders.sql": SQL_1,
            "quayside/__init__.py": '"""The order desk."""\n',
            "quayside/amounts.py": AMOUNTS,
        },
    ),
    Commit(
        message="Report a month",
        at="2022-01-10T09:00:00+00:00",
        files={
            "CHANGELOG.md": changelog("1.0.0"),
            "quayside/report.py": REPORT,
            "tests/test_amounts.py": TESTS,
        },
        tag="v1.0.0",
    ),
    Commit(
        message="Give customers a table",
        at="2022-07-04T09:00:00+00:00",
        files={
            "CHANGELOG.md": changelog("1.3.0", "1.0.0"),
            "docs/migrations/001.md": RECORD_1,
            "docs/schema.md": SCHEMA,
        },
        tag="v1.3.0",
    ),
    Commit(
        message="Write down what has to be kept",
        at="2025-01-15T09:00:00+00:00",
        files={
            "CHANGELOG.md": changelog("1.4.0", "1.3.0", "1.0.0"),
            "docs/retention.md": RETENTION,
        },
        tag="v1.4.0",
    ),
)
