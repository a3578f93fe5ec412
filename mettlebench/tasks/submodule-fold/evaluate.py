"""Checks the folded repository and its records (mettlebench-canary-b52b155ae0e6b15feabf1057aae4b12d)."""

from __future__ import annotations

from mettlebench.check import Grading, Scratch, require

from build import CHECK, SAID, URL, original

FACTS = original()


def module_is_recorded(work: Grading) -> None:
    rows = [tuple(row.values()) for row in work.csv("records/module.csv", ("ref", "commit", "subject"))]
    expected = [(name, *facts) for name, facts in FACTS.refs.items()]
    require(rows == expected, f"{len(rows)} references, {len(expected)} expected, or other values")


def references(scratch: Scratch) -> dict[str, str]:
    """What each branch and tag of the parent is."""
    said = scratch.git("repo", "for-each-ref", "--format=%(refname) %(objectname)").text()
    pairs = [line.split() for line in said.splitlines()]
    return {pair[0]: pair[1] for pair in pairs if len(pair) == 2}


def everything_is_taken_over(work: Grading) -> None:
    held = references(work.scratch())
    for name, object_id in FACTS.objects.items():
        ours = {"HEAD": "refs/heads/parse/detached", "refs/stash": "refs/heads/parse/stash"}.get(name)
        ours = ours or name.replace("refs/heads/", "refs/heads/parse/").replace(
            "refs/tags/", "refs/tags/parse/"
        )
        require(held.get(ours) == object_id, f"{ours} is missing or something else")


def local_changes_are_committed(work: Grading) -> None:
    scratch = work.scratch()
    said = scratch.git("repo", "log", "-1", "--format=%T %P %s", "refs/heads/parse/local").text().strip()
    wanted = f"{FACTS.tree} {FACTS.head} Local changes in the working tree"
    require(said == wanted, "parse/local is not the submodule's working tree, or stands elsewhere")


def merge(scratch: Scratch) -> str:
    """The commit that folds; it comes right after what main was."""
    found = scratch.git("repo", "rev-list", "--first-parent", "refs/heads/main").text().split()
    kept = len(FACTS.history)
    require(len(found) > kept and found[-kept:] == FACTS.history, "the history of main is not what it was")
    return found[-kept - 1]


def folded_right(work: Grading) -> None:
    scratch = work.scratch()
    commit, local = merge(scratch), references(scratch).get("refs/heads/parse/local")
    said = scratch.git("repo", "log", "-1", "--format=%P%n%s", commit).text().splitlines()
    require(
        local and said == [f"{FACTS.history[0]} {local}", "Fold libs/parse"],
        "parents or message of the merge",
    )
    tree = scratch.git("repo", "rev-parse", "--verify", "--quiet", f"{commit}:libs/parse").text().strip()
    require(tree == FACTS.tree, "libs/parse is another tree")
    changed = (
        scratch.git("repo", "diff", "--name-only", FACTS.history[0], commit, "--", ".", ":!libs")
        .text()
        .split()
    )
    require(changed == [".gitmodules"], f"the merge changes {' '.join(changed) or 'nothing'} beside libs")


def local_count(scratch: Scratch, name: str) -> int:
    said = scratch.git("repo", "rev-list", "--count", name).text().strip()
    return int(said) if said.isdigit() else 0


def check_passes(work: Grading) -> None:
    scratch = work.scratch()
    require(
        scratch.git("repo", "archive", "--output=../probe.tar", "refs/heads/main").code == 0,
        "there is no main",
    )
    unpack = "mkdir probe && tar -C probe -xf probe.tar && cd probe && exec python3 -B scripts/check.py"
    ended = scratch.run(["sh", "-c", unpack])
    require(scratch.read("probe/scripts/check.py") == CHECK.encode(), "the check was changed")
    since = local_count(scratch, "refs/tags/parse/v1.2..refs/heads/parse/local")
    require(ended.ok("the check").text() == SAID.format(since), "the check says something else")
    require(scratch.lines("probe/libs/parse/VERSION") == [f"1.2+{since}"], "the parser's version")


def submodule_is_gone(work: Grading) -> None:
    scratch = work.scratch()
    for path in ("repo/.git/modules", "repo/libs/parse/.git", "repo/.gitmodules"):
        require(work.kind(path) is None, f"{path} is still there")
    left = scratch.git("repo", "config", "--local", "--get-regexp", "^submodule").text()
    require(not left, "the configuration still speaks of submodules")
    links = scratch.git("repo", "ls-tree", "-r", "refs/heads/main").text().splitlines()
    require(
        links and not any(line.startswith("160000") for line in links), "main still links to another commit"
    )
    status = scratch.git("repo", "status", "--porcelain", "--branch").text().splitlines()
    require(status == ["## main"], "the working tree is not clean or not on main")
    scratch.git("repo", "fsck", "--connectivity-only", "--no-progress").ok("looking for missing objects")


def records_tie_together(work: Grading) -> None:
    scratch = work.scratch()
    note = scratch.git("repo", "show", "refs/heads/main:libs/parse/PROVENANCE.md").text()
    local = references(scratch).get("refs/heads/parse/local", "")
    wanted = [URL, FACTS.head, local, str(local_count(scratch, "refs/heads/parse/local"))]
    missing = [value for value in wanted if value not in words(note)]
    require(not missing, f"the provenance does not quote {len(missing)} values")
    wanted = [FACTS.history[0], merge(scratch), work.sha256("records/module.csv")]
    said = words(work.text("records/report.md"))
    require(all(value in said for value in wanted), "the report does not quote commits and digest")
    top = sorted({name.split("/")[0] for name, _ in work.walk()})
    require(top == ["docs", "records", "repo"], f"the tree holds {', '.join(top)}")
    require(work.files("records") == ["records/module.csv", "records/report.md"], "other records")


def words(text: str) -> set[str]:
    return {word.strip(".,;()`*|<>") for word in text.split()}


CHECKS = {
    "C01": module_is_recorded,
    "C02": everything_is_taken_over,
    "C03": local_changes_are_committed,
    "C04": folded_right,
    "C05": check_passes,
    "C06": submodule_is_gone,
    "C07": records_tie_together,
}
