"""Checks the way back to shelf 1.8 (mettlebench-canary-0f10d09ffde4b9d5759ab3077bcf2a7d)."""

from __future__ import annotations

import hashlib
import json

from mettlebench.check import Grading, require

from build import NEW, export, format_1, format_2, record, stores

HELD = stores()
PROBE = """
import json
from load import items
print(json.dumps([[list(each) for each in items(text)] for text in json.load(sys.stdin)]))
"""


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def stores_are_recorded(work: Grading) -> None:
    columns = ("store", "items", "revisions", "deleted", "sha256")
    rows = [tuple(row.values()) for row in work.csv("records/stores.csv", columns)]
    expected = []
    for name, items in HELD.items():
        counts = (len(items), sum(len(each.revisions) for each in items), sum(each.deleted for each in items))
        expected.append((f"{name}.shelf", *map(str, counts), digest(format_2(items))))
    require(rows == expected, f"{len(rows)} stores, or other figures")


def exports_are_complete(work: Grading) -> None:
    require(work.files("export") == [f"export/{name}.jsonl" for name in HELD], "other exports than stores")
    for name, items in HELD.items():
        # not by lines: a note may hold a character that some take for a line end
        found = [json_or_text(line) for line in work.text(f"export/{name}.jsonl").split("\n") if line]
        require(
            found == [json.loads(line) for line in export(items).split("\n") if line], f"{name} is another"
        )


def json_or_text(line: str) -> object:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return line


def version_is_installed(work: Grading) -> None:
    present = {name for name in work.files("site") if "__pycache__" not in name}
    known = {"site/shelf.RECORD", *(f"site/shelf/{name}" for name in NEW)}
    require(present == known, f"too many or missing: {', '.join(sorted(present ^ known))}")
    for name, text in NEW.items():
        require(work.read(f"site/shelf/{name}") == text.encode(), f"{name} is not that of 1.8")
    require(work.read("site/shelf.RECORD") == record().encode(), "the record of installed files")


def loader_is_right(work: Grading) -> None:
    asked = [export(items) for items in stores(seed=5).values()]
    said = work.scratch().python(PROBE, path=["tools"], stdin=json.dumps(asked)).json("the loader")
    wanted = []
    for items in stores(seed=5).values():
        kept = sorted((each for each in items if not each.deleted), key=lambda each: each.key)
        wanted.append([[each.key, each.revisions[-1][0], each.tags, each.revisions[-1][1]] for each in kept])
    require(said == wanted, "items of an export come out wrong")
    require(work.read("tests/test_load.py") == work.shipped("tests/test_load.py"), "the tests were changed")
    work.scratch().run(["python3", "-m", "unittest", "discover", "-s", "tests", "-t", "."]).ok("the tests")


def stores_are_loaded(work: Grading) -> None:
    require(work.files("state") == [f"state/{name}.shelf" for name in HELD], "other stores than before")
    for name, items in HELD.items():
        found = work.read(f"state/{name}.shelf")
        require(found == format_1(items).encode(), f"{name} does not hold what it should")


def lock_is_right(work: Grading) -> None:
    lock = {
        "name": "shelf",
        "version": "1.8",
        "archive": work.sha256("packages/shelf-1.8.tar.gz"),
        "record": digest(record().encode()),
    }
    require(work.json("shelf.lock.json") == lock, "the lock says something else")


def note_ties_together(work: Grading) -> None:
    words = {word.strip(".,;:()`*|") for word in work.text("records/downgrade.md").split()}
    items = [each for held in HELD.values() for each in held]
    wanted = [str(len(HELD)), str(len(items)), str(sum(not each.deleted for each in items))]
    wanted += [work.sha256("records/stores.csv"), work.sha256("shelf.lock.json")]
    missing = [value for value in wanted if value not in words]
    require(not missing, f"not quoted: {', '.join(missing)}")
    files = {name for name in work.files() if "__pycache__" not in name}
    known = ("docs/", "export/", "packages/", "site/", "state/", "tests/", "tools/")
    extra = {name for name in files if not name.startswith(known)}
    extra -= {"records/stores.csv", "records/downgrade.md", "shelf.lock.json"}
    require(not extra, f"left behind: {', '.join(sorted(extra))}")


CHECKS = {
    "C01": stores_are_recorded,
    "C02": exports_are_complete,
    "C03": version_is_installed,
    "C04": loader_is_right,
    "C05": stores_are_loaded,
    "C06": lock_is_right,
    "C07": note_ties_together,
}
