"""Builds the order book. The rows are computed here, so that the evaluator knows them without the book."""

from __future__ import annotations

import random

from mettlebench.craft import Craft

COLUMNS = ("id", "customer", "status", "amount")
CUSTOMERS = ("arlo", "birke", "cosmo", "delta", "elm")


def orders() -> list[tuple[str, str, str, str]]:
    """The rows of the shipped book."""
    chance = random.Random(20260105)
    rows = []
    for number in range(1, 61):
        amount = f"{chance.randrange(50, 30000):,}.{chance.randrange(100):02}".replace(",", "'")
        if number % 9 == 0:
            amount = f"-{amount}" if number % 2 else f"{amount}-"
        status = "cancelled" if chance.random() < 0.2 else "open"
        rows.append((f"o{number:03}", chance.choice(CUSTOMERS), status, amount))
    return rows


def build(craft: Craft) -> None:
    craft.csv("data/orders.csv", COLUMNS, orders())
