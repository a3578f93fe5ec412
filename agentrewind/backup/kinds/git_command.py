"""Reads a git command: its options before the subcommand, the subcommand, and the repository it is for."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from agentrewind.backup.kind import CaptureError, UnclearError
from agentrewind.backup.programs import run
from agentrewind.backup.values import Command, Context, Word

_WITH_VALUE = ("-C", "-c", "--git-dir", "--work-tree", "--namespace", "--exec-path", "--config-env")
_QUIET = {"GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0", "GIT_PAGER": "cat"}


@dataclass(frozen=True, slots=True)
class GitCommand:
    """A git command as it is written.

    Attributes:
        options: what stands between `git` and the subcommand.
        subcommand: empty where there is none.
        rest: the words after it.
        cwd: where git is started, before its own `-C`.
        env: the variables of git's that are set for it.
    """

    options: tuple[str, ...]
    subcommand: str
    rest: tuple[Word, ...]
    cwd: Path
    env: dict[str, str]

    def ask(self, context: Context, *words: str) -> str:
        """What another git command says of the same repository. Raises CaptureError."""
        answer = run(["git", *self.options, *words], context, env={**self.env, **_QUIET}, cwd=self.cwd)
        return answer.decode("utf-8", "surrogateescape").strip("\n")


@dataclass(frozen=True, slots=True)
class Repository:
    """Where a repository lies: its work tree (None for a bare one), and the directories of its data."""

    work_tree: Path | None
    git_dirs: tuple[Path, ...]


def read_git(command: Command) -> GitCommand:
    """The parts of a git command. Raises UnclearError where they are known only when it runs."""
    if command.cwd is None:
        raise UnclearError("in which directory git runs is known only then")
    if command.host is not None:
        raise UnclearError(f"it runs on {command.host}, whose repositories are out of reach")
    if command.unclear:
        raise UnclearError(command.unclear)
    options: list[str] = []
    rest = list(command.argv[1:])
    while rest and rest[0].text.startswith("-"):
        options.append(_literal(rest.pop(0)))
        if options[-1] in _WITH_VALUE and rest:
            options.append(_literal(rest.pop(0)))
    subcommand = _literal(rest.pop(0)) if rest else ""
    env = {name: _literal(word) for name, word in command.assignments.items() if name.startswith("GIT_")}
    return GitCommand(tuple(options), subcommand, tuple(rest), Path(command.cwd), env)


def find_repository(git: GitCommand, context: Context) -> Repository | None:
    """The repository that a command is for; None where there is none, so that the command fails.

    Raises UnclearError where git does not tell.
    """
    try:
        lines = git.ask(
            context, "rev-parse", "--is-bare-repository", "--absolute-git-dir", "--git-common-dir"
        ).split("\n")
        bare, own, common = lines[0] == "true", Path(lines[1]), lines[2]
        work_tree = None if bare else Path(git.ask(context, "rev-parse", "--show-toplevel") or own)
    except CaptureError as error:
        if "not a git repository" in str(error):
            return None
        raise UnclearError(f"git does not tell which repository it is for: {error}") from error
    directories = [own, Path(os.path.normpath(start_of(git) / common))]
    return Repository(work_tree, tuple(dict.fromkeys(each.resolve() for each in directories)))


def start_of(git: GitCommand) -> Path:
    """The directory after every `-C`."""
    found = git.cwd
    for option, value in zip(git.options, git.options[1:], strict=False):
        if option == "-C":
            found = found / value
    return found


def _literal(word: Word) -> str:
    if not word.literal:
        raise UnclearError(f"what {word.text!r} stands for is known only when the command runs")
    return word.text
