"""Says whether a git command changes nothing."""

from __future__ import annotations

import re
from collections.abc import Sequence

Texts = Sequence[str]

_GIT_GLOBAL = re.compile(r"--no-pager|--bare|--git-dir(=.*)?|--work-tree(=.*)?|-C|--no-optional-locks|-P")
_GIT_READS = frozenset(
    [
        "status",
        "log",
        "show",
        "diff",
        "blame",
        "annotate",
        "shortlog",
        "describe",
        "rev-parse",
        "rev-list",
        "ls-files",
        "ls-tree",
        "ls-remote",
        "cat-file",
        "name-rev",
        "merge-base",
        "for-each-ref",
        "show-ref",
        "show-branch",
        "grep",
        "count-objects",
        "check-ignore",
        "check-attr",
        "check-mailmap",
        "check-ref-format",
        "var",
        "version",
        "whatchanged",
        "cherry",
        "diff-tree",
        "diff-index",
        "diff-files",
        "range-diff",
        "verify-commit",
        "verify-tag",
        "get-tar-commit-id",
        "patch-id",
    ]
)
_GIT_PAIRS = frozenset(
    {
        "stash list",
        "stash show",
        "worktree list",
        "submodule status",
        "submodule summary",
        "notes list",
        "notes show",
        "bisect log",
        "reflog show",
        "reflog exists",
        "reflog list",
        "remote show",
        "remote get-url",
        "config get",
        "config list",
        "lfs ls-files",
        "lfs env",
    }
)
_GIT_DENIED = ("--output", "--ext-diff", "--open-files-in-pager", "--upload-pack", "--exec", "--exec-path")
_GIT_CONFIG = re.compile(
    r"(color\.\w+|core\.quotepath|core\.pager|pager\.\w+|log\.\w+|diff\.renames)=(cat|[\w-]*)"
)
_GIT_SHOWS = {
    "branch": r"-a|-r|-v|-vv|-q|-i|--all|--remotes|--verbose|--list|--show-current|--sort=.*|--format=.*|"
    r"--(no-)?color(=.*)?|--no-abbrev|--(no-)?column(=.*)?|--(no-)?(contains|merged)(=.*)?|--points-at(=.*)?|-l",
    "tag": r"-l|--list|-n\d*|--sort=.*|--format=.*|--(no-)?(contains|merged)(=.*)?|--points-at(=.*)?|-i",
    "remote": r"-v|--verbose",
    "config": r"--get(-all|-regexp)?|--list|-l|--show-origin|--show-scope|--global|--local|--system|"
    r"--name-only|-z|--null|--type=.*|--bool|--int|--includes|--default=.*",
    "reflog": r"-\d+|-n|--all|--oneline|--date=.*|--format=.*",
}


def git_reads(texts: Texts) -> bool:
    if list(texts) in (["--version"], ["--help"], ["-v"], ["-h"], []):
        return True
    rest = _git_after_options(list(texts))
    if not rest or _git_is_denied(rest):
        return False
    if rest[0] in _GIT_READS or " ".join(rest[:2]) in _GIT_PAIRS:
        return True
    return rest[0] in _GIT_SHOWS and _git_shows(rest[0], rest[1:])


def _git_after_options(rest: list[str]) -> list[str]:
    """The subcommand and what follows; empty where an option before it may run something."""
    while rest and rest[0].startswith("-"):
        option = rest.pop(0)
        if option == "-c":
            if not rest or not _GIT_CONFIG.fullmatch(rest.pop(0)):
                return []
        elif not _GIT_GLOBAL.fullmatch(option):
            return []
        elif option in ("-C", "--git-dir", "--work-tree"):
            rest[:1] = []
    return rest


def _git_is_denied(rest: list[str]) -> bool:
    for text in rest[1:]:
        name = text.partition("=")[0]
        if name.startswith("--") and len(name) > 2 and any(each.startswith(name) for each in _GIT_DENIED):
            return True
        if "::" in text and rest[0] == "ls-remote":
            return True
        if rest[0] == "grep" and re.match(r"-\w*O", text):
            return True
    return False


def _git_shows(name: str, texts: Texts) -> bool:
    """Subcommands that show when given only these options; an operand makes most of them change something."""
    allowed = re.compile(_GIT_SHOWS[name])
    options = [text for text in texts if text.startswith("-")]
    operands = len(texts) - len(options)
    if not all(allowed.fullmatch(text) for text in options):
        return False
    lists = any(re.fullmatch(r"-l|--list|--(no-)?(contains|merged)|--points-at|-n", text) for text in options)
    if name == "config":
        got = any(text.startswith("--get") for text in options)
        return operands <= (2 if got else 1)
    return operands == 0 or (lists and name in ("branch", "tag"))
