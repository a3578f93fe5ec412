"""Git repositories outside the workspace: refs, reflog, stash, index, objects, files of the work tree."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

from agentrewind.backup.kind import Captured, CaptureError, Outcome, Parameters, Store, UnclearError
from agentrewind.backup.kinds.files import Files
from agentrewind.backup.kinds.files_targets import file_target, inside, paths_in
from agentrewind.backup.kinds.git_command import GitCommand, find_repository, read_git, start_of
from agentrewind.backup.kinds.tree import digest, hashed, scan, show
from agentrewind.backup.kinds.words import read_words
from agentrewind.backup.programs import run
from agentrewind.backup.values import Command, Context, Target, Word
from agentrewind.fields import Fields
from agentrewind.jsonform import dump_plain, to_plain

KIND = "git"

_MAKING = (
    *("-b", "--branch", "-o", "--origin", "-c", "--config", "-u", "--upload-pack", "-j", "--jobs", "--depth"),
    *("--reference", "--template", "--separate-git-dir", "--object-format", "--initial-branch", "--filter"),
)
"""Options of `clone` and `init` that take a value."""


class GitRepository:
    """A repository with its work tree, byte for byte.

    Parameters of a rule: `work_tree = false` for subcommands that change nothing but the repository's own
    data; `made = true` for those that make a directory (`clone`, `init`); `config = true` for `git config`.
    """

    def targets(self, command: Command, parameters: Parameters, context: Context) -> tuple[Target, ...]:
        git = read_git(command)
        if parameters.get("made") is True:
            return tuple(_made(git, context))
        if parameters.get("config") is True and (files := list(_settings(git, context))):
            return tuple(file_target([path]) for path in files if not inside(path, context.workspace))
        found = find_repository(git, context)
        if found is None:
            return ()
        roots = list(found.git_dirs)
        if parameters.get("work_tree") is not False and found.work_tree is not None:
            roots.append(found.work_tree.resolve())
        outside = [root for root in roots if not inside(root, context.workspace)]
        top = [root for root in outside if not any(inside(root, other) for other in outside if other != root)]
        if not top:
            return ()
        plain = file_target(sorted(set(top)), skip=context.workspace)
        name = show(found.work_tree or found.git_dirs[0])
        what = "repository data of" if parameters.get("work_tree") is False else "repository"
        detail = {**plain.detail, "git_dir": str(found.git_dirs[0])}
        return (Target(kind=KIND, name=f"{what} {name}", detail=detail),)

    def capture(self, target: Target, store: Store, context: Context) -> Captured:
        return Files().capture(target, store, context)

    def fingerprint(self, target: Target, context: Context) -> str:
        """Of what the repository holds: packing, a refreshed index and git's scratch files are no change."""
        git_dir = Path(Fields(target.detail, "target").text("git_dir"))
        if not git_dir.is_dir():
            return Files().fingerprint(target, context)
        passing = ("objects", "index", "packed-refs", "refs", "gc.pid", "gc.log", "FETCH_HEAD", "index.lock")
        skip = [git_dir / name for name in passing]
        found = sha256()
        for path in paths_in(target):
            found.update(digest(scan(path, hashed, skip=[*skip, *_left_out(target)])).encode())
        for words in (
            ["for-each-ref", "--format=%(refname) %(objectname) %(symref)"],
            ["ls-files", "--stage", "-v", "-z"],
            ["cat-file", "--batch-all-objects", "--batch-check=%(objectname)"],
        ):
            found.update(b"\0" + _asked(git_dir, words, context))
        return found.hexdigest()

    def restore(self, target: Target, captured: Captured, store: Store, context: Context) -> Outcome:
        return Files().restore(target, captured, store, context)

    def plan(self, target: Target, captured: Captured, context: Context) -> tuple[str, ...]:
        return Files().plan(target, captured, context)

    def describe(self, target: Target) -> tuple[str, str]:
        return (
            f"{target.name}: refs, reflog, stash, index, objects and files, staged or not",
            "what differs is written back byte for byte",
        )


def _asked(git_dir: Path, words: list[str], context: Context) -> bytes:
    """What git says of a repository's data; for one that is broken, that it is."""
    env = {"GIT_OPTIONAL_LOCKS": "0", "GIT_DIR": str(git_dir)}
    try:
        return run(["git", *words], context, env=env, cwd=git_dir)
    except CaptureError as error:
        return f"broken: {error}".encode("utf-8", "surrogateescape")


def _left_out(target: Target) -> list[Path]:
    found = Fields(target.detail, "target").items("skip")
    return [Path(each) for each in found if isinstance(each, str)]


def _made(git: GitCommand, context: Context) -> Iterator[Target]:
    """The directory that `clone` or `init` makes or fills."""
    given = read_words(Command(argv=(Word("git"), *git.rest)), (*_MAKING, *_cuts("--separate-git-dir", 4)))
    operands = given.operands
    if any(not word.literal for word in git.rest):
        raise UnclearError("which directory it makes is known only when it runs")
    if git.subcommand == "init":
        place = operands[0].text if operands else "."
    elif not operands:
        return
    else:
        source = operands[0].text.rstrip("/").removesuffix("/.git").removesuffix(".git")
        place = operands[1].text if len(operands) > 1 else source.replace(":", "/").rpartition("/")[2]
    path = (git.cwd / place).resolve()
    whole = git.subcommand != "init" or "--bare" in {word.text for word in git.rest} or not path.is_dir()
    apart = [value for option, value in given.options if value and _is_cut_from("--separate-git-dir", option)]
    for made in (path if whole else path / ".git", *(git.cwd / each.text for each in apart)):
        if not inside(made.resolve(), context.workspace):
            yield file_target([made.parent.resolve() / made.name if made.is_symlink() else made.resolve()])


def _settings(git: GitCommand, context: Context) -> Iterator[Path]:
    """The files that `git config` writes where it is not a repository's own."""
    names = ("--global", "--system")
    words = {whole for whole in names for word in git.rest if _is_cut_from(whole, word.text)}
    given = read_words(Command(argv=(Word("git"), *git.rest)), ("-f", *_cuts("--file", 3)))
    files = [value for option, value in given.options if option == "-f" or _is_cut_from("--file", option)]
    for file in files:
        if file is None or not file.literal or file.glob:
            raise UnclearError("which settings file it writes is known only when it runs")
        yield (start_of(git) / file.text).resolve()
    named = git.env.get("GIT_CONFIG_GLOBAL") or context.env.get("GIT_CONFIG_GLOBAL")
    if "--global" in words and named:
        if not named.startswith("/") or named.startswith("/dev/"):
            raise UnclearError(f"the settings are kept in {named}, which cannot be preserved")
        yield Path(named)
    elif "--global" in words:
        yield context.home / ".gitconfig"
        yield context.home / ".config" / "git" / "config"
    elif "--system" in words:
        yield Path("/etc/gitconfig")


def _is_cut_from(whole: str, option: str) -> bool:
    """Whether an option may be this one: git takes them cut short."""
    return len(option) > 3 and whole.startswith(option)


def _cuts(whole: str, least: int) -> tuple[str, ...]:
    """An option in all the lengths that git takes."""
    return tuple(whole[:length] for length in range(least, len(whole) + 1))


def fingerprint_of(parts: list[str]) -> str:
    """A digest of lines."""
    return sha256(dump_plain(to_plain(list(parts)))).hexdigest()
