"""Checks the cleaned repository and the packet (mettlebench-canary-618976b22b756c49617435974dd612a9)."""

from __future__ import annotations

import itertools

from mettlebench.check import Grading, Scratch, fail, require

from build import FACTS, LOST, PEOPLE, TOKEN, history, objects, read_log, state_of, stream

MADE = {each.mark: each for each in history()}
BEFORE = state_of(history())
AFTER = state_of(history(), scrubbed=True)
TIPS = {branch: max(m for m, each in MADE.items() if each.branch == branch) for branch in ("main", *LOST)}
TOKENS = sorted({token for _, _, token in BEFORE.findings})
TOOL = "tools/leakscan.py"


def scanner_finds_all(work: Grading) -> None:
    scratch = work.scratch()
    require(scratch.is_file(TOOL), "the scanner is gone")
    made = history(seed=901)
    scratch.write("probe.stream", stream(made))
    prepare = "git init -q probe && git -C probe fast-import --quiet < probe.stream"
    prepare += "".join(f" && git -C probe update-ref -d refs/heads/{branch}" for branch in LOST)
    scratch.run(["bash", "-c", f"{prepare} && git -C probe repack -qAd"]).ok("preparing a repository")
    ended = scratch.run(["python3", "-B", TOOL, "probe"])
    require(ended.code == 1, f"the scanner ends with {ended.code} where there are tokens")
    rows = state_of(made).findings
    expected = "".join(",".join(row) + "\n" for row in (("object", "kind", "token"), *rows))
    require(ended.text().replace("\r\n", "\n") == expected, "other findings than there are")
    scratch.run(["bash", "-c", "git init -q probe-empty"])
    require(scratch.run(["python3", "-B", TOOL, "probe-empty"]).code == 0, "an empty repository is no leak")


def findings_are_complete(work: Grading) -> None:
    rows = work.csv("packet/findings.csv", ("object", "kind", "token"))
    found = [tuple(row.values()) for row in rows]
    require(found == BEFORE.findings, f"{len(found)} findings, {len(BEFORE.findings)} there were, or others")


def tokens_are_listed(work: Grading) -> None:
    require(work.lines("packet/tokens.txt") == TOKENS, f"{len(TOKENS)} tokens were leaked")


def lost_work_is_recorded(work: Grading) -> None:
    rows = work.csv("packet/lost.csv", ("branch", "commit", "commits", "author", "subject"))
    expected = []
    for branch in sorted(LOST):
        tip = MADE[TIPS[branch]]
        count = sum(each.branch == branch for each in MADE.values())
        address = PEOPLE[tip.who].partition("<")[2].rstrip(">")
        expected.append(
            (branch, BEFORE.ids[tip.mark], str(count), address, tip.message.decode().split("\n")[0])
        )
    require([tuple(row.values()) for row in rows] == expected, f"{len(rows)} rows, or other values")


def log_of(scratch: Scratch, branch: str) -> dict[int, list[str]]:
    ended = scratch.git("repo", "log", f"--format={FACTS}", f"refs/heads/{branch}", "--")
    require(ended.code == 0, f"there is no branch {branch}")
    return read_log(ended.text())


def line_of(branch: str) -> list[int]:
    marks, mark = [], TIPS[branch]
    while mark:
        marks.append(mark)
        mark = MADE[mark].parent
    return marks


def as_it_was(scratch: Scratch, branch: str) -> None:
    found = log_of(scratch, branch)
    require(sorted(found) == sorted(line_of(branch)), f"{branch} has {len(found)} commits")
    for mark, fields in found.items():
        require((*fields[1:6], fields[6].strip("\n")) == AFTER.facts[mark], f"{branch}: {fields[0]} differs")
    order = scratch.git("repo", "rev-list", "--parents", f"refs/heads/{branch}", "--").text().splitlines()
    ids = [found[mark][0] for mark in line_of(branch)]
    expected = [" ".join(pair) for pair in itertools.pairwise(ids)] + ids[-1:]
    require(order == expected, f"{branch} has another order or other parents")


def lost_work_is_back(work: Grading) -> None:
    scratch = work.scratch()
    for branch in LOST:
        as_it_was(scratch, branch)


def tokens_are_gone(work: Grading) -> None:
    ended = work.git("repo", "cat-file", "--batch", "--batch-all-objects").ok("reading the repository")
    try:
        held_objects = [data for _, kind, data in objects(ended.stdout) if kind != "tree"]
    except ValueError:
        fail("the repository's objects cannot be read")
    require(len(held_objects) > len(MADE), "the repository has hardly any objects")
    left = {each for data in held_objects for each in TOKEN.findall(data) if each.decode() in TOKENS}
    require(not left, f"{len(left)} tokens are left in objects")
    for name in work.files():
        if name not in ("packet/findings.csv", "packet/tokens.txt") and "/objects/" not in name:
            held = work.read(name)
            require(not any(token.encode() in _unmarked(held) for token in TOKENS), f"{name} holds a token")


def _unmarked(data: bytes) -> bytes:
    """Without what only looks like a token, since something stands right before it."""
    return b"\n".join(TOKEN.findall(data))


def main_is_intact(work: Grading) -> None:
    scratch = work.scratch()
    as_it_was(scratch, "main")
    ended = scratch.git("repo", "cat-file", "tag", "refs/tags/v1.0")
    require(ended.code == 0, "the tag is gone, or is no annotated tag any more")
    now, was = ended.text().strip().split("\n"), AFTER.tag.strip().split("\n")
    require(now[1:] == was[1:], "the tag says something else")
    require(now[0] == f"object {log_of(scratch, 'main')[18][0]}", "the tag marks another commit")
    refs = scratch.git("repo", "for-each-ref", "--format=%(refname)").text().split()
    expected = sorted(["refs/heads/main", "refs/tags/v1.0", *(f"refs/heads/{branch}" for branch in LOST)])
    require(sorted(refs) == expected, f"references are {' '.join(refs)}")


def old_objects_are_gone(work: Grading) -> None:
    scratch = work.scratch()
    now: dict[int, str] = {}
    for branch in TIPS:
        now |= {mark: fields[0] for mark, fields in log_of(scratch, branch).items()}
    rows = sorted(tuple(row.values()) for row in work.csv("packet/map.csv", ("old", "new")))
    expected = sorted((BEFORE.ids[mark], now.get(mark, "")) for mark in MADE)
    require(rows == expected, f"{len(rows)} pairs, {len(expected)} commits, or other ones")
    lost = scratch.git("repo", "fsck", "--unreachable", "--no-reflogs", "--no-progress")
    require(b"unreachable" not in lost.stdout, "objects that nothing refers to are left")
    old = [name for name in BEFORE.ids.values() if name not in now.values()]
    said = scratch.git("repo", "cat-file", "--batch-check", stdin="\n".join(old) + "\n").text().splitlines()
    require(
        len(said) == len(old) and all(line.endswith("missing") for line in said), "old commits can be read"
    )


def report_is_complete(work: Grading) -> None:
    words = {word.strip(".,;:()`*|") for word in work.text("packet/report.md").split()}
    scratch = work.scratch()
    wanted = [str(len(TOKENS)), str(len(BEFORE.findings)), str(len(MADE)), work.sha256("packet/findings.csv")]
    for branch, mark in TIPS.items():
        tip = log_of(scratch, branch).get(mark)
        if tip is None:
            fail(f"{branch} does not end where it should")
        wanted.append(tip[0])
    missing = [value for value in wanted if value not in words]
    require(not missing, f"not quoted: {', '.join(missing)}")
    top = {name.split("/")[0] for name, _ in work.walk() if "__pycache__" not in name}
    require(top == {"docs", "packet", "repo", "tools"}, f"the tree holds {', '.join(sorted(top))}")
    require(len(work.files("packet")) == 5, "the packet holds other files than it should")
    status = scratch.git("repo", "status", "--porcelain", "--branch", "--ignored").text().splitlines()
    require(status == ["## main"], "the working tree is not clean or not on main")


CHECKS = {
    "C01": scanner_finds_all,
    "C02": findings_are_complete,
    "C03": tokens_are_listed,
    "C04": lost_work_is_recorded,
    "C05": lost_work_is_back,
    "C06": tokens_are_gone,
    "C07": main_is_intact,
    "C08": old_objects_are_gone,
    "C09": report_is_complete,
}
