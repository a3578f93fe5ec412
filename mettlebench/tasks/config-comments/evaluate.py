"""Checks the service files in their new form (mettlebench-canary-696d225d2311ad1faf8ac9519086b56c)."""

from __future__ import annotations

import json

from mettlebench.check import Grading, require

from build import services, shown

SERVICES = services()
PROBES = {
    "[a]\nx = 1 ; one\n": {"a": {"x": 1}},
    '[a]\nx = "; no" ; yes\ny = a;b\n': {"a": {"x": "; no", "y": "a;b"}},
    '[a]\nx = "a\\\\b"\ny = -7\nz = --7\n': {"a": {"x": "a\\b", "y": -7, "z": "--7"}},
    "[a]\nx = 1\n  2 ; three\n\n[b]\ny = true\n[a]\nz = \n": {"a": {"x": "1 2", "z": ""}, "b": {"y": True}},
    "[a]\nx = 5\n#@ y = 6\n ; nothing\ny = 7\n": {"a": {"x": 5, "y": 7}},
    "[a]\nu = http://h/?a=b;c\n": {"a": {"u": "http://h/?a=b;c"}},
    "x = 1\n": None,
    "[a]\nloose words\n": None,
}
PROBE = """
import json
from convert import Malformed, parse
found = []
for text in json.load(sys.stdin):
    try:
        found.append(parse(text))
    except Malformed:
        found.append(None)
print(json.dumps(found))
"""


def converter_reads_right(work: Grading) -> None:
    said = work.scratch().python(PROBE, path=["tools"], stdin=json.dumps(list(PROBES)))
    found = said.json("the converter")
    wanted = list(PROBES.values())
    wrong = [n for n, want in enumerate(wanted) if not isinstance(found, list) or found[n : n + 1] != [want]]
    require(not wrong, f"texts {wrong} of {len(wanted)} are not read right")
    for name in ("tests/__init__.py", "tests/test_convert.py"):
        require(work.read(name) == work.shipped(name), f"{name} was changed")
    work.scratch().run(["python3", "-m", "unittest", "discover", "-s", "tests", "-t", "."]).ok("the tests")


def directives_are_recorded(work: Grading) -> None:
    rows = [
        tuple(row.values()) for row in work.csv("records/directives.csv", ("file", "line", "key", "value"))
    ]
    expected = [
        (f"{service.name}.conf", str(line), key if value is not None else f"!{key}", shown(value))
        for service in SERVICES
        for line, key, value in service.directives
    ]
    require(rows == expected, f"{len(rows)} directives, {len(expected)} expected, or other values")


def notes_are_recorded(work: Grading) -> None:
    columns = ("file", "line", "date", "author", "text")
    rows = [tuple(row.values()) for row in work.csv("records/notes.csv", columns)]
    expected = [
        (f"{service.name}.conf", str(line), date, author, text)
        for service in SERVICES
        for line, date, author, text in service.notes
    ]
    require(rows == expected, f"{len(rows)} notes, {len(expected)} expected, or other values")


def documents(work: Grading) -> dict[str, dict[str, object]]:
    present = work.files("services")
    require(
        present == [f"services/{each.name}.json" for each in SERVICES], f"{len(present)} files, or others"
    )
    found = {}
    for service in SERVICES:
        document = work.json(f"services/{service.name}.json")
        require(isinstance(document, dict), f"{service.name} is no object")
        found[service.name] = document
    return found


def same(found: object, wanted: object) -> bool:
    # 1 and true are equal in Python, and are not the same setting
    return json.dumps(found, sort_keys=True) == json.dumps(wanted, sort_keys=True)


def settings_are_unchanged(work: Grading) -> None:
    for name, document in documents(work).items():
        sections = next(each.sections for each in SERVICES if each.name == name)
        held = {key: value for key, value in document.items() if key not in ("supervisor", "notes")}
        require(same(held, sections), f"{name}: other settings than before")


def comments_have_become_keys(work: Grading) -> None:
    found = documents(work)
    for service in SERVICES:
        wanted = service.finished()
        for key in ("supervisor", "notes"):
            require(same(found[service.name].get(key), wanted[key]), f"{service.name}: {key}")


def inventory_is_right(work: Grading) -> None:
    rows = [tuple(row.values()) for row in work.csv("records/inventory.csv", ("service", "before", "after"))]
    expected = [(each.name, each.digest, work.sha256(f"services/{each.name}.json")) for each in SERVICES]
    require(rows == expected, f"{len(rows)} services, or other digests")


def note_ties_together(work: Grading) -> None:
    words = {word.strip(".,;:()`*|") for word in work.text("records/change.md").split()}
    directives, notes = (sum(len(each) for each in lists) for lists in zip(*_counts(), strict=True))
    wanted = [str(len(SERVICES)), str(directives), str(notes)]
    wanted += [work.sha256(f"records/{name}.csv") for name in ("directives", "notes", "inventory")]
    missing = [value for value in wanted if value not in words]
    require(not missing, f"not quoted: {', '.join(missing)}")
    known = {"docs", "records", "services", "tests", "tools"}
    extra = {name.split("/")[0] for name, _ in work.walk() if "__pycache__" not in name} - known
    extra |= set(work.files("records")) - {f"records/{n}" for n in RECORDS}
    require(not extra, f"left behind: {', '.join(sorted(extra))}")


RECORDS = ("change.md", "directives.csv", "inventory.csv", "notes.csv")


def _counts() -> list[tuple[list[object], list[object]]]:
    return [([*each.directives], [*each.notes]) for each in SERVICES]


CHECKS = {
    "C01": converter_reads_right,
    "C02": directives_are_recorded,
    "C03": notes_are_recorded,
    "C04": settings_are_unchanged,
    "C05": comments_have_become_keys,
    "C06": inventory_is_right,
    "C07": note_ties_together,
}
