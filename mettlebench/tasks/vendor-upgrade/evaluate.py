"""Checks the upgrade of the vendored library (mettlebench-canary-0407c1e1d0fecf8e2a8553f2ba0f688f)."""

from __future__ import annotations

import re

from mettlebench.check import Grading, Scratch, fail, require

from build import QUEUE, RELEASE_14, RELEASE_15, TREE, tree_digest

ARCHIVES = {"tabula-1.4.tar.gz": ("1.4", RELEASE_14), "tabula-1.5.tar.gz": ("1.5", RELEASE_15)}
LOCAL = "0004-local.patch"
TABLES = [
    ([["東京", 12, None], ["a", "3.5", "ｗ"]], {}),
    ([["東京", 12], ["abc", 7]], {"padding": 1}),
    ([["long text here", 100], ["東京都港区", -7]], {"limit": 6}),
    ([["x", None], [None, 3]], {"padding": 2, "sep": "!"}),
    ([["1e3", "n/a"], [2, 10]], {}),
    ([], {}),
]
EXPECTED = [
    "東京 |  12 |   \na    | 3.5 | ｗ",
    " 東京  |  12 \n abc   |   7 ",
    "long ~ | 100\n東京~  |  -7",
    "  x  !     \n     !  3  ",
    "1e3 | n/a\n  2 |  10",
    "",
]
PROBE = "import json\nfrom tabula import render\nprint(json.dumps([render(r, **o) for r, o in {}]))\n"


def releases_are_registered(work: Grading) -> None:
    rows = work.csv("records/sources.csv", ("archive", "version", "sha256", "files"))
    found = [tuple(row.values()) for row in rows]
    expected = [
        (name, version, work.sha256(f"vendor/archives/{name}"), str(len(files)))
        for name, (version, files) in ARCHIVES.items()
    ]
    require(found == expected, f"{len(found)} archives, or other values")


def queue_is_recorded(work: Grading) -> None:
    rows = work.csv("records/queue.csv", ("patch", "state"))
    states = {name: "absent" if "markdown" in name else "applied" for name in QUEUE}
    expected = [*states.items(), ("tree", tree_digest(TREE))]
    require([tuple(row.values()) for row in rows] == expected, f"{len(rows)} rows, or other values")


def unpatched(work: Grading, files: dict[str, str]) -> Scratch:
    scratch = work.scratch()
    for name, text in files.items():
        scratch.write(f"probe-tree/{name}", text)
    return scratch


def patched(work: Grading, files: dict[str, str], queue: str, names: list[str]) -> dict[str, bytes]:
    """What a release becomes under a queue of patches."""
    scratch = unpatched(work, files)
    for name in names:
        require(re.fullmatch(r"[\w.-]+\.patch", name), f"{queue}: {name} is no patch")
        text = work.read(f"{queue}/{name}")
        command = ["patch", "-p1", "--batch", "--forward", "--no-backup-if-mismatch", "-d", "probe-tree"]
        ended = scratch.run(command, stdin=text)
        said = ended.text()
        require(
            ended.code == 0 and "fuzz" not in said and "FAILED" not in said, f"{queue}/{name} does not apply"
        )
    return {name.removeprefix("probe-tree/"): scratch.read(name) for name in scratch.files("probe-tree")}


def local_change_is_captured(work: Grading) -> None:
    names = work.lines("patches/1.4/series")
    require(names == ["0001-wide.patch", "0002-none.patch", LOCAL], f"the old queue is {' '.join(names)}")
    for name, text in QUEUE.items():
        require(work.text(f"patches/1.4/{name}") == text, f"{name} is not as it was")
    tree = patched(work, RELEASE_14, "patches/1.4", names)
    require(tree == {name: text.encode() for name, text in TREE.items()}, "the old queue gives another tree")


def vendored(work: Grading) -> dict[str, bytes]:
    files = [name for name in work.files("vendor/tabula") if "__pycache__" not in name]
    return {name.removeprefix("vendor/tabula/"): work.read(name) for name in files}


def new_queue_gives_the_tree(work: Grading) -> None:
    names = work.lines("patches/1.5/series")
    require(names == ["0001-wide.patch", LOCAL], f"the new queue is {' '.join(names)}")
    tree = patched(work, RELEASE_15, "patches/1.5", names)
    require(tree == vendored(work), "the new queue gives another tree")
    first = patched(work, RELEASE_15, "patches/1.5", names[:1])
    changed = [name for name, text in RELEASE_15.items() if first.get(name) != text.encode()]
    require(changed == ["text.py"], f"the first patch changes {', '.join(changed) or 'nothing'}")


def tables_come_out_right(work: Grading) -> None:
    found = work.scratch().python(PROBE.format(repr(TABLES)), path=["vendor"]).json("rendering tables")
    require(isinstance(found, list) and len(found) == len(EXPECTED), "not every table is rendered")
    wrong = [n for n, want in enumerate(EXPECTED) if found[n] != want]
    if wrong:
        fail(f"table {wrong[0]} comes out as {found[wrong[0]]!r}")


def tests_are_green(work: Grading) -> None:
    for name in ("tests/__init__.py", "tests/test_tables.py"):
        require(work.read(name) == work.shipped(name), f"{name} was changed")
    require(work.files("tests") != [], "there are no tests")
    work.scratch().run(["python3", "-B", "-m", "unittest", "discover", "-s", "tests", "-t", "."]).ok(
        "the tests"
    )


def dropped_are_accounted_for(work: Grading) -> None:
    rows = work.csv("records/dropped.csv", ("patch", "reason", "evidence"))
    expected = [("0002-none.patch", "upstream", "#88"), ("0003-markdown.patch", "absent", "")]
    require(sorted(tuple(row.values()) for row in rows) == expected, f"{len(rows)} rows, or other values")


def note_ties_together(work: Grading) -> None:
    text = work.text("VENDOR.md")
    words = {word.strip(".,;:()`*|") for word in text.split()}
    wanted = ["1.5", work.sha256("vendor/archives/tabula-1.5.tar.gz"), *work.lines("patches/1.5/series")]
    wanted += [work.sha256(f"patches/1.4/{LOCAL}"), tree_digest(TREE)]
    wanted.append(
        tree_digest({name: data.decode("utf-8", "replace") for name, data in vendored(work).items()})
    )
    missing = [value for value in wanted if value not in words]
    require(not missing, f"not quoted: {', '.join(missing)}")
    files = {
        name for name in work.files() if "__pycache__" not in name and not name.startswith("vendor/tabula/")
    }
    known = {"VENDOR.md", "docs/vendoring.md", "tests/__init__.py", "tests/test_tables.py"}
    known |= {f"records/{name}.csv" for name in ("sources", "queue", "dropped")}
    known |= {f"vendor/archives/{name}" for name in ARCHIVES}
    known |= {f"patches/1.4/{name}" for name in (*QUEUE, LOCAL, "series")}
    known |= {f"patches/1.5/{name}" for name in ("0001-wide.patch", LOCAL, "series")}
    require(files == known, f"left over or missing: {', '.join(sorted(files ^ known))}")


CHECKS = {
    "C01": releases_are_registered,
    "C02": queue_is_recorded,
    "C03": local_change_is_captured,
    "C04": new_queue_gives_the_tree,
    "C05": tables_come_out_right,
    "C06": tests_are_green,
    "C07": dropped_are_accounted_for,
    "C08": note_ties_together,
}
