"""Checks the migrated stock database and its list (mettlebench-canary-ee9c21225d7cd3dd3e2f54230b6c6c13)."""

from __future__ import annotations

import sqlite3

from mettlebench.check import Grading, query, require

from build import REPORTS, Stock, fill, labels, listing, stock

STOCK = stock(7)
NEW = """
create table article (
  id integer primary key, sku text not null unique, name text not null, unit text not null,
  bin text not null);
create table supplier (id integer primary key, code text not null unique, name text not null);
create table movement (id integer primary key, article integer not null references article (id),
  supplier integer references supplier (id), qty integer not null, day text not null);
"""


LOOKS = (
    "select name from sqlite_master where type <> 'index' order by 1",
    """select m.name, c.name, upper(c.type), c."notnull", c.pk
       from sqlite_master m, pragma_table_info(m.name) c where m.type = 'table' order by m.name, c.cid""",
    """select m.name, k."table", k."from", k."to"
       from sqlite_master m, pragma_foreign_key_list(m.name) k where m.type = 'table' order by 1, 2""",
    """select m.name, count(*) from sqlite_master m, pragma_index_list(m.name) i
       where i."unique" group by 1""",
)
"""What two schemas are compared by."""


def found(work: Grading, path: str, *columns: str) -> list[tuple[str, ...]]:
    return [tuple(row.values()) for row in work.csv(path, columns)]


def tables_are_recorded(work: Grading) -> None:
    held = found(work, "records/tables.csv", "table", "rows", "numbering")
    expected = [
        ("article", str(len(STOCK.articles)), "implicit"),
        ("movement", str(len(STOCK.movements)), "declared"),
        ("supplier", str(len(STOCK.suppliers)), "implicit"),
    ]
    require(held == expected, f"{len(held)} tables, or other values")


def numbers_are_recorded(work: Grading) -> None:
    held = found(work, "records/numbers.csv", "table", "number", "key")
    expected = [("article", str(key), row[0]) for key, row in STOCK.articles.items()]
    expected += [("supplier", str(key), row[0]) for key, row in STOCK.suppliers.items()]
    wrong = sum(a != b for a, b in zip(held, expected, strict=False))
    require(held == expected, f"{len(held)} numbers, {len(expected)} expected, {wrong} differ")


def orphans_are_recorded(work: Grading) -> None:
    held = found(work, "records/orphans.csv", "id", "article", "supplier", "qty", "day")
    expected = [
        tuple("" if cell is None else str(cell) for cell in (key, *row)) for key, row in STOCK.orphans.items()
    ]
    require(held == expected, f"{len(held)} orphans, {len(expected)} expected, or other values")


def numbers_are_declared(work: Grading) -> None:
    database = work.database("stock/stock.db")
    require(query(database, "pragma integrity_check") == [("ok",)], "integrity check")
    plan = sqlite3.connect(":memory:")
    plan.executescript(NEW)
    for look in LOOKS:
        wanted = query(plan, look)
        require(query(database, look) == wanted, "the schema is not the one described")
    for table, rows in (("article", STOCK.articles), ("supplier", STOCK.suppliers), ("movement", STOCK.kept)):
        held = query(database, f"select * from {table} order by id")
        require(
            held == [(key, *row) for key, row in rows.items()], f"{table}: {len(held)} rows, or other ones"
        )


def labels_name_their_articles(work: Grading) -> None:
    present = work.files("labels")
    require(present == [f"labels/{name}.json" for name in labels(STOCK)], f"{len(present)} labels, or others")
    for name, label in labels(STOCK).items():
        article = STOCK.articles.get(int(label["article"]))
        wanted = {**label, "sku": article[0] if article else None}
        require(work.json(f"labels/{name}.json") == wanted, f"label {name}")


def database(held: Stock) -> bytes:
    made = sqlite3.connect(":memory:")
    made.executescript(NEW)
    made.executemany("insert into article values (?,?,?,?,?)", [(k, *r) for k, r in held.articles.items()])
    made.executemany("insert into supplier values (?,?,?)", [(k, *r) for k, r in held.suppliers.items()])
    made.executemany("insert into movement values (?,?,?,?,?)", [(k, *r) for k, r in held.kept.items()])
    made.commit()
    return made.serialize()


def list_is_as_before(work: Grading) -> None:
    for day in REPORTS:
        require(
            work.text(f"reports/onhand-{day}.txt") == listing(STOCK, day), f"the list of {day} was changed"
        )
    for seed, days in ((7, (*REPORTS, "2025-01-01", "2025-08-17")), (23, ("2025-05-05", "2025-12-31"))):
        held, scratch = stock(seed), work.scratch()
        scratch.write("probe.db", database(held))
        for day in days:
            ended = scratch.run(["python3", "-I", "tools/onhand.py", "probe.db", day]).ok("the stock list")
            require(ended.text() == listing(held, day), f"the list of {day} is not what it should be")


def file_is_compact(work: Grading) -> None:
    held = work.database("stock/stock.db")
    require(query(held, "pragma freelist_count") == [(0,)], "there are free pages")
    require(work.read("stock/stock.db")[18:20] == b"\x01\x01", "the database asks for a write-ahead log")
    require(work.files("stock") == ["stock/stock.db"], "something lies beside the database")


def note_ties_together(work: Grading) -> None:
    words = {word.strip(".,;:()`*|") for word in work.text("records/note.md").split()}
    gone = sum(int(label["article"]) not in STOCK.articles for label in labels(STOCK).values())
    before = sqlite3.connect(":memory:", isolation_level=None)
    fill(before)
    databases = (before, work.database("stock/stock.db"))
    wanted = [str(query(each, "pragma page_count")[0][0]) for each in databases]
    wanted += [str(len(STOCK.orphans)), str(gone)]
    wanted += [work.sha256("records/numbers.csv"), work.sha256("records/orphans.csv")]
    missing = [value for value in wanted if value not in words]
    require(not missing, f"not quoted: {', '.join(missing)}")
    names = {"records/note.md", *(f"records/{name}.csv" for name in ("numbers", "orphans", "tables"))}
    files = {name for name in work.files() if "__pycache__" not in name}
    extra = {name for name in files if not name.startswith(("docs/", "labels/", "reports/", "stock/"))}
    extra -= {*names, "tools/onhand.py"}
    require(not extra, f"left behind: {', '.join(sorted(extra))}")


CHECKS = {
    "C01": tables_are_recorded,
    "C02": numbers_are_recorded,
    "C03": orphans_are_recorded,
    "C04": numbers_are_declared,
    "C05": labels_name_their_articles,
    "C06": list_is_as_before,
    "C07": file_is_compact,
    "C08": note_ties_together,
}
