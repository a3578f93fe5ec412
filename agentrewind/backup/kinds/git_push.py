"""Which refs of which remote a push may change: by its refspecs, and by git itself, asked to try it only."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import urlsplit, urlunsplit

from agentrewind.backup.kind import CaptureError, UnclearError
from agentrewind.backup.kinds.git_command import GitCommand
from agentrewind.backup.kinds.words import Given, read_words
from agentrewind.backup.programs import run
from agentrewind.backup.values import Command, Context, Word

ASKING = {"GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0"}

_VALUES = ("--repo", "-o", "--push-option", "--receive-pack", "--exec", "--recurse-submodules")
_LINE = re.compile(r"([ +\-*=])\t([^\t]*):([^\t]*)\t")
_BRANCHES, _TAGS, _ALL = "refs/heads/*", "refs/tags/*", "refs/*"
_WIDE = {
    "--all": _BRANCHES,
    "--branches": _BRANCHES,
    "--tags": _TAGS,
    "--follow-tags": _TAGS,
    "--mirror": _ALL,
}


@dataclass(frozen=True, slots=True)
class Push:
    """One remote of a push.

    Attributes:
        remote: its name, empty where the command gives an address.
        address: where it is, credentials left out.
        refs: what may change there, full names or patterns that end with `*`.
    """

    remote: str
    address: str
    refs: tuple[str, ...]


def read_push(git: GitCommand, context: Context) -> list[Push]:
    """What a push may change. Raises UnclearError where that cannot be told.

    A command before it in the same call may yet make the commits, branches and tags that it pushes: what the
    try says is not taken for all.
    """
    if any(not word.literal for word in git.rest):
        raise UnclearError("what it pushes is known only when it runs")
    given = read_words(Command(argv=(Word("push"), *git.rest)), _VALUES)
    named = given.value("--repo") or (given.operands[0] if given.operands else None)
    remote = named.text if named is not None else _default(git, context)
    tried = _tried(git, context)
    addresses = list(tried) or _addresses(git, context, remote)
    written = list(_written(given))
    pushes = []
    for address in addresses:
        refs = tuple(dict.fromkeys([*written, *tried.get(address, ())]))
        plain = "" if "/" in remote or ":" in remote else remote
        pushes.append(Push(plain, _absolute(without_password(address), git), refs))
    return pushes


def without_password(address: str) -> str:
    """An address without user name and password; a name alone may be a token, but for ssh."""
    if "://" not in address:
        return address
    parts = urlsplit(address)
    _, at, host = parts.netloc.rpartition("@")
    kept = f"{parts.username}@{host}" if at and parts.scheme == "ssh" else host
    return urlunsplit((parts.scheme, kept, parts.path, parts.query, ""))


def _written(given: Given) -> Iterator[str]:
    """The refs that options and refspecs name."""
    for option, pattern in _WIDE.items():
        if given.has(option):
            yield pattern
    specs = [word.text.removeprefix("+") for word in given.operands[0 if given.has("--repo") else 1 :]]
    if not specs and not given.has("--tags", "--mirror"):
        yield _BRANCHES
    for place, spec in enumerate(specs):
        if spec == "tag" and place + 1 < len(specs):
            yield f"refs/tags/{specs[place + 1]}"
            continue
        source, colon, into = spec.partition(":")
        name = into if colon else source
        if name in ("", "HEAD", "@"):
            yield _BRANCHES
        elif name.startswith("refs/"):
            yield name.partition("*")[0] + "*" if "*" in name else name
        else:
            yield f"refs/heads/{name}"
            yield f"refs/tags/{name}"


def _tried(git: GitCommand, context: Context) -> dict[str, list[str]]:
    """The refs that git says it would change now, by the remote's address; empty where it refuses."""
    words = [word.text for word in git.rest]
    argv = ["git", *git.options, "push", "--dry-run", "--no-verify", "--porcelain", "--verbose", *words]
    try:
        answer = run(argv, context, env={**git.env, **ASKING}, cwd=git.cwd, codes=(0, 1)).decode()
    except CaptureError:
        return {}
    found: dict[str, list[str]] = {}
    address = ""
    for line in answer.splitlines():
        if line.startswith("To "):
            address = line[3:]
            found.setdefault(address, [])
        elif address and (match := _LINE.match(line)):
            found[address].append(match[3])
    return found


def _default(git: GitCommand, context: Context) -> str:
    for setting in ("remote.pushDefault", "checkout.defaultRemote"):
        try:
            return git.ask(context, "config", "--get", setting)
        except CaptureError:
            continue
    return "origin"


def _addresses(git: GitCommand, context: Context, remote: str) -> list[str]:
    if "/" in remote or ":" in remote:
        return [remote]
    try:
        return git.ask(context, "remote", "get-url", "--push", "--all", remote).split("\n")
    except CaptureError as error:
        raise UnclearError(f"which remote it pushes to cannot be asked: {error}") from error


def _absolute(address: str, git: GitCommand) -> str:
    """A remote that is a directory, from anywhere; others as they are."""
    if "://" in address or re.match(r"[^/]+:", address):
        return address
    return str((git.cwd / address).resolve())
