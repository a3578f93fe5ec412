"""Checks the renumbered invoices (mettlebench-canary-19904a67d68aae9aab00e2fdc96cd262)."""

from __future__ import annotations

import hashlib
import hmac

from mettlebench.check import Grading, query, require

from build import (
    BOOKS,
    MAP,
    SEAL,
    books,
    database_bytes,
    export,
    gaps,
    letters,
    line_digest,
    renumbered,
    renumbered_letter,
    tables,
)

ISSUED = {number: issued for number, _, issued in BOOKS.invoices}
AFTER = renumbered()


def gaps_are_listed(work: Grading) -> None:
    rows = work.csv("renumber/gaps.csv", ("first", "last", "count"))
    expected = [tuple(map(str, gap)) for gap in gaps()]
    require(
        [tuple(row.values()) for row in rows] == expected,
        f"{len(rows)} gaps, {len(expected)} there are, or others",
    )


def map_is_frozen(work: Grading) -> None:
    rows = work.csv("renumber/map.csv", ("old", "new", "issued", "sha256"))
    expected = [(old, new, ISSUED[old], line_digest(old)) for old, new in MAP.items()]
    found = [tuple(row.values()) for row in rows]
    require(found == expected, f"{len(found)} invoices, {len(expected)} there are, or other values")


def map_is_sealed(work: Grading) -> None:
    seal = hmac.new(bytes.fromhex(SEAL), work.read("renumber/map.csv"), hashlib.sha256).hexdigest()
    require(work.text("renumber/map.sig").strip() == seal, "the seal does not belong to the map")


def tables_are_renumbered(work: Grading) -> None:
    database = work.database("billing.db")
    for table, rows in tables(AFTER).items():
        found = sorted(query(database, f"select * from {table}"))
        require(found == sorted(rows), f"{table} holds other rows")
    require(query(database, "pragma integrity_check") == [("ok",)], "integrity check")
    require(not query(database, "pragma foreign_key_check"), "references lead nowhere")
    left = [name for name in work.files() if name.startswith("billing.db-")]
    require(not left, "a journal is left beside the database")
    keys = {
        row[2]
        for table in ("lines", "payments", "credits")
        for row in query(database, f"pragma foreign_key_list({table})")
    }
    require(keys == {"invoices"}, "the tables lost their references")


def letters_are_renumbered(work: Grading) -> None:
    require(work.files("letters") == sorted(f"letters/{name}" for name in letters()), "other letters")
    for name, text in letters().items():
        expected = renumbered_letter(text).encode("latin-1")
        require(work.read(f"letters/{name}") == expected, f"{name} reads otherwise")


def old_numbers_are_found(work: Grading) -> None:
    database = work.database("billing.db")
    found = dict(query(database, "select old, new from former_numbers"))
    require(found == MAP, f"{len(found)} former numbers, {len(MAP)} there are, or others")
    columns = {row[1]: row for row in query(database, "pragma table_info(former_numbers)")}
    require(
        set(columns) == {"old", "new"} and columns["old"][5] and columns["new"][3],
        "the table is built otherwise",
    )
    keys = [row[2:5] for row in query(database, "pragma foreign_key_list(former_numbers)")]
    require([key[:2] for key in keys] == [("invoices", "new")], "former numbers do not refer to invoices")


def export_is_right(work: Grading) -> None:
    scratch = work.scratch()
    for seed in (1, 2, 3):
        scratch.write("probe.db", database_bytes(books(seed)))
        for year in ("2025", "2024"):
            said = (
                scratch.run(["python3", "-B", "-m", "billing.export", "probe.db", year])
                .ok("the export")
                .text()
            )
            require(said.replace("\r\n", "\n") == export(books(seed), year), "amounts are computed otherwise")


def export_is_on_file(work: Grading) -> None:
    found = work.text("export/2025.csv").replace("\r\n", "\n")
    require(found == export(AFTER, "2025"), "another export is on file")


def cover_ties_together(work: Grading) -> None:
    words = {word.strip(".,;:()`*|") for word in work.text("renumber/COVER.md").split()}
    moved = sum(old != new for old, new in MAP.items())
    wanted = [str(len(MAP)), str(moved), str(len(gaps())), export(AFTER, "2025").strip().split(",")[-1]]
    wanted += [work.sha256("renumber/map.csv"), work.sha256("export/2025.csv")]
    missing = [value for value in wanted if value not in words]
    require(not missing, f"not quoted: {', '.join(missing)}")
    files = {name for name in work.files() if "__pycache__" not in name and not name.startswith("letters/")}
    known = {
        "billing.db",
        "billing/__init__.py",
        "billing/export.py",
        "docs/renumbering.md",
        "export/2025.csv",
    }
    known |= {f"renumber/{name}" for name in ("gaps.csv", "map.csv", "map.sig", "COVER.md")}
    require(
        files == known | {"office/seal.key"},
        "files that nobody asked for, or missing ones",
    )


CHECKS = {
    "C01": gaps_are_listed,
    "C02": map_is_frozen,
    "C03": map_is_sealed,
    "C04": tables_are_renumbered,
    "C05": letters_are_renumbered,
    "C06": old_numbers_are_found,
    "C07": export_is_right,
    "C08": export_is_on_file,
    "C09": cover_ties_together,
}
