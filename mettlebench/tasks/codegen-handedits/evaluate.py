"""Checks the generator, the schema and the release (mettlebench-canary-ef69f5634e26a787a60604d64a1e7ee7)."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import tarfile
import zlib
from typing import Any

from mettlebench.check import Grading, fail, require

from build import EDITS, edited_schema, shipped

SCHEMA = {
    "types": {
        "Leaf": {
            "doc": 'A "quoted" leaf.',
            "fields": {
                "size": {"type": "int", "default": 0, "min": 0, "max": 9},
                "code": {"type": "str", "alias": "leafCode", "strip": True, "pattern": "[a-z]+"},
                "on": {"type": "bool", "default": True},
            },
        },
        "Tree": {
            "doc": "A tree.",
            "fields": {
                "names": {"type": "list:str", "default": ["x"], "max_items": 2},
                "root": {"type": "Leaf", "alias": "theRoot"},
                "leaves": {"type": "list:Leaf", "default": [], "alias": "theLeaves", "max_items": 3},
                "level": {"type": "int", "min": -3},
            },
        },
    }
}
LEAF = {"leafCode": " ab "}
FULL = {"size": 0, "leafCode": "ab", "on": True}
READ: list[tuple[str, Any, Any]] = [
    ("Leaf", LEAF, FULL),
    ("Leaf", {"leafCode": "ab", "size": 10}, None),
    ("Leaf", {"leafCode": "ab", "size": -1}, None),
    ("Leaf", {"leafCode": "ab", "size": True}, None),
    ("Leaf", {"leafCode": "ab", "on": 1}, None),
    ("Leaf", {"leafCode": "Ab"}, None),
    ("Leaf", {"leafCode": "ab1"}, None),
    ("Leaf", {"leafCode": 7}, None),
    ("Leaf", {"code": "ab"}, None),
    ("Leaf", {"leafCode": "ab", "extra": 1}, None),
    ("Leaf", {}, None),
    ("Tree", {"theRoot": LEAF, "level": -3}, {"names": ["x"], "theRoot": FULL, "theLeaves": [], "level": -3}),
    ("Tree", {"theRoot": LEAF, "level": -4}, None),
    ("Tree", {"theRoot": LEAF, "level": 1, "names": ["a", "b", "c"]}, None),
    ("Tree", {"theRoot": LEAF, "level": 1, "names": [1]}, None),
    ("Tree", {"theRoot": LEAF, "level": 1, "theLeaves": [LEAF] * 4}, None),
    (
        "Tree",
        {"theRoot": LEAF, "level": 1, "theLeaves": [LEAF], "names": []},
        {"names": [], "theRoot": FULL, "theLeaves": [FULL], "level": 1},
    ),
    ("Tree", {"theRoot": None, "level": 1}, None),
    ("Tree", {"level": 1}, None),
]
ADDRESS = {"name": "Ada", "postcode": " 8001 "}
ORDER = {"id": "o1", "customerEmail": " a@b ", "shipTo": ADDRESS, "note": " hi "}
LINE = {"sku": " TEA-7", "unitCents": 0}
RULES: list[tuple[str, Any, bool]] = [
    ("Address", ADDRESS, True),
    ("Address", ADDRESS | {"postcode": "123"}, False),
    ("Address", ADDRESS | {"country": "ch"}, False),
    ("Line", LINE | {"qty": 999}, True),
    ("Line", LINE | {"qty": 1000}, False),
    ("Line", LINE | {"qty": 0}, False),
    ("Line", LINE | {"unitCents": -1}, False),
    ("Line", LINE | {"sku": "tea-7"}, False),
    ("Order", ORDER, True),
    ("Order", ORDER | {"customerEmail": "a b@c"}, False),
    ("Order", ORDER | {"priority": 6}, False),
    ("Order", ORDER | {"priority": 0}, False),
    ("Order", ORDER | {"lines": [LINE] * 200}, True),
    ("Order", ORDER | {"lines": [LINE] * 201}, False),
]
PROBE = """
import importlib.util, json
spec = importlib.util.spec_from_file_location("made", sys.argv[1])
made = importlib.util.module_from_spec(spec)
sys.modules["made"] = made
spec.loader.exec_module(made)
found = []
for name, document in json.load(sys.stdin):
    try:
        found.append(getattr(made, name).from_json(document).to_json())
    except ValueError:
        found.append(None)
shared = made.Tree if hasattr(made, "Tree") else None
if shared:
    one = shared(root=made.Leaf(code="a"), level=0)
    one.names.append("y")
    found.append(shared(root=made.Leaf(code="a"), level=0).names)
    try:
        shared(root=made.Leaf(code="a"), level=-9)
        found.append("made")
    except ValueError:
        found.append("refused")
print(json.dumps(found))
"""


def ask(work: Grading, module: bytes, documents: list[tuple[str, Any]]) -> list[Any]:
    scratch = work.scratch()
    scratch.write("probe_made.py", module)
    found = scratch.python(PROBE, "probe_made.py", stdin=json.dumps(documents)).json("the generated module")
    require(isinstance(found, list) and len(found) >= len(documents), "the generated module gives no answers")
    return list(found)


def generated(work: Grading, schema: bytes) -> bytes:
    scratch = work.scratch()
    scratch.write("probe.json", schema)
    return scratch.run(["python3", "-B", "tools/generate.py", "probe.json"]).ok("the generator").stdout


def generator_is_right(work: Grading) -> None:
    schema = json.dumps(SCHEMA).encode()
    module = generated(work, schema)
    head = f"# generated from a schema with SHA-256 {hashlib.sha256(schema).hexdigest()}".encode()
    require(module.split(b"\n", 1)[0].strip() == head, "the first line is another")
    require(generated(work, schema) == module, "the same schema gives other bytes")
    found = ask(work, module, [(name, document) for name, document, _ in READ])
    expected = [want for _, _, want in READ] + [["x"], "refused"]
    wrong = [n for n, want in enumerate(expected) if found[n : n + 1] != [want]]
    require(
        not wrong, f"document {wrong[:1]} is read as {json.dumps(found[wrong[0]])[:100] if wrong else ''}"
    )
    order = [list(each) for each in found if isinstance(each, dict)]
    require(order[0] == ["size", "leafCode", "on"], "fields are written in another order")


def patch_holds_the_edits(work: Grading) -> None:
    old = shipped("schema/api.json")
    require(work.read("schema/api-1.json") == old, "the old schema is not kept as it was")
    scratch = work.scratch()
    scratch.write("probe/models.py", generated(work, old))
    command = [
        "patch",
        "--batch",
        "--forward",
        "--no-backup-if-mismatch",
        "-o",
        "probe/edited.py",
        "probe/models.py",
    ]
    ended = scratch.run([*command, "docs/handedits.patch"])
    require(ended.code == 0 and scratch.is_file("docs/handedits.patch"), "the patch does not apply")
    require(scratch.read("probe/edited.py") == shipped("shopapi/models.py"), "the patch gives another file")


def edits_are_listed(work: Grading) -> None:
    try:
        rows = [row for row in csv.reader(io.StringIO(work.text("docs/handedits.csv"), newline="")) if row]
    except csv.Error:
        fail("the list is no comma-separated file")
    expected = [[name, field, key, json.dumps(value)] for name, field, key, value in EDITS]
    require(
        rows == [["class", "field", "key", "value"], *expected], f"{len(rows) - 1} rows, {len(EDITS)} edits"
    )


def schema_says_it_all(work: Grading) -> None:
    require(work.json("schema/api.json") == edited_schema(), "the schema says something else")


def models_are_generated(work: Grading) -> None:
    require(work.read("shopapi/models.py") == generated(work, work.read("schema/api.json")), "other models")


def rules_hold(work: Grading) -> None:
    found = ask(work, work.read("shopapi/models.py"), [(name, document) for name, document, _ in RULES])
    wrong = [n for n, (_, _, holds) in enumerate(RULES) if (found[n] is not None) != holds]
    require(not wrong, f"document {wrong[:1]} is treated wrongly")
    want = {"name": "Ada", "addition": "", "postcode": "8001", "country": "CH"}
    order = {
        "id": "o1",
        "customerEmail": "a@b",
        "note": "hi",
        "shipTo": want,
        "lines": [],
        "priority": 3,
        "tags": [],
    }
    require(found[0] == want and found[8] == order, "what is read is written otherwise")


def tests_are_green(work: Grading) -> None:
    for name in ("tests/__init__.py", "tests/test_models.py"):
        require(work.read(name) == work.shipped(name), f"{name} was changed")
    scratch = work.scratch()
    scratch.run(["python3", "-B", "-m", "unittest", "discover", "-s", "tests", "-t", "."]).ok("the tests")


def archive_is_right(work: Grading) -> None:
    names = ("CHANGES.md", "schema/api.json", "shopapi/__init__.py", "shopapi/models.py")
    expected = [(f"shopapi-2.0.0/{name}", work.read(name)) for name in names]
    data = work.read("dist/shopapi-2.0.0.tar.gz")
    require(data[:2] == b"\x1f\x8b" and data[4:8] == bytes(4), "no gzip file, or one with a time in it")
    try:
        with tarfile.open(fileobj=io.BytesIO(data)) as archive:
            members = archive.getmembers()
            held = [(m.name, archive.extractfile(m).read() if m.isreg() else b"") for m in members]  # type: ignore[union-attr]
    except (tarfile.TarError, OSError, EOFError, zlib.error):
        fail("the archive cannot be read")
    require(held == expected, f"{len(held)} members, or others")
    for member in members:
        facts = (member.uid, member.gid, member.uname, member.gname, member.mtime, member.mode)
        require(facts == (0, 0, "", "", 0, 0o644), f"{member.name}: owner, time or mode")
    require('__version__ = "2.0.0"' in work.text("shopapi/__init__.py"), "the package has another version")


def changes_tell(work: Grading) -> None:
    text, old = work.text("CHANGES.md"), shipped("CHANGES.md").decode()
    section = text.partition("## 2.0.0")[2].partition("\n## ")[0]
    require(
        section and text.index("## 2.0.0") < text.index("## 1.4.2"), "there is no section above the others"
    )
    require(old.partition("## 1.4.2")[2] in text, "older sections were changed")
    words = {word.strip(".,;:()`*|") for word in section.split()}
    wanted = [str(len(EDITS)), work.sha256("docs/handedits.patch"), work.sha256("shopapi/models.py")]
    missing = [value for value in wanted if value not in words]
    require(not missing, f"not quoted: {', '.join(missing)}")
    files = {name for name in work.files() if "__pycache__" not in name}
    known = {"CHANGES.md", "Makefile", "dist/shopapi-2.0.0.tar.gz", "schema/api.json", "schema/api-1.json"}
    known |= {f"docs/{name}" for name in ("generator.md", "releasing.md", "handedits.csv", "handedits.patch")}
    known |= {"shopapi/__init__.py", "shopapi/models.py", "tools/generate.py"}
    known |= {"tests/__init__.py", "tests/test_models.py"}
    require(files == known, f"left over or missing: {', '.join(sorted(files ^ known))}")


CHECKS = {
    "C01": generator_is_right,
    "C02": patch_holds_the_edits,
    "C03": edits_are_listed,
    "C04": schema_says_it_all,
    "C05": models_are_generated,
    "C06": rules_hold,
    "C07": tests_are_green,
    "C08": archive_is_right,
    "C09": changes_tell,
}
