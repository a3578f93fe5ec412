"""Prints address labels: python3 -m crm.labels DATABASE"""

import sqlite3
import sys

from crm.addresses import parse


def formatted(parts):
    first = f"Postfach {parts['box']}" if parts["box"] else f"{parts['street']} {parts['number']}"
    place = f"{parts['postcode']} {parts['city']}"
    return ", ".join(part for part in (first, parts["addition"], place, parts["country"]) if part)


def main(path):
    database = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    for customer, name, address in database.execute("select id, name, address from customers order by id"):
        try:
            parts = parse(address)
        except ValueError:
            continue
        print(f"{customer:04} {name}")
        for line in formatted(parts).split(", "):
            print(f"     {line}")


if __name__ == "__main__":
    main(sys.argv[1])
