"""How many decimals a currency has."""

import csv
from pathlib import Path

_TABLE = Path(__file__).with_name("currencies.csv")


def decimals(currency):
    """Decimals of a currency; KeyError for one that is not in the table."""
    with _TABLE.open(encoding="utf-8", newline="") as file:
        return {row["currency"]: row["decimals"] for row in csv.DictReader(file)}[currency]
