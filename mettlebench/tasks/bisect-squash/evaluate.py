"""Checks the release and what is kept of its branch (mettlebench-canary-d089a8b1fa123f2ad050c64403568f32)."""

from __future__ import annotations

import json

from mettlebench.check import Grading, Scratch, require

from build import BROKEN, COMMITS, WRONG_CONVERT, WRONG_FEE, original, verdict

FACTS = original()
STEPS = dict(enumerate(FACTS.commits, start=1))
AMOUNTS = [
    (c, p) for c in (0, 1, -1, 3, -5, 99999, -99999, 7 * 10**15 + 1) for p in (500_000, 1, 1_234_567, 999_999)
]
SIZES = [0, -1, 9_999, 10_000, -10_000, 10_001, 99_999, 100_000, 100_001, -100_001]
PROBE = """
import json
from convert import convert, fee
amounts, sizes = json.load(sys.stdin)
print(json.dumps([[convert(*each) for each in amounts], [fee(each) for each in sizes]]))
"""


def revisions_are_recorded(work: Grading) -> None:
    rows = [tuple(row.values()) for row in work.csv("records/revisions.csv", ("commit", "convert", "fee"))]
    expected = [(name, verdict(step, "convert"), verdict(step, "fee")) for step, name in STEPS.items()]
    require(rows == expected, f"{len(rows)} commits, {len(expected)} expected, or other verdicts")


def findings_are_right(work: Grading) -> None:
    broken = [STEPS[step] for step in BROKEN]
    wanted = {"broken": broken, "convert": STEPS[WRONG_CONVERT], "fee": STEPS[WRONG_FEE]}
    require(work.json("records/findings.json") == wanted, "the findings are others")


def converted(cents: int, ppm: int) -> int:
    size = (2 * abs(cents) * ppm + 1_000_000) // 2_000_000
    return -size if cents < 0 else size


def cost(cents: int) -> int:
    return next((cost for limit, cost in ((0, 0), (10_000, 50), (100_000, 120)) if abs(cents) <= limit), 300)


def amounts_are_right(work: Grading) -> None:
    check = "checks/rates_check.py"
    require(work.read(check) == work.shipped(check), "the check was changed")
    asked = json.dumps([AMOUNTS, SIZES])
    said = work.scratch().python(PROBE, path=["repo/rates"], stdin=asked).json("the module")
    wanted = [[converted(*each) for each in AMOUNTS], [cost(each) for each in SIZES]]
    require(said == wanted, "an amount or a fee comes out wrong")
    work.scratch().run(["python3", check, "repo"]).ok("the check")


def unbundled(work: Grading) -> Scratch:
    """A scratch copy with a repository `kept` that holds what the bundle has, and nothing else."""
    scratch = work.scratch()
    require(scratch.is_file("records/rates.bundle"), "there is no bundle")
    scratch.run(["git", "init", "--quiet", "kept"])
    branch = "refs/heads/feature/rates"
    ended = scratch.git("kept", "fetch", "--quiet", "../records/rates.bundle", f"{branch}:{branch}")
    require(ended.code == 0, "the bundle cannot be read by itself, or does not have the branch")
    return scratch


def branch_is_kept(work: Grading) -> None:
    held = unbundled(work).git("kept", "rev-list", "--reverse", "refs/heads/feature/rates").text().split()
    first = next((place for place, name in enumerate(held) if name == FACTS.commits[0]), len(held))
    require(
        held[first : first + COMMITS] == FACTS.commits, "the commits of the branch are not all in the bundle"
    )


def branch_is_squashed(work: Grading) -> None:
    scratch = unbundled(work)
    tip = scratch.git("kept", "log", "-1", "--format=%H %T", "refs/heads/feature/rates").text().split()
    said = (
        scratch.git("repo", "log", "-1", "--format=%P%n%T%n%B", "refs/heads/main").text().strip().splitlines()
    )
    require(said[:1] == [FACTS.base], "main is not one commit on top of what it was")
    require(said[1:2] == tip[1:], "the tree of main is not that of the repaired branch")
    wanted = [
        f"Squashed: {tip[0]}",
        f"Wrong-convert: {STEPS[WRONG_CONVERT]}",
        f"Wrong-fee: {STEPS[WRONG_FEE]}",
    ]
    require(said[2:3] == ["Add exchange rates"] and said[-3:] == wanted, "the message of the commit")


def branch_is_gone(work: Grading) -> None:
    scratch = work.scratch()
    refs = scratch.git("repo", "for-each-ref", "--format=%(refname)").text().split()
    require(refs == ["refs/heads/main"], f"references: {' '.join(refs)}")
    needed = set(
        scratch.git("repo", "rev-list", "--objects", "--no-object-names", "refs/heads/main").text().split()
    )
    old = [name for name in FACTS.objects if name not in needed]
    said = scratch.git("repo", "cat-file", "--batch-check", stdin="\n".join(old) + "\n").text().splitlines()
    left = [line for line in said if not line.endswith("missing")]
    require(len(said) == len(old) and not left, f"{len(left)} objects of the branch can be read")
    lost = scratch.git("repo", "fsck", "--unreachable", "--no-reflogs", "--no-progress")
    require(b"unreachable" not in lost.stdout, "objects that nothing refers to are left")
    for name in work.files("repo/.git/logs"):
        data = work.read(name)
        require(
            not any(each.encode() in data for each in FACTS.commits), f"{name} names commits of the branch"
        )


def note_ties_together(work: Grading) -> None:
    scratch = unbundled(work)
    words = {word.strip(".,;:()`*|") for word in work.text("records/release.md").split()}
    count = (
        scratch.git("kept", "rev-list", "--count", f"{FACTS.base}..refs/heads/feature/rates").text().strip()
    )
    commit = scratch.git("repo", "rev-parse", "--verify", "--quiet", "refs/heads/main").text().strip()
    wanted = [count, commit, work.sha256("records/revisions.csv"), work.sha256("records/rates.bundle")]
    require(all(value and value in words for value in wanted), "the note does not quote all that it should")
    status = scratch.git("repo", "status", "--porcelain", "--branch").text().splitlines()
    require(status == ["## main"], "the working tree is not clean or not on main")
    names = ("findings.json", "rates.bundle", "release.md", "revisions.csv")
    require(work.files("records") == [f"records/{name}" for name in names], "other records")
    top = {name.split("/")[0] for name, _ in work.walk()}
    require(top == {"checks", "docs", "records", "repo"}, f"the tree holds {', '.join(sorted(top))}")


CHECKS = {
    "C01": revisions_are_recorded,
    "C02": findings_are_right,
    "C03": amounts_are_right,
    "C04": branch_is_kept,
    "C05": branch_is_squashed,
    "C06": branch_is_gone,
    "C07": note_ties_together,
}
