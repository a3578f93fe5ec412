"""Checks the migration of the addresses (mettlebench-canary-178c5fd256e5797b93c45dd269b5c0bd)."""

from __future__ import annotations

import csv
import io
import sqlite3

from mettlebench.check import Grading, fail, query, require

from build import CUSTOMERS, HISTORY, LOST, ORDERS, PARTS, customers, formatted, labels

PARSED = [each for each in CUSTOMERS if each.parts]
LOST_ONES = [each for each in CUSTOMERS if not each.parts]
PROBE = """
import json
from crm.addresses import parse
found = []
for text in json.load(sys.stdin):
    try:
        found.append(parse(text))
    except ValueError:
        found.append(None)
print(json.dumps(found))
"""


def addresses_are_taken_apart(work: Grading) -> None:
    import json

    probes = [(each.text, each.parts) for each in customers(seed=5, count=120)]
    probes += [(text, None) for text in (*LOST, "", '"unclosed 3, 4020 Linz, AT', "Postfach, 3000 Bern, CH")]
    said = work.scratch().python(PROBE, path=["."], stdin=json.dumps([text for text, _ in probes]))
    found = said.json("the parser")
    require(isinstance(found, list) and len(found) == len(probes), "the parser gives no answer")
    wrong = [text for (text, parts), got in zip(probes, found, strict=True) if got != parts]
    require(not wrong, f"{len(wrong)} of {len(probes)} addresses, among them {wrong[:1]}")


def parsing_is_recorded(work: Grading) -> None:
    rows = work.csv("migration/parsed.csv", ("customer", "status", *PARTS, "sha256"))
    expected = []
    for each in CUSTOMERS:
        parts = [each.parts[name] for name in PARTS] if each.parts else [""] * len(PARTS)
        expected.append([str(each.id), "ok" if each.parts else "unparsed", *parts, each.sha256])
    require(
        [list(row.values()) for row in rows] == expected,
        f"{len(rows)} rows, {len(expected)} customers, or other values",
    )


def lost_texts_are_kept(work: Grading) -> None:
    try:
        rows = list(csv.reader(io.StringIO(work.text("migration/unparsed.csv"), newline=""), strict=True))
    except csv.Error:
        fail("unparsed.csv is no comma-separated file")
    expected = [["customer", "text"], *([str(each.id), each.text] for each in LOST_ONES)]
    require(rows == expected, f"{len(rows) - 1} texts, {len(LOST_ONES)} expected, or other ones")


def database(work: Grading) -> sqlite3.Connection:
    return work.database("crm.db")


def addresses_are_filled(work: Grading) -> None:
    crm = database(work)
    expected = [(each.id, *(each.parts[name] for name in PARTS)) for each in PARSED if each.parts]
    found = query(crm, f"select customer_id, {', '.join(PARTS)} from addresses order by customer_id")
    require(found == expected, f"{len(found)} rows, {len(expected)} expected, or other values")
    constrained(crm, "addresses", PARTS)


def constrained(crm: sqlite3.Connection, table: str, filled: tuple[str, ...]) -> None:
    columns = {row[1]: row for row in query(crm, f"pragma table_info({table})")}
    require(set(columns) == {"customer_id", *filled}, f"{table} has the columns {', '.join(columns)}")
    require(columns["customer_id"][5], f"{table}: the customer is not the primary key")
    loose = [name for name in filled if not columns[name][3]]
    require(not loose, f"{table}: {', '.join(loose)} may be null")
    keys = query(crm, f"pragma foreign_key_list({table})")
    require(
        [(key[2], key[3]) for key in keys] == [("customers", "customer_id")],
        f"{table}: no reference to customers",
    )


def origins_are_filled(work: Grading) -> None:
    crm = database(work)
    found = query(crm, "select customer_id, sha256 from address_origins order by customer_id")
    require(found == [(each.id, each.sha256) for each in CUSTOMERS], f"{len(found)} rows, or other digests")
    constrained(crm, "address_origins", ("sha256",))


def column_is_gone(work: Grading) -> None:
    crm = database(work)
    columns = [row[1] for row in query(crm, "pragma table_info(customers)")]
    require(columns == ["id", "name", "email", "since"], f"customers has the columns {', '.join(columns)}")
    rows = [(each.id, each.name, each.email, each.since) for each in CUSTOMERS]
    require(query(crm, "select * from customers order by id") == rows, "other customers")
    require(query(crm, "select * from orders order by id") == ORDERS, "other orders")
    require(query(crm, "select * from address_history order by id") == HISTORY, "another history")
    require(query(crm, "pragma integrity_check") == [("ok",)], "integrity check")
    require(not query(crm, "pragma foreign_key_check"), "references lead nowhere")
    require(query(crm, "pragma freelist_count") == [(0,)], "the file has free pages")
    raw = work.read("crm.db")
    require(LOST[0].encode() not in raw, "old texts can still be read in the file")
    tables = [row[0] for row in query(crm, "select name from sqlite_master where type = 'table' order by 1")]
    known = ["address_history", "address_origins", "addresses", "customers", "orders"]
    require(tables == known, f"tables: {', '.join(tables)}")
    beside = [name for name in work.files() if name.startswith("crm.db-")]
    require(not beside, "a journal is left beside the database")


def labels_view_is_back(work: Grading) -> None:
    found = query(database(work), "select customer_id, name, address from labels")
    expected = [(each.id, each.name, formatted(each.parts)) for each in PARSED if each.parts]
    require(found == expected, f"{len(found)} rows, {len(expected)} expected, or other ones")


def changes_are_recorded(work: Grading) -> None:
    crm = database(work)
    target = next(each for each in PARSED if each.parts and each.parts["box"] and each.parts["addition"])
    assert target.parts
    query(
        crm,
        "update addresses set street = 'Neue Gasse', number = '1', box = '', addition = ''"
        " where customer_id = ?",
        target.id,
    )
    found = query(crm, "select customer_id, before, after from address_history where id > 2")
    after = formatted(target.parts | {"street": "Neue Gasse", "number": "1", "box": "", "addition": ""})
    require(
        found == [(target.id, formatted(target.parts), after)],
        "the change of an address is recorded otherwise",
    )


def labels_are_printed(work: Grading) -> None:
    require(work.text("migration/labels.txt") == labels(CUSTOMERS), "the labels on file are others")
    scratch = work.scratch()
    said = scratch.run(["python3", "-m", "crm.labels", "crm.db"]).ok("printing labels").text()
    require(said == labels(CUSTOMERS), "the program prints other labels")


def note_ties_together(work: Grading) -> None:
    words = {word.strip(".,;:()`*|") for word in work.text("migration/NOTE.md").split()}
    wanted = [str(len(CUSTOMERS)), str(len(PARSED)), str(len(LOST_ONES))]
    wanted += [work.sha256("migration/parsed.csv"), work.sha256("migration/labels.txt")]
    missing = [value for value in wanted if value not in words]
    require(not missing, f"not quoted: {', '.join(missing)}")
    files = {name for name in work.files() if "__pycache__" not in name}
    known = {
        "crm.db",
        "crm/__init__.py",
        "crm/addresses.py",
        "crm/labels.py",
        "docs/addresses.md",
        "docs/plan.md",
    }
    known |= {f"migration/{name}" for name in ("parsed.csv", "unparsed.csv", "labels.txt", "NOTE.md")}
    require(files == known, f"not in the plan: {', '.join(sorted(files ^ known))}")


CHECKS = {
    "C01": addresses_are_taken_apart,
    "C02": parsing_is_recorded,
    "C03": lost_texts_are_kept,
    "C04": addresses_are_filled,
    "C05": origins_are_filled,
    "C06": column_is_gone,
    "C07": labels_view_is_back,
    "C08": changes_are_recorded,
    "C09": labels_are_printed,
    "C10": note_ties_together,
}
