"""Prints the yearly export: python3 -m billing.export DATABASE YEAR"""

import sqlite3
import sys


def tax(lines):
    """The tax of an invoice's lines, in cents."""
    return sum(abs(round(qty * cents * percent / 100)) for qty, cents, percent in lines)


def rows(database, year):
    numbers = database.execute(
        "select number from invoices where number like ? order by number", (f"{year}-%",)
    ).fetchall()
    for (number,) in numbers:
        lines = database.execute(
            "select qty, unit_cents, tax_percent from lines where invoice = ? order by position", (number,)
        ).fetchall()
        net = sum(qty * cents for qty, cents, _ in lines)
        yield number, net, tax(lines), net + tax(lines)


def main(path, year):
    database = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    totals = [0, 0, 0]
    print("number,net,tax,gross")
    for number, *amounts in rows(database, year):
        print(number, *amounts, sep=",")
        totals = [total + amount for total, amount in zip(totals, amounts)]
    print("total", *totals, sep=",")


if __name__ == "__main__":
    main(*sys.argv[1:])
