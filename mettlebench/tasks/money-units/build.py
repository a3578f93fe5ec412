"""Builds a ledger whose amounts are half migrated, and wrongly where they are debts."""

from __future__ import annotations

import random
from dataclasses import dataclass

from mettlebench.craft import Craft

DECIMALS = {"CHF": 2, "EUR": 2, "JPY": 0, "KWD": 3}
SCHEMA = """
create table entry (
  id integer primary key,
  account text not null,
  booked text not null,
  currency text not null,
  amount text not null,
  rev integer not null default 1
);
create index entry_by_account on entry (account, booked);
create index entry_by_rev on entry (rev);
create view unfinished as select id, amount from entry where rev = 1;
create view accounts as select distinct account, currency from entry;
"""


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One row: its true amount, and the text it is handed out with."""

    id: int
    account: str
    booked: str
    currency: str
    minor: int
    rev: int

    @property
    def right(self) -> str:
        return show(self.minor, self.currency)

    @property
    def amount(self) -> str:
        places = DECIMALS[self.currency]
        if self.rev == 1:
            return str(self.minor)
        if self.rev == 3 or not places:
            return self.right
        whole, rest = divmod(self.minor, 10**places)
        return f"{whole}.{rest:0{places}}"


def show(minor: int, currency: str) -> str:
    places = DECIMALS[currency]
    digits = str(abs(minor)).rjust(places + 1, "0")
    text = f"{digits[:-places]}.{digits[-places:]}" if places else digits
    return f"-{text}" if minor < 0 else text


def entries() -> list[Entry]:
    chance = random.Random(303)
    found = []
    for number in range(1, 181):
        rev = chance.choice((1, 1, 2)) if number <= 150 else 3
        minor = chance.choice((-1, 1, 1)) * chance.randrange(1, 40000)
        found.append(
            Entry(
                id=number * 2 + chance.randrange(2),
                account=chance.choice(("dues", "events", "library", "rent", "travel")),
                booked=f"2025-{chance.randrange(1, 13):02}-{chance.randrange(1, 29):02}",
                currency=chance.choice(("EUR", "EUR", "EUR", "CHF", "JPY", "KWD")),
                minor=minor * (100 if number % 9 == 0 else 1),
                rev=rev,
            )
        )
    return found


def build(craft: Craft) -> None:
    rows = [(each.id, each.account, each.booked, each.currency, each.amount, each.rev) for each in entries()]
    craft.database("books/ledger.db", SCHEMA, {"entry": rows})
