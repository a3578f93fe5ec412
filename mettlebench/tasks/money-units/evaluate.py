"""Checks the migrated ledger (mettlebench-canary-2b13dfa3df02f1c554c820f72f8c54b2)."""

from __future__ import annotations

import json

from mettlebench.check import Grading, query, require

from build import DECIMALS, entries, show

ENTRIES = entries()
AMOUNTS = [0, 1, -1, 9, -10, 99, -99, 100, -100, 101, -999, 1000, -1000, -1001, 123456789, -123456789]
REFUSED = (
    *(
        ("EUR", text)
        for text in ("+1.00", "-.50", "1.", "00.10", "--1.00", "1.0.0", "1.-5", "١.٠٠", "1_0.00", "-0.00")
    ),
    *(("JPY", text) for text in ("1.", "1.0", "-0", "007")),
    *(("KWD", text) for text in ("0.07", "1.0000")),
)
PROBE = """
import json
from money import parse, show
pairs, refused = json.load(sys.stdin)
found = []
for minor, currency in pairs:
    text = show(minor, currency)
    found.append([text, parse(text, currency)])
for currency, text in refused:
    try:
        found.append(parse(text, currency))
    except ValueError:
        found.append("refused")
print(json.dumps(found))
"""


def library_is_right(work: Grading) -> None:
    pairs = [(minor, currency) for minor in AMOUNTS for currency in DECIMALS]
    said = work.scratch().python(PROBE, path=["."], stdin=json.dumps([pairs, REFUSED])).json("the library")
    wanted = [[show(minor, currency), minor] for minor, currency in pairs] + ["refused"] * len(REFUSED)
    wrong = [n for n, want in enumerate(wanted) if not isinstance(said, list) or said[n : n + 1] != [want]]
    require(not wrong, f"{len(wrong)} of {len(wanted)} amounts come out wrong")
    require(work.read("tests/test_money.py") == work.shipped("tests/test_money.py"), "the tests were changed")
    table = work.read("money/currencies.csv") == work.shipped("money/currencies.csv")
    require(table, "the table of currencies was changed")
    work.scratch().run(["python3", "-m", "unittest", "discover", "-s", "tests", "-t", "."]).ok("the tests")


def classes_are_recorded(work: Grading) -> None:
    rows = [
        tuple(row.values()) for row in work.csv("records/classes.csv", ("rev", "currency", "rows", "minor"))
    ]
    expected = []
    for rev, currency in sorted({(each.rev, each.currency) for each in ENTRIES}):
        minors = [each.minor for each in ENTRIES if (each.rev, each.currency) == (rev, currency)]
        expected.append((str(rev), currency, str(len(minors)), str(sum(minors))))
    require(rows == expected, f"{len(rows)} classes, {len(expected)} expected, or other figures")


def preimages_are_recorded(work: Grading) -> None:
    rows = [tuple(row.values()) for row in work.csv("records/preimages.csv", ("id", "rev", "amount"))]
    expected = [(str(each.id), str(each.rev), each.amount) for each in ENTRIES if each.amount != each.right]
    require(rows == expected, f"{len(rows)} rows, {len(expected)} change, or other values")


def amounts_are_right(work: Grading) -> None:
    database = work.database("books/ledger.db")
    rows = query(database, "select id, account, booked, currency, amount from entry order by id")
    expected = [(each.id, each.account, each.booked, each.currency, each.right) for each in ENTRIES]
    wrong = sum(found != want for found, want in zip(rows, expected, strict=False))
    require(rows == expected, f"{len(rows)} rows, {wrong} of them wrong")


def schema_is_what_is_left(work: Grading) -> None:
    database = work.database("books/ledger.db")
    require(query(database, "pragma integrity_check") == [("ok",)], "integrity check")
    columns = query(database, "select name, type, \"notnull\", pk from pragma_table_info('entry')")
    names = ("account", "booked", "currency", "amount")
    expected = [("id", "INTEGER", 0, 1), *((name, "TEXT", 1, 0) for name in names)]
    found = [(name, str(kind).upper(), notnull, pk) for name, kind, notnull, pk in columns]
    require(found == expected, "the columns of the table")
    held = query(
        database, "select type, name from sqlite_master where name not like 'sqlite_%' order by 1, 2"
    )
    wanted = [("index", "entry_by_account"), ("table", "entry"), ("view", "accounts")]
    require(held == wanted, f"the schema has {', '.join(str(name) for _, name in held)}")
    indexed = query(database, "select name from pragma_index_info('entry_by_account') order by seqno")
    require(indexed == [("account",), ("booked",)], "the index")
    pairs = {(each.account, each.currency) for each in ENTRIES}
    require(set(query(database, "select account, currency from accounts")) == pairs, "the view")
    require(work.files("books") == ["books/ledger.db"], "something lies beside the database")


def balances_are_right(work: Grading) -> None:
    columns = ("account", "currency", "entries", "balance")
    rows = [tuple(row.values()) for row in work.csv("statements/balances.csv", columns)]
    expected = []
    for account, currency in sorted({(each.account, each.currency) for each in ENTRIES}):
        minors = [each.minor for each in ENTRIES if (each.account, each.currency) == (account, currency)]
        expected.append((account, currency, str(len(minors)), show(sum(minors), currency)))
    require(rows == expected, f"{len(rows)} balances, {len(expected)} expected, or other figures")


def note_ties_together(work: Grading) -> None:
    words = {word.strip(".,;:()`*|") for word in work.text("records/note.md").split()}
    changed = sum(each.amount != each.right for each in ENTRIES)
    quoted = ("records/classes.csv", "records/preimages.csv", "statements/balances.csv")
    wanted = [str(len(ENTRIES)), str(changed), *(work.sha256(path) for path in quoted)]
    missing = [value for value in wanted if value not in words]
    require(not missing, f"not quoted: {', '.join(missing)}")
    files = {name for name in work.files() if "__pycache__" not in name}
    known = {*quoted, "records/note.md", "books/ledger.db", "docs/redenomination.md"}
    extra = {name for name in files - known if not name.startswith(("money/", "tests/"))}
    require(not extra, f"left behind: {', '.join(sorted(extra))}")


CHECKS = {
    "C01": library_is_right,
    "C02": classes_are_recorded,
    "C03": preimages_are_recorded,
    "C04": amounts_are_right,
    "C05": schema_is_what_is_left,
    "C06": balances_are_right,
    "C07": note_ties_together,
}
