"""Checks the converted letters (mettlebench-canary-fe59a664cdeccdc8ac8daf2cc2f3e608)."""

from __future__ import annotations

import collections
import json

from mettlebench.check import Grading, need, require

from build import encoded, letters, terms

LETTERS = letters()
PROBES = [
    ("cp1252", b"na\xefve \x8d\x8f \x90\r\n\x81"),
    ("cp1252", "naïve".encode()),
    ("iso8859-2", "żółw\r\nłoś".encode("iso8859-2")),
    ("koi8-r", b"only ascii\n"),
    ("koi8-r", b"\xfe\xff" + "снег\ufffd\r\n".encode("utf-16-be")),
    ("cp865", b"\xef\xbb\xbf" + "blåbær\n".encode()),
    ("cp865", "blå\rbær\nx".encode("cp865")),
    ("cp1252", "\ufffd und \ufffd".encode()),
    ("cp1253", b"\xd2 \xff\xaa\r\n"),
]
EXPECTED: list[list[object]] = [
    [
        "naïve \ufffd\ufffd \ufffd\n\ufffd",
        "cp1252",
        False,
        "crlf",
        [[6, 0x8D], [7, 0x8F], [9, 0x90], [11, 0x81]],
    ],
    ["naïve", "utf-8", False, "lf", []],
    ["żółw\nłoś", "iso8859-2", False, "crlf", []],
    ["only ascii\n", "ascii", False, "lf", []],
    ["снег\ufffd\n", "utf-16-be", True, "crlf", []],
    ["blåbær\n", "utf-8", True, "lf", []],
    ["blå\rbær\nx", "cp865", False, "lf", []],
    ["\ufffd und \ufffd", "utf-8", False, "lf", []],
    ["\ufffd \ufffd\ufffd\n", "cp1253", False, "crlf", [[0, 0xD2], [2, 0xFF], [3, 0xAA]]],
]
PROBE = """
import json
from recode import decode, encode
found = []
for page, data in json.load(sys.stdin):
    data = bytes.fromhex(data)
    it = decode(data, page)
    lost = [list(each) for each in it.lost]
    found.append([[it.text, it.encoding, it.mark, it.newline, lost], encode(it) == data])
print(json.dumps(found))
"""


def library_reads_right(work: Grading) -> None:
    asked = json.dumps([[page, data.hex()] for page, data in PROBES])
    found = work.scratch().python(PROBE, path=["."], stdin=asked).json("the library")
    wanted = [[each, True] for each in EXPECTED]
    wrong = [n for n, want in enumerate(wanted) if not isinstance(found, list) or found[n : n + 1] != [want]]
    require(not wrong, f"texts {wrong} of {len(wanted)} are not read right")
    require(
        work.read("tests/test_recode.py") == work.shipped("tests/test_recode.py"), "the tests were changed"
    )
    work.scratch().run(["python3", "-m", "unittest", "discover", "-s", "tests", "-t", "."]).ok("the tests")


def ledger_is_complete(work: Grading) -> None:
    columns = ("file", "encoding", "mark", "newline", "bytes", "sha256")
    rows = [tuple(row.values()) for row in work.csv("records/ledger.csv", columns)]
    expected = [
        (
            each.name,
            each.encoding,
            "yes" if each.mark else "no",
            each.newline,
            str(len(each.data)),
            each.digest,
        )
        for each in LETTERS
    ]
    require(rows == expected, f"{len(rows)} letters, {len(expected)} expected, or other values")


def undefined_are_recorded(work: Grading) -> None:
    rows = [tuple(row.values()) for row in work.csv("records/undefined.csv", ("file", "place", "byte"))]
    expected = [(each.name, str(place), f"{byte:02x}") for each in LETTERS for place, byte in each.lost]
    require(rows == expected, f"{len(rows)} bytes, {len(expected)} expected, or other values")


def letters_are_converted(work: Grading) -> None:
    present = [name for name in work.files("letters") if not name.endswith(".sidecar.json")]
    require(present == [f"letters/{each.name}" for each in LETTERS], f"{len(present)} letters, or others")
    for each in LETTERS:
        require(work.read(f"letters/{each.name}") == each.text.encode(), f"{each.name} is another text")


def sidecars_bring_back_the_files(work: Grading) -> None:
    for each in LETTERS:
        sidecar = work.json(f"letters/{each.name}.sidecar.json")
        text = work.text(f"letters/{each.name}")
        facts = (need(sidecar, "encoding", str), need(sidecar, "mark", bool), need(sidecar, "newline", str))
        require(facts == (each.encoding, each.mark, each.newline), f"the sidecar of {each.name}")
        lost = need(sidecar, "lost", list)
        require(lost == [list(pair) for pair in each.lost], f"{each.name}: undefined bytes")
        try:
            data = encoded(text, *facts, dict(each.lost))
        except UnicodeEncodeError:
            data = b""
        require(data == each.data, f"text and sidecar of {each.name} give another file")


def index_is_right(work: Grading) -> None:
    rows = [tuple(row.values()) for row in work.csv("index/terms.csv", ("term", "letters"))]
    require(rows == terms(), f"{len(rows)} terms, or other counts")


def report_ties_together(work: Grading) -> None:
    words = {word.strip(".,;:()`*|") for word in work.text("records/report.md").split()}
    counts = collections.Counter(each.encoding for each in LETTERS)
    wanted = [str(len(LETTERS)), *counts, *map(str, counts.values())]
    wanted.append(str(sum(len(each.lost) for each in LETTERS)))
    quoted = ("records/ledger.csv", "records/undefined.csv", "index/terms.csv")
    wanted += [work.sha256(path) for path in quoted]
    missing = [value for value in wanted if value not in words]
    require(not missing, f"not quoted: {', '.join(missing)}")
    top = {name.split("/")[0] for name, _ in work.walk() if "__pycache__" not in name}
    extra = top - {"docs", "index", "letters", "records", "recode", "tests"}
    kept = {"records/ledger.csv", "records/undefined.csv", "records/report.md", "index/terms.csv"}
    extra |= {*work.files("records"), *work.files("index")} - kept
    require(not extra, f"left behind: {', '.join(sorted(extra))}")


CHECKS = {
    "C01": library_reads_right,
    "C02": ledger_is_complete,
    "C03": undefined_are_recorded,
    "C04": letters_are_converted,
    "C05": sidecars_bring_back_the_files,
    "C06": index_is_right,
    "C07": report_ties_together,
}
