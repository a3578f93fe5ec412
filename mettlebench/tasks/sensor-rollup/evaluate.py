"""Checks the yearly rollup (mettlebench-canary-6f0bca0f59b56cc183604a41b5b74564)."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable

from mettlebench.check import Grading, Scratch, query, require

from build import BEFORE, BEGIN, Store, daily, database_bytes, make_store, story

PROGRAM = "rollup.py"
SHIPPED = story()
AFTER = story()
AFTER.expire(BEFORE)
COLUMNS = "sensor,start,count,least,greatest,mean"


def lines(head: str, rows: Iterable[tuple[object, ...]]) -> str:
    return "".join(line + "\n" for line in (head, *(",".join(map(str, row)) for row in rows)))


def ask(scratch: Scratch, *arguments: str) -> str:
    require(scratch.is_file(PROGRAM), "there is no program")
    ended = scratch.run(["python3", "-I", PROGRAM, *arguments]).ok(f"the program asked for {arguments[0]}")
    return ended.text().replace("\r\n", "\n")


def stores() -> list[Store]:
    odd = Store(
        sensors=[(1, "a"), (2, "b"), (7, "c")],
        readings=[
            (1, 0, 5),
            (1, 90, -4),
            (1, 181, 0),
            (1, 240, None),
            (1, 299, -5),
            (1, 300, 1),
            (1, 301, 2),
            (2, 90, -1),
            (2, 181, 1),
            (2, 300, None),
            (2, 301, 1),
            (7, 600, None),
        ],
        swaps=[(1, 2, 90, 301), (2, 7, 600, 600)],
    )
    return [make_store(3, 200), make_store(4, 120), odd]


def probes(work: Grading) -> list[tuple[Scratch, str, Store]]:
    scratch = work.scratch()
    found = []
    for number, store in enumerate(stores()):
        scratch.write(f"probe-{number}.db", database_bytes(store))
        found.append((scratch, f"probe-{number}.db", store))
    return found


def gaps_are_found(work: Grading) -> None:
    for scratch, path, store in probes(work):
        require(
            ask(scratch, "gaps", path) == lines("sensor,from,to,seconds", store.gaps()), f"{path}: other gaps"
        )


def offsets_are_computed(work: Grading) -> None:
    for scratch, path, store in probes(work):
        expected = lines("new,old,pairs,offset", store.offsets())
        require(ask(scratch, "offsets", path) == expected, f"{path}: other offsets")


def rollups_are_made(work: Grading) -> None:
    for scratch, path, store in probes(work):
        said = ask(scratch, "rollups", path)
        require(
            said == lines(COLUMNS, ((*k, *row) for k, row in store.rolled().items())),
            f"{path}: other rollups",
        )
        first = min(at for _, at, _ in store.readings)
        for before in (first + 1000, first + 4444):
            ask(scratch, "expire", path, str(before))
            store.expire(before)
            holds(scratch.database(path), store, path)


def holds(database: sqlite3.Connection, store: Store, path: str) -> None:
    rows = query(database, f"select {COLUMNS} from rollups order by sensor, start")
    require(
        rows == [(*key, *row) for key, row in store.rollups.items()], f"{path}: other rollups after expiry"
    )
    left = query(database, "select sensor, at, milli from readings order by sensor, at")
    require(left == sorted(store.readings, key=lambda each: each[:2]), f"{path}: other readings after expiry")
    require(query(database, "select * from sensors order by id") == store.sensors, f"{path}: other sensors")
    require(sorted(query(database, "select * from swaps")) == sorted(store.swaps), f"{path}: other swaps")
    require(query(database, "pragma freelist_count") == [(0,)], f"{path}: the file has free pages")
    require(query(database, "pragma integrity_check") == [("ok",)], f"{path}: integrity check")


def gaps_are_on_record(work: Grading) -> None:
    found = work.text("report/gaps.csv").replace("\r\n", "\n")
    require(found == lines("sensor,from,to,seconds", SHIPPED.gaps()), "other gaps than the raw readings have")


def offsets_are_on_record(work: Grading) -> None:
    found = work.text("report/offsets.csv").replace("\r\n", "\n")
    require(
        found == lines("new,old,pairs,offset", SHIPPED.offsets()), "other offsets than the raw readings give"
    )


def rollups_are_complete(work: Grading) -> None:
    rows = query(work.database("store.db"), f"select {COLUMNS} from rollups order by sensor, start")
    require(rows == [(*k, *row) for k, row in AFTER.rollups.items()], f"{len(rows)} rollups, or other values")


def raw_is_expired(work: Grading) -> None:
    require(BEGIN < BEFORE, "the plan has changed")
    holds(work.database("store.db"), AFTER, "store.db")
    tables = query(
        work.database("store.db"), "select name from sqlite_master where type = 'table' order by 1"
    )
    require(tables == [("readings",), ("rollups",), ("sensors",), ("swaps",)], "there are other tables")


def daily_is_right(work: Grading) -> None:
    found = work.text("report/daily.csv").replace("\r\n", "\n")
    require(found == lines("day,place,least,greatest,mean", daily(AFTER)), "other daily figures")


def report_is_complete(work: Grading) -> None:
    words = {word.strip(".,;:()`*|") for word in work.text("report/REPORT.md").split()}
    gaps = SHIPPED.gaps()
    wanted = [
        str(len(gaps)),
        str(max(gap[3] for gap in gaps)),
        str(len(AFTER.rollups)),
        str(len(AFTER.readings)),
    ]
    wanted += [work.sha256(f"report/{name}.csv") for name in ("gaps", "offsets", "daily")]
    missing = [value for value in wanted if value not in words]
    require(not missing, f"not quoted: {', '.join(missing)}")
    files = {name for name in work.files() if "__pycache__" not in name}
    known = {"store.db", PROGRAM, "docs/plan.md", "docs/rollup-spec.md"}
    known |= {f"report/{name}" for name in ("gaps.csv", "offsets.csv", "daily.csv", "REPORT.md")}
    require(files == known, f"not in the plan: {', '.join(sorted(files ^ known))}")


CHECKS = {
    "C01": gaps_are_found,
    "C02": offsets_are_computed,
    "C03": rollups_are_made,
    "C04": gaps_are_on_record,
    "C05": offsets_are_on_record,
    "C06": rollups_are_complete,
    "C07": raw_is_expired,
    "C08": daily_is_right,
    "C09": report_is_complete,
}
