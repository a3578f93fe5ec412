"""Checks the address book (mettlebench-canary-b1688c583ad7295d6d2e195289dc3bca)."""

from __future__ import annotations

import json

from mettlebench.check import Grading, require

from build import COLUMNS, FIELDS, best, digest, email, export, persons, phone, rows

ROWS = rows()
PERSONS = {f"p{number:03}": group for number, group in enumerate(persons(), start=1)}
BOOK = {name: group for name, group in PERSONS.items() if not any(each.refused for each in group)}
EMAILS = ("A@B", "a @b", "ﬁ@x.org", "a@", "a@@b", "Ω@Ω", "\ta@b\n", "x")
PHONES = (
    *(
        "0221 47 11 08 ext12",
        "0221471108x 9",
        "+49(221)471108",
        "00 43 1 58801",
        "049 111222",
        "12345",
        "471108",
    ),
    *("+1 2 3", "0049221471108", "ext 12", "- 030 / 12 34 56", "+43158801EXT.3", "000 123456"),
)
PROBE = """
import json
from book.normal import email, phone
emails, phones = json.load(sys.stdin)
print(json.dumps([[email(each) for each in emails], [phone(each) for each in phones]]))
"""


def normal_forms_are_right(work: Grading) -> None:
    said = work.scratch().python(PROBE, path=["."], stdin=json.dumps([EMAILS, PHONES])).json("normal forms")
    wanted = [[email(each) for each in EMAILS], [phone(each) for each in PHONES]]
    require(said == wanted, "an address or number has another normal form")
    require(
        work.read("tests/test_normal.py") == work.shipped("tests/test_normal.py"), "the tests were changed"
    )
    work.scratch().run(["python3", "-m", "unittest", "discover", "-s", "tests", "-t", "."]).ok("the tests")


def found(work: Grading, path: str, *columns: str) -> list[tuple[str, ...]]:
    return [tuple(row.values()) for row in work.csv(path, columns)]


def rows_are_recorded(work: Grading) -> None:
    held = found(work, "records/rows.csv", "source", "line", "sha256")
    require(
        held == [(*each.place, digest(each.text)) for each in ROWS], f"{len(held)} rows, or other digests"
    )


def persons_are_recorded(work: Grading) -> None:
    held = found(work, "records/persons.csv", "person", "source", "line")
    expected = [(name, *each.place) for name, group in PERSONS.items() for each in group]
    require(held == expected, f"{len(held)} rows of {len({each[0] for each in held})} persons, or others")


def book_is_right(work: Grading) -> None:
    held = found(work, "book/contacts.csv", "person", *FIELDS)
    expected = []
    for name, group in BOOK.items():
        sources = [best(group, field) for field in FIELDS]
        values = [row.values[field] if row else "" for row, field in zip(sources, FIELDS, strict=True)]
        expected.append((name, *values))
    require(held == expected, f"{len(held)} contacts, {len(expected)} expected, or other values")


def lineage_is_complete(work: Grading) -> None:
    held = found(work, "records/lineage.csv", "person", "field", "source", "line")
    expected = []
    for name, group in BOOK.items():
        for field in FIELDS:
            row = best(group, field)
            expected += [(name, field, *row.place)] if row else []
    require(held == expected, f"{len(held)} values, {len(expected)} in the book, or other rows")


def nobody_is_contacted_who_refused(work: Grading) -> None:
    held = [each[0] for each in found(work, "records/suppressed.csv", "sha256")]
    refused = [group for name, group in PERSONS.items() if name not in BOOK]
    keys = {key for group in refused for each in group for key in each.keys}
    require(held == sorted(digest(key) for key in keys), f"{len(held)} digests, or others")
    for name in work.files():
        # what the work itself is made of need not be looked through
        if name.startswith(("book/contacts", "records/")):
            data = work.read(name).decode("utf-8", "replace")
            require(not any(key in data for key in keys), f"{name} holds an address or number in clear")


def exports_are_purged(work: Grading) -> None:
    require(work.kind("sources") is None, "the exports are still there")
    expected = sorted(
        [f"{digest(export(source))}  sources/{source}.csv" for source in COLUMNS], key=lambda x: x[66:]
    )
    require(work.lines("records/sources.sha256") == expected, "the digests of the exports")


def note_ties_together(work: Grading) -> None:
    words = {word.strip(".,;:()`*|") for word in work.text("records/note.md").split()}
    wanted = [str(len(ROWS)), str(len(PERSONS)), str(len(BOOK))]
    quoted = ("records/persons.csv", "records/lineage.csv", "book/contacts.csv")
    wanted += [work.sha256(path) for path in quoted]
    missing = [value for value in wanted if value not in words]
    require(not missing, f"not quoted: {', '.join(missing)}")
    names = ("lineage.csv", "note.md", "persons.csv", "rows.csv", "sources.sha256", "suppressed.csv")
    extra = set(work.files("records")) - {f"records/{name}" for name in names}
    extra |= {name.split("/")[0] for name, _ in work.walk()} - {"book", "docs", "records", "tests", "tools"}
    require(not extra, f"left behind: {', '.join(sorted(extra))}")


CHECKS = {
    "C01": normal_forms_are_right,
    "C02": rows_are_recorded,
    "C03": persons_are_recorded,
    "C04": book_is_right,
    "C05": lineage_is_complete,
    "C06": nobody_is_contacted_who_refused,
    "C07": exports_are_purged,
    "C08": note_ties_together,
}
