"""Checks the hand-over of the plates (mettlebench-canary-930c81e3091bdb358d5d4534f244b21e)."""

from __future__ import annotations

import csv
import hashlib
import io
import json

from mettlebench.check import Grading, fail, need, require

from build import FIRST, MALFORMED, PLATES, SOUND, Plate, plates, standard

PROBE = """
import base64, json, plates
found = []
for text in json.load(sys.stdin):
    try:
        plate = plates.read(base64.b64decode(text))
        written = base64.b64encode(plates.write(plate)).decode()
        values = [[k, type(v).__name__, v] for k, v in plate.values.items()]
        remarks = [list(each) for each in plate.remarks]
        found.append([values, remarks, [list(row) for row in plate.pixels], written])
    except plates.Malformed as malformed:
        found.append(malformed.reason)
print(json.dumps(found))
"""


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def library_is_right(work: Grading) -> None:
    import base64

    probes = plates(seed=7, count=34)
    said = work.scratch().python(
        PROBE, path=["."], stdin=json.dumps([base64.b64encode(plate.data).decode() for plate in probes])
    )
    found = said.json("the library")
    require(isinstance(found, list) and len(found) == len(probes), "the library gives no answer")
    for plate, got in zip(probes, found, strict=True):
        if plate.reason:
            require(got == plate.reason, f"{plate.name} is malformed ({plate.reason})")
            continue
        values = [[name, type(value).__name__, value] for name, value in plate.values.items()]
        written = base64.b64encode(standard(plate)).decode()
        expected = [values, [list(each) for each in plate.remarks], plate.pixels, written]
        require(isinstance(got, list) and len(got) == 4, f"{plate.name} is refused")
        wrong = [
            what
            for what, a, b in zip(("values", "remarks", "pixels", "writing"), got, expected, strict=True)
            if a != b
        ]
        require(not wrong, f"{plate.name}: {', '.join(wrong)}")


def same(work: Grading, path: str, head: str, rows: list[list[str]]) -> None:
    try:
        found = [row for row in csv.reader(io.StringIO(work.text(path), newline=""), strict=True) if row]
    except csv.Error:
        fail(f"{path} is no comma-separated file")
    require(
        found == [head.split(","), *rows],
        f"{path}: {len(found) - 1} rows, {len(rows)} expected, or other values",
    )


def notes_are_on_record(work: Grading) -> None:
    rows = [[plate.name, kind, text] for plate in SOUND for kind, text in plate.remarks]
    same(work, "handover/notes.csv", "file,keyword,text", rows)


def catalogue_is_right(work: Grading) -> None:
    rows = []
    for plate in SOUND:
        exposure = plate.values.get("EXPOSURE")
        size = [str(plate.values[name]) for name in ("NAXIS1", "NAXIS2")]
        pixels = [str(min(plate.flat)), str(max(plate.flat)), str(sum(plate.flat))]
        shown = "" if exposure is None else repr(exposure)
        rows.append([plate.name, str(plate.values.get("OBJECT", "")), shown, *size, *pixels])
    same(work, "handover/catalog.csv", "file,object,exposure,width,height,least,greatest,sum", rows)


def malformed_are_left_alone(work: Grading) -> None:
    rows = [[plate.name, str(plate.reason), digest(plate.data)] for plate in MALFORMED]
    same(work, "handover/quarantine.csv", "file,reason,sha256", rows)
    for plate in MALFORMED:
        require(work.read(f"plates-1931/{plate.name}") == plate.data, f"{plate.name} is not as it was")


def header_of(plate: Plate, data: bytes) -> list[str]:
    text = data.decode("latin-1")
    cards = [text[place : place + 80].rstrip() for place in range(0, len(text), 80)]
    require("END" in cards, f"{plate.name} has no end of its header")
    return cards[: cards.index("END") + 1]


def plates_are_standard(work: Grading) -> None:
    for plate in SOUND:
        found = header_of(plate, work.read(f"plates-1931/{plate.name}"))
        require(
            found == header_of(plate, standard(plate)), f"{plate.name}: other cards than in standard form"
        )
        require(
            len(found) == len(plate.values) + 1 and len(plate.values) >= len(FIRST), f"{plate.name}: cards"
        )


def pixels_are_unchanged(work: Grading) -> None:
    for plate in SOUND:
        require(work.read(f"plates-1931/{plate.name}") == standard(plate), f"{plate.name}: pixels or values")
    present = work.files("plates-1931")
    require(
        present == [f"plates-1931/{plate.name}" for plate in PLATES],
        f"{len(present)} files, {len(PLATES)} plates",
    )


def index_pairs_digests(work: Grading) -> None:
    found = need(work.json("handover/index.json"), "plates", list)
    expected = [{"file": p.name, "before": digest(p.data), "after": digest(standard(p))} for p in SOUND]
    require(found == expected, f"{len(found)} plates, or other digests")


def handover_is_complete(work: Grading) -> None:
    words = {word.strip(".,;:()`*|") for word in work.text("handover/README.md").split()}
    wanted = [str(len(SOUND)), str(sum(len(plate.remarks) for plate in SOUND)), str(len(MALFORMED))]
    wanted += [work.sha256(f"handover/{name}") for name in ("notes.csv", "catalog.csv", "index.json")]
    missing = [value for value in wanted if value not in words]
    require(not missing, f"not quoted: {', '.join(missing)}")
    require(
        work.read("tests/test_plates.py") == work.shipped("tests/test_plates.py"), "the tests were changed"
    )
    work.scratch().run(["python3", "-m", "unittest", "discover", "-s", "tests", "-t", "."]).ok("the tests")
    top = {name.split("/")[0] for name in work.files() if "__pycache__" not in name}
    require(
        top == {"docs", "handover", "plates", "plates-1931", "tests"},
        f"the tree holds {', '.join(sorted(top))}",
    )
    require(len(work.files("handover")) == 5, "there are other files in the hand-over")


CHECKS = {
    "C01": library_is_right,
    "C02": notes_are_on_record,
    "C03": catalogue_is_right,
    "C04": malformed_are_left_alone,
    "C05": plates_are_standard,
    "C06": pixels_are_unchanged,
    "C07": index_pairs_digests,
    "C08": handover_is_complete,
}
