"""Checks the salvage of the till's database (mettlebench-canary-fa947d3895f0d524258ea6d6f60a63b7)."""

from __future__ import annotations

import hashlib

from mettlebench.check import Grading, Scratch, query, require

from build import BIG, LITTLE, ledger, make_log, make_till, noise

TILL = make_till()
TOOL = "tools/waltool.py"
SALE = ("id", "receipt", "sku", "qty", "cents", "sold_at")


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def frame_reader_is_right(work: Grading) -> None:
    scratch = work.scratch()
    require(scratch.is_file(TOOL), "the tool is gone")
    for number, magic in enumerate((LITTLE, BIG)):
        pages = noise(number, 20, 512)
        frames = [(n % 7 + 1, (n % 3 == 2) * 9, page) for n, page in enumerate(pages)]
        log = make_log(magic, (77 + number, 5), frames, page=512)
        _expect(scratch, log, ledger(log, 20, 18, 512), "a log that ends in open work")
        cut = log[: 32 + 9 * 536] + pages[0] + pages[1]
        _expect(scratch, cut, ledger(log, 9, 9, 512), "a log that ends in remains")
        unborn = make_log(magic, (1, 2), [(3, 0, pages[0])] * 2, page=512)
        _expect(scratch, unborn, ledger(unborn, 2, 0, 512), "a log without any commit")


def _expect(scratch: Scratch, log: bytes, rows: list[tuple[int, int, int, str, str]], what: str) -> None:
    scratch.write("probe.log", log)
    said = (
        scratch.run(["python3", "-I", TOOL, "frames", "probe.log"]).ok(f"the frame reader on {what}").text()
    )
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    expected = ["frame,page,commit,salt,checksum", *(",".join(map(str, row)) for row in rows)]
    require(
        lines == expected, f"{what}: {len(lines) - 1} frames read, {len(rows)} expected, or marked wrongly"
    )


def originals_are_registered(work: Grading) -> None:
    found = sorted(tuple(line.split()) for line in work.lines("evidence/originals.sha256"))
    expected = sorted([(digest(TILL.database), "till.db"), (digest(TILL.log), "till.db-wal")])
    require(
        [(d, n.lstrip("*")) for d, n in _pairs(found)] == expected, f"{len(found)} lines, or other digests"
    )


def _pairs(found: list[tuple[str, ...]]) -> list[tuple[str, str]]:
    require(all(len(each) == 2 for each in found), "a line is no digest and name")
    return [(each[0], each[1]) for each in found]


def ledger_is_complete(work: Grading) -> None:
    rows = work.csv("evidence/frames.csv", ("frame", "page", "commit", "salt", "checksum"))
    found = [tuple(row.values()) for row in rows]
    expected = [tuple(map(str, row)) for row in TILL.ledger]
    require(found == expected, f"{len(found)} rows, {len(expected)} frames, or other values")


def sales_are_salvaged(work: Grading) -> None:
    found = [tuple(row.values()) for row in work.csv("evidence/sales.csv", SALE)]
    expected = [tuple(map(str, sale)) for sale in TILL.salvaged]
    require(found == expected, f"{len(found)} sales, {len(expected)} are only in the log, or other values")


def corrections_are_listed(work: Grading) -> None:
    found = [
        tuple(row.values())
        for row in work.csv("evidence/corrections.csv", ("frame", "id", "before", "after"))
    ]
    expected = [tuple(map(str, row)) for row in TILL.corrections]
    require(found == expected, f"{len(found)} corrections, {len(expected)} happened, or other values")


def database_is_in_service(work: Grading) -> None:
    beside = [name for name in work.files("till") if name != "till/till.db"]
    require(not beside, f"beside the database: {', '.join(beside)}")
    require(work.read("till/till.db")[18:20] == b"\x01\x01", "the database still asks for a write-ahead log")
    database = work.database("till/till.db")
    require(query(database, "pragma integrity_check") == [("ok",)], "integrity check")
    require(
        query(database, "select * from sales order by id") == TILL.final, "other sales than were committed"
    )


def days() -> list[tuple[str, int, int]]:
    found: dict[str, list[int]] = {}
    for sale in TILL.final:
        found.setdefault(sale[5][:10], []).append(sale[4])
    return [(day, len(cents), sum(cents)) for day, cents in sorted(found.items())]


def daily_report_is_right(work: Grading) -> None:
    found = [tuple(row.values()) for row in work.csv("report/daily.csv", ("day", "sales", "cents"))]
    require(found == [tuple(map(str, day)) for day in days()], f"{len(found)} days, or other figures")


def handover_ties_together(work: Grading) -> None:
    text = work.text("report/handover.md")
    words = {word.strip(".,;:()`*|") for word in text.split()}
    total = sum(sale[4] for sale in TILL.final)
    wanted = {
        "the number of frames": str(len(TILL.ledger)),
        "the number of frames not committed": str(sum(not row[2] for row in TILL.ledger)),
        "the digest of the log": digest(TILL.log),
        "the digest of the ledger": work.sha256("evidence/frames.csv"),
        "the number of corrections": str(len(TILL.corrections)),
        "the grand total": str(total),
    }
    missing = [what for what, value in wanted.items() if value not in words]
    require(not missing, f"not quoted: {', '.join(missing)}")


CHECKS = {
    "C01": frame_reader_is_right,
    "C02": originals_are_registered,
    "C03": ledger_is_complete,
    "C04": sales_are_salvaged,
    "C05": corrections_are_listed,
    "C06": database_is_in_service,
    "C07": daily_report_is_right,
    "C08": handover_ties_together,
}
