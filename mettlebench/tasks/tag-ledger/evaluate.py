"""Checks the rewritten history and its records (mettlebench-canary-25f66df868359bfd765bdcd4b65cba5a)."""

from __future__ import annotations

import collections

from mettlebench.check import Grading, fail, require

from build import APPROVED, Entry, entries, original, person, releases, tag_message

ENTRIES = {each.mark: each for each in entries()}
BEFORE = original()
FORMAT = "--format=%H%x00%T%x00%P%x00%an%x00%ae%x00%at%x00%cn%x00%ce%x00%ct%x00%B%x01"


def expected_person(entry: Entry) -> str:
    return person(entry.email, entry.at)


def identities_are_attributed(work: Grading) -> None:
    counts = collections.Counter(
        (each.email, expected_person(each)) for each in ENTRIES.values() if each.email not in APPROVED
    )
    found = [
        tuple(row.values()) for row in work.csv("records/identities.csv", ("email", "person", "commits"))
    ]
    expected = [(*key, str(count)) for key, count in sorted(counts.items())]
    require(found == expected, f"{len(found)} rows, {len(expected)} expected, or other values")


def commits_are_recorded(work: Grading) -> None:
    rows = work.csv("records/commits.csv", ("commit", "email", "person"))
    found = sorted(tuple(row.values()) for row in rows)
    expected = sorted((BEFORE.commits[m], e.email, expected_person(e)) for m, e in ENTRIES.items())
    require(found == expected, f"{len(found)} rows, {len(expected)} commits, or other values")


def tags_are_recorded(work: Grading) -> None:
    rows = work.csv("records/tags.csv", ("tag", "object", "commit", "artifact"))
    found = [tuple(row.values()) for row in rows]
    expected = sorted((t.name, BEFORE.tags[t.name], BEFORE.commits[t.mark], t.artifact) for t in releases())
    require(found == expected, f"{len(found)} rows, {len(expected)} tags, or other values")
    for name, text in BEFORE.texts.items():
        kept = work.text(f"records/tags/{name}.txt")
        require(kept.rstrip("\n") == text.rstrip("\n"), f"the text of {name} is not what it was")


def history(work: Grading) -> dict[int, list[str]]:
    """The fields of each commit on any branch, by the mark of the commit it corresponds to."""
    said = work.git("repo", "log", "--branches", FORMAT).ok("reading the history").text()
    by_time = {str(each.at): mark for mark, each in ENTRIES.items()}
    found: dict[int, list[str]] = {}
    for record in said.split("\x01"):
        fields = record.strip("\n").split("\0")
        if len(fields) != 10:
            continue
        mark = by_time.get(fields[5])
        if mark is None or mark in found:
            fail(f"commit {fields[0]} corresponds to none, or to one that another corresponds to")
        found[mark] = fields
    require(len(found) == len(ENTRIES), f"{len(found)} commits, {len(ENTRIES)} expected")
    return found


def only_approved_people(work: Grading) -> None:
    for mark, fields in history(work).items():
        email = expected_person(ENTRIES[mark])
        who = [APPROVED[email], email]
        require(fields[3:5] == who, f"author of {fields[0]} is {fields[3]} <{fields[4]}>")
        require(fields[6:8] == who, f"committer of {fields[0]} is {fields[6]} <{fields[7]}>")
    taggers = work.git("repo", "for-each-ref", "--format=%(taggername) %(taggeremail)", "refs/tags").text()
    known = {f"{name} <{email}>" for email, name in APPROVED.items()}
    for line in taggers.splitlines():
        require(line.strip() in known, f"tagger {line}")


def nothing_else_changed(work: Grading) -> None:
    found = history(work)
    for mark, fields in found.items():
        entry = ENTRIES[mark]
        parents = [found[entry.parent][0]] if entry.parent else []
        require(fields[1] == BEFORE.trees[mark], f"commit {mark}: contents")
        require(fields[2].split() == parents, f"commit {mark}: parents")
        require(fields[8] == str(entry.at + 60), f"commit {mark}: committer date")
        require(fields[9].strip("\n") == entry.message.strip("\n"), f"commit {mark}: message")
    heads = work.git("repo", "for-each-ref", "--format=%(refname) %(objectname)", "refs/heads").text().split()
    expected = ["refs/heads/main", found[44][0], "refs/heads/release/1.x", found[41][0]]
    require(heads == expected, "branches are not main and release/1.x at their last commits")


def releases_are_traceable(work: Grading) -> None:
    found, scratch = history(work), work.scratch()
    listed = scratch.git("repo", "for-each-ref", "--format=%(refname:short)", "refs/tags").text().split()
    require(sorted(listed) == sorted(t.name for t in releases()), f"tags are {' '.join(listed)}")
    for tag in releases():
        ended = scratch.git("repo", "cat-file", "tag", f"refs/tags/{tag.name}")
        require(ended.code == 0, f"{tag.name} is no annotated tag")
        head, _, message = ended.text().partition("\n\n")
        lines = head.splitlines()
        require(lines[0] == f"object {found[tag.mark][0]}", f"{tag.name} marks another commit")
        email = person(tag.email, tag.at)
        tagger = f"tagger {APPROVED[email]} <{email}> {tag.at} +0000"
        require(tagger in lines, f"{tag.name}: tagger or date")
        require(message.strip("\n") == tag_message(tag).strip("\n"), f"{tag.name}: message")


def map_is_complete(work: Grading) -> None:
    found = history(work)
    rows = sorted(tuple(row.values()) for row in work.csv("records/map.csv", ("old", "new")))
    require(
        rows == sorted((BEFORE.commits[m], found[m][0]) for m in ENTRIES), f"{len(rows)} pairs, or other ones"
    )


def old_history_is_gone(work: Grading) -> None:
    scratch = work.scratch()
    fresh = {fields[0] for fields in history(work).values()}
    old = [name for name in (*BEFORE.commits.values(), *BEFORE.tags.values()) if name not in fresh]
    said = scratch.git("repo", "cat-file", "--batch-check", stdin="\n".join(old) + "\n").text().splitlines()
    left = [line for line in said if not line.endswith("missing")]
    require(len(said) == len(old) and not left, f"{len(left)} old objects can be read")
    lost = scratch.git("repo", "fsck", "--unreachable", "--no-reflogs", "--no-progress")
    require(b"unreachable" not in lost.stdout, "objects that nothing refers to are left")
    refs = scratch.git("repo", "for-each-ref", "--format=%(refname)").text().split()
    other = [name for name in refs if not name.startswith(("refs/heads/", "refs/tags/"))]
    require(not other, f"other references are left: {' '.join(other)}")
    for name in work.files("repo/.git/logs"):
        require(not any(each.encode() in work.read(name) for each in old), f"{name} names old commits")


def report_is_complete(work: Grading) -> None:
    text, found = work.text("records/report.md"), history(work)
    words = {word.strip(".,;:()`*|") for word in text.split()}
    changed = sum(each.email not in APPROVED for each in ENTRIES.values())
    wanted = [work.sha256("records/tags.csv"), str(len(ENTRIES)), str(changed), found[44][0], found[41][0]]
    missing = [value for value in wanted if value not in words]
    require(not missing, f"not quoted: {', '.join(missing)}")
    top = sorted({name.split("/")[0] for name, _ in work.walk()})
    require(top == ["docs", "records", "repo"], f"the tree holds {', '.join(top)}")
    status = work.git("repo", "status", "--porcelain", "--branch", "--ignored").text().splitlines()
    require(status == ["## main"], "the working tree is not clean or not on main")
    inner = [
        name
        for name, _ in work.walk()
        if name.endswith(("/objects", ".bundle", ".pack")) and "repo/.git/" not in name
    ]
    require(not inner, f"another repository is left: {', '.join(inner)}")


CHECKS = {
    "C01": identities_are_attributed,
    "C02": commits_are_recorded,
    "C03": tags_are_recorded,
    "C04": only_approved_people,
    "C05": nothing_else_changed,
    "C06": releases_are_traceable,
    "C07": map_is_complete,
    "C08": old_history_is_gone,
    "C09": report_is_complete,
}
