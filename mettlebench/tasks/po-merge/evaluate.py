"""Checks the library and the merged catalogues (mettlebench-canary-5f1fffbfd32d51d103178016895f5b88)."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

from mettlebench.check import Grading, fail, require

from build import AFTER, BEFORE, LANGUAGES, Entry, story, written

PROBE = """
import json
from dataclasses import asdict
import pofile
text = sys.stdin.buffer.read().decode("utf-8")
first = pofile.parse(text)
again = pofile.write(first)
print(json.dumps([[asdict(entry) for entry in first], again, pofile.parse(again) == first]))
"""
TRICKY = [
    Entry(msgid="", strings=("Language: xx\n",), comments=("", "a  b"), breaks=2),
    Entry(msgid='a "b" \\n \\\\ c', context="", strings=('"\\"\n\t"',), extracted=("x", "y"), breaks=4),
    Entry(
        msgid="f",
        plural='%d "f"',
        strings=("1", "2", "3\\"),
        references=("a:1", "b:2"),
        flags=("fuzzy", "c-format"),
    ),
    Entry(msgid="old\n\nold", context="m", strings=("é\n",), comments=("kept",), obsolete=True, breaks=3),
    Entry(msgid="p", plural="q", strings=("r", ""), obsolete=True),
]


def facts(entry: Entry) -> dict[str, Any]:
    return {
        "msgid": entry.msgid,
        "context": entry.context,
        "plural": entry.plural,
        "strings": list(entry.strings),
        "comments": list(entry.comments),
        "extracted": list(entry.extracted),
        "references": list(entry.references),
        "flags": list(entry.flags),
        "obsolete": entry.obsolete,
    }


def probe(work: Grading, entries: list[Entry]) -> list[Any]:
    said = work.scratch().python(PROBE, path=["."], stdin=written(entries, broken=True)).json("the library")
    require(
        isinstance(said, list) and len(said) == 3 and isinstance(said[0], list), "the library gives no answer"
    )
    return list(said)


def library_reads_everything(work: Grading) -> None:
    for entries in (TRICKY, *BEFORE.values()):
        found = probe(work, entries)[0]
        require(len(found) == len(entries), f"{len(found)} entries are read, {len(entries)} are there")
        wrong = [n for n, entry in enumerate(entries) if found[n] != facts(entry)]
        require(not wrong, f"entry {wrong[:1]} is read wrongly")


def library_writes_what_it_reads(work: Grading) -> None:
    for entries in (TRICKY, *BEFORE.values()):
        _, again, equal = probe(work, entries)
        require(equal is True, "what was written is read back otherwise")
        require(_even(again) == _even(written(entries)), "a catalogue is not written in the agreed form")
    require(
        work.read("tests/test_pofile.py") == work.shipped("tests/test_pofile.py"), "the tests were changed"
    )
    work.scratch().run(["python3", "-m", "unittest", "discover", "-s", "tests", "-t", "."]).ok("the tests")


def _even(text: object) -> str:
    """Without the blank that may or may not follow the mark of an empty comment."""
    return "\n".join(line.rstrip() if line.startswith("#") else line for line in str(text).split("\n"))


def table(work: Grading, path: str) -> list[list[str]]:
    try:
        return [row for row in csv.reader(io.StringIO(work.text(path), newline=""), strict=True) if row]
    except csv.Error:
        fail(f"{path} is no comma-separated file")


def bodies(catalogues: dict[str, list[Entry]]) -> list[tuple[str, Entry]]:
    return [(language, entry) for language in LANGUAGES for entry in catalogues[language] if entry.msgid]


def same(work: Grading, path: str, head: str, rows: list[list[str]]) -> None:
    found = table(work, path)
    require(
        found == [head.split(","), *rows],
        f"{path}: {len(found) - 1} rows, {len(rows)} expected, or other values",
    )


def inventory_is_complete(work: Grading) -> None:
    rows = [[lang, e.context or "", e.msgid, e.state, str(len(e.comments))] for lang, e in bodies(BEFORE)]
    same(work, "l10n/before.csv", "language,context,msgid,state,comments", rows)


def harvest_is_complete(work: Grading) -> None:
    rows = [[lang, e.msgid, e.strings[0]] for lang, e in bodies(BEFORE) if e.obsolete]
    same(work, "l10n/glossary.csv", "language,msgid,msgstr", rows)
    notes = [[lang, e.context or "", e.msgid, note] for lang, e in bodies(BEFORE) for note in e.comments]
    same(work, "l10n/notes.csv", "language,context,msgid,comment", notes)


def catalogues_are_merged(work: Grading) -> None:
    require(work.text("po/messages.pot") == written(story()[0], broken=True), "the template was changed")
    for language in LANGUAGES:
        found = _even(work.text(f"po/{language}.po"))
        require(found == _even(written(AFTER[language])), f"{language} is not the merge of both sides")


def fuzzy_are_listed(work: Grading) -> None:
    rows = [[lang, e.context or "", e.msgid] for lang, e in bodies(AFTER) if e.state == "fuzzy"]
    same(work, "l10n/fuzzy.csv", "language,context,msgid", rows)


def compiled(language: str) -> str:
    usable = [entry for entry in AFTER[language] if entry.msgid and entry.state == "translated"]
    table = {(f"{e.context}|" if e.context is not None else "") + e.msgid: list(e.strings) for e in usable}
    return json.dumps(table, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def compiled_are_right(work: Grading) -> None:
    for language in LANGUAGES:
        require(
            work.text(f"build/{language}.json") == compiled(language), f"{language} is compiled otherwise"
        )


def report_is_complete(work: Grading) -> None:
    words = {word.strip(".,;:()`*|") for word in work.text("l10n/REPORT.md").split()}
    states = [(lang, entry.state) for lang, entry in bodies(AFTER)]
    wanted = [
        str(states.count((lang, s))) for lang in LANGUAGES for s in ("translated", "fuzzy", "untranslated")
    ]
    wanted.append(str(sum(entry.obsolete for _, entry in bodies(BEFORE))))
    wanted.append(str(sum(len(entry.comments) for _, entry in bodies(BEFORE))))
    wanted.append(str(sum(state == "fuzzy" for _, state in states)))
    wanted += [work.sha256(f"l10n/{name}.csv") for name in ("glossary", "notes")]
    wanted += [work.sha256(f"build/{language}.json") for language in LANGUAGES]
    missing = [value for value in wanted if value not in words]
    require(not missing, f"not quoted: {', '.join(missing)}")
    top = {name.split("/")[0] for name in work.files() if "__pycache__" not in name}
    require(
        top == {"build", "docs", "l10n", "po", "pofile", "tests"}, f"the tree holds {', '.join(sorted(top))}"
    )
    require(len(work.files("po")) == 3, "there are copies of catalogues")


CHECKS = {
    "C01": library_reads_everything,
    "C02": library_writes_what_it_reads,
    "C03": inventory_is_complete,
    "C04": harvest_is_complete,
    "C05": catalogues_are_merged,
    "C06": fuzzy_are_listed,
    "C07": compiled_are_right,
    "C08": report_is_complete,
}
