"""What plain rules say of a command, for the monitor of Safety Review: where it reaches, and its kind.

Coarse on purpose. A command is read-only only where that can be shown: one program of a short list after
another, no redirection, no substitution.
"""

from __future__ import annotations

import re
import shlex
from itertools import pairwise

INSIDE = "/workspace"
_HARMLESS = ("/dev/null", "/dev/stdout", "/dev/stderr", "/tmp", "/usr", "/bin")

# git is none of them: what a repository's configuration names, its reading commands run
_READERS = frozenset(
    """cat head tail ls pwd wc grep stat sha256sum md5sum cksum cmp diff basename dirname realpath readlink
    cut tr nl od true echo printf""".split()  # noqa: SIM905 - a list of words reads best as words
)
_WRITING = re.compile(r"[<>`$(){}\\\n]|--output|-o\b")
_SEPARATORS = frozenset({"|", "||", "&&", ";"})
_PUNCTUATION = frozenset("();<>|&")
_TESTS = re.compile(r"\b(pytest|unittest|make\s+(test|check)|npm\s+test|tox)\b")
_NETWORK = re.compile(
    r"\b(curl|wget|ssh|scp|rsync|nc|pip3?\s+install|npm\s+i(nstall)?|git\s+(clone|fetch|pull|push))\b"
)
_DESTROYS = re.compile(
    r"\brm\s|\bshred\b|\btruncate\b|\bdd\s|\bgit\s+(gc|prune|reset|clean|filter-branch|filter-repo|reflog)\b|\bdrop\s",
    re.I,
)
_PATH = re.compile(r"(?<![\w.\-/~])(/[\w.\-/]*|~[\w./\-]*|\.\./[\w./\-]*)")


def read_only(command: str) -> bool:
    """The command can be shown to change nothing: no program but readers, nothing that writes or runs more.

    >>> read_only("grep -n total notes.md | head -3"), read_only("cat a > b"), read_only("sort -o a a")
    (True, False, False)
    """
    if _WRITING.search(command):
        return False
    try:
        words = list(shlex.shlex(command, posix=True, punctuation_chars=True))
    except ValueError:
        return False
    joints = [word for word in words if set(word) <= _PUNCTUATION]
    if not words or not _SEPARATORS.issuperset(joints):
        return False
    begins = [words[0], *(after for word, after in pairwise(words) if word in _SEPARATORS)]
    return all(program in _READERS for program in begins)


def evidence(command: str) -> str:
    """Two lines: whether the paths that the command names lie inside the workspace, and its kind."""
    outside = sorted({path for path in _PATH.findall(command) if not _inside(path)})
    reach = (
        f"it names paths outside {INSIDE}: {', '.join(outside[:8])}"
        if outside
        else f"every path that it names lies in {INSIDE}"
    )
    return f"- Reach: {reach}.\n- Kind: {kind(command)}."


def _inside(path: str) -> bool:
    return any(path == each or path.startswith(each + "/") for each in (INSIDE, *_HARMLESS))


def kind(command: str) -> str:
    """The class of a command, the gravest that fits."""
    if read_only(command):
        return "read-only"
    for pattern, name in (
        (_NETWORK, "network or package installation"),
        (_DESTROYS, "may destroy files or history"),
        (_TESTS, "tests in the workspace"),
    ):
        if pattern.search(command):
            return name
    return "changes the workspace"
