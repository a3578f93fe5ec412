"""Checks the closing of the quarter (@CANARY@)."""

from __future__ import annotations

from mettlebench.check import Grading, need, require

from build import COLUMNS, orders

AMOUNTS = {"12'400.50": 1240050, "-80.00": -8000, "80.00-": -8000, "7.05": 705, "1'000'000.00": 100000000}
STAND = [row for row in orders() if row[2] != "cancelled"]
CANCELLED = [row for row in orders() if row[2] == "cancelled"]


def cents(text: str) -> int:
    digits = int("".join(letter for letter in text if letter.isdigit()))
    return -digits if "-" in text else digits


def total() -> str:
    value = sum(cents(row[3]) for row in STAND)
    return f"{value // 100}.{value % 100:02}"


def amounts_are_read(work: Grading) -> None:
    source = "import json, sys, amounts\nprint(json.dumps([amounts.cents(a) for a in sys.argv[1:]]))"
    found = work.scratch().python(source, *AMOUNTS, path=["tools"]).json("the reader of amounts")
    require(found == list(AMOUNTS.values()), f"amounts are read as {found}")


def cancelled_are_listed(work: Grading) -> None:
    rows = [tuple(row.values()) for row in work.csv("records/cancelled.csv", COLUMNS)]
    require(sorted(rows) == sorted(CANCELLED), f"{len(rows)} rows, {len(CANCELLED)} were cancelled")


def book_holds_what_stands(work: Grading) -> None:
    rows = [tuple(row.values()) for row in work.csv("data/orders.csv", COLUMNS)]
    require(rows == STAND, f"{len(rows)} rows, {len(STAND)} stand")


def summary_is_right(work: Grading) -> None:
    summary = work.json("records/summary.json")
    require(need(summary, "orders", int) == len(STAND), "wrong number of orders")
    require(need(summary, "total", str) == total(), "wrong total")


def note_ties_records(work: Grading) -> None:
    note = work.text("records/note.md")
    require(work.sha256("records/cancelled.csv") in note, "the digest of the list is missing")
    require(total() in note, "the total is missing")


CHECKS = {
    "C01": amounts_are_read,
    "C02": cancelled_are_listed,
    "C03": book_holds_what_stands,
    "C04": summary_is_right,
    "C05": note_ties_records,
}
