"""Finds what goes through paths where the same call may have put links or archives before."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path

from agentrewind.backup.understanding.reading import reads, writing_redirects
from agentrewind.backup.values import Command, Word

_AGAIN = re.compile(r"\b(for|while|until|select)\b|(?<![&>])&(?![&>])")
_ANYWHERE = Path("/")
_ALL = "*"
_REMOVING = ("rm", "rmdir", "unlink", "mv", "find", "rsync")
_ONLY_HERE = ("rm", "rmdir", "unlink", "mkdir", "mv", "ln", "touch", "tee", "git", "npm", "cd", "printf")
"""Programs that do not go down below the paths that they are given, or follow no link on the way."""

_NAME_ONLY = ("rm", "rmdir", "unlink", "mkdir", "mv")
"""Programs that take away or move a name itself, whatever it leads to."""

_HARMLESS = ("mkdir", "rm", "rmdir", "chmod", "touch", "cd", "set", "echo", "printf", "export")
"""Programs that put no other archive at a path, if they are not redirected."""

_GIT_KEEPS = (
    "add",
    "commit",
    "branch",
    "tag",
    "push",
    "fetch",
    "status",
    "log",
    "diff",
    "show",
    "config",
    "init",
    "rev-parse",
    "remote",
    "ls-files",
    "rm",
    "gc",
)


def followed(commands: Iterable[Command], text: str) -> Iterator[Command]:
    """The commands in order; one that goes through a path which the same call may have made is unclear."""
    listed = list(commands)
    made: set[Path] = set()
    if _AGAIN.search(text):
        # what comes later may have run a round before
        for at, command in enumerate(listed):
            made |= set(_makes(command, listed[:at]))
    changed = False
    for at, command in enumerate(listed):
        if reads(command) and not command.open_ended:
            yield command
            continue
        if _unpacks(command) and changed:
            command = _unclear(command, "the archive may be made or replaced by the call itself")
        elif made and _reaches(command, made):
            command = _unclear(command, "a part before it may put a link or another file at its path")
        yield command
        changed = changed or command.name not in _HARMLESS or bool(writing_redirects(command))
        made |= set(_makes(command, listed[:at]))


def _unclear(command: Command, reason: str) -> Command:
    return replace(command, unclear=command.unclear or reason)


def _letters(command: Command) -> set[str]:
    words = [word.text for word in command.argv[1:]]
    return {letter for text in words if re.match(r"-\w", text) for letter in text[1:]}


def _unpacks(command: Command) -> bool:
    if command.name in ("tar", "bsdtar"):
        first = command.argv[1].text if len(command.argv) > 1 else ""
        return "x" in _letters(command) or "x" in first or any("--" in w.text for w in command.argv)
    return command.name in ("unzip", "cpio", "7z")


def _operands(command: Command) -> list[Word]:
    return [word for word in command.argv[1:] if not re.match(r"-.", word.text)]


def _at(command: Command, text: str) -> Path:
    return command.cwd / text if command.cwd is not None else _ANYWHERE


def _makes(command: Command, earlier: list[Command]) -> Iterator[Path]:
    """Paths at or below which a command may put links, or things that are themselves reached by links."""
    for path in _makes_raw(command, earlier):
        yield Path(os.path.normpath(path))
        yield Path(os.path.realpath(path.parent)) / path.name if path.name != ".." else path.resolve()


def _makes_raw(command: Command, earlier: list[Command]) -> Iterator[Path]:
    letters = _letters(command)
    long = any(word.text.startswith("--") for word in command.argv)
    match command.name:
        case "ln" | "mv":
            yield from _ends(command, letters, earlier)
        case "cp" if letters & set("arRPdls") or long:
            yield from _ends(command, letters, earlier)
        case "rsync":
            yield from (_at(command, word.text) for word in _operands(command)[-1:])
        case "npm":
            yield _at(command, "node_modules")
        case "git":
            yield from _checked_out(command)
        case "tar" | "bsdtar" | "unzip" | "cpio" | "7z" if _unpacks(command):
            yield _unpacked_into(command, long=long, letters=letters)
        case _:
            return


def _ends(command: Command, letters: set[str], earlier: list[Command]) -> Iterator[Path]:
    operands = _operands(command)
    if "t" in letters or any(word.text.startswith("--t") for word in command.argv):
        yield from (_at(command, word.text) for word in operands)
        yield from (_at(command, w.text.partition("=")[2]) for w in command.argv if w.text.startswith("--t"))
        yield from (_at(command, w.text[2:]) for w in command.argv if re.match(r"-t.", w.text))
        return
    if len(operands) < 2:
        yield from (_at(command, Path(word.text).name) for word in operands)
        return
    into = _at(command, operands[-1].text)
    names = [Path(word.text).name for word in operands[:-1]]
    plain = all(word.literal and not word.glob for word in operands) and not {"", ".", ".."} & set(names)
    stays = into.is_dir() and not letters & set("Tn") and not any(e.name in _REMOVING for e in earlier)
    if plain and stays:
        yield from (into / name for name in names)
    else:
        yield into


def _checked_out(command: Command) -> Iterator[Path]:
    texts = [word.text for word in command.argv[1:]]
    if not texts or texts[0] in _GIT_KEEPS:
        return
    if texts[:2] in (["checkout", "-b"], ["switch", "-c"]) and len(texts) == 3:
        return
    if texts[0] in ("clone", "worktree"):
        operands = [text for text in texts[1:] if not text.startswith("-")]
        # `worktree add` may name a commit behind the folder
        for text in operands[-1:] if texts[0] == "clone" else operands[1:]:
            yield _at(command, text) / _ALL
            yield _at(command, Path(text).name.removesuffix(".git")) / _ALL
        return
    if texts[0].startswith("-") or command.cwd is None:
        yield _ANYWHERE
        return
    here = command.cwd
    # the work tree's folder itself stays, and git goes on there
    yield next((each for each in (here, *here.parents) if (each / ".git").exists()), here) / _ALL


def _unpacked_into(command: Command, *, long: bool, letters: set[str]) -> Path:
    texts = [word.text for word in command.argv]
    for option in ("-C", "-d"):
        if option in texts[:-1]:
            return _at(command, texts[texts.index(option) + 1])
    return _ANYWHERE if long or letters & set("Cd") else _at(command, ".")


def _reaches(command: Command, made: set[Path]) -> bool:
    name = command.name
    if any(_meets(command, each.target, made, exact=True) for each in writing_redirects(command)):
        return True
    if not command.argv:
        return False
    if command.cwd is not None and _meets(command, Word("."), made, exact=True):
        return True
    if name == "git":
        odd = any(word.text.startswith(("-C", "--git", "--work")) for word in command.argv)
        return odd or any(".git" in path.parts for path in made)
    words = [word for word in command.argv[1:] if word.literal]
    if name in ("cp", "ln") and not any(re.match(r"-\w*t|--t", word.text) for word in words):
        words = words[-1:]
    for place, word in enumerate(words):
        last = place == len(words) - 1
        exact = name not in _NAME_ONLY or (name == "mv" and last) or word.text.endswith(("/", "/."))
        if _meets(command, _value(word), made, exact=exact):
            return True
    finder = command.source if command.source is not None else command
    return _goes_below(finder, command) and any(_above(finder, word, made) for word in finder.argv[1:])


def _value(word: Word) -> Word:
    """The path in `of=PATH`, `--directory=PATH`, or the word itself."""
    head, equals, value = word.text.partition("=")
    return replace(word, text=value) if equals and "/" not in head else word


def _goes_below(finder: Command, command: Command) -> bool:
    if finder.name != "find":
        return command.name not in _ONLY_HERE
    follows = any(re.match(r"-(L|H|follow)", word.text) for word in finder.argv)
    return (
        follows
        or any(re.match(r"-(exec|ok|f.)", word.text) for word in finder.argv)
        or (command.name not in _ONLY_HERE and command.name != "find")
    )


def _meets(command: Command, word: Word, made: set[Path], *, exact: bool) -> bool:
    """Whether the way to a path goes through one that was made; with `exact` also whether it ends there."""
    if command.cwd is None and not word.text.startswith("/"):
        return False
    raw = Path("/") if command.cwd is None else command.cwd
    ways = list((raw / word.text).parts)
    for end in range(1, len(ways) + 1):
        prefix = Path(*ways[:end])
        forms = {os.path.normpath(prefix)}
        if not word.glob:
            forms.add(str(Path(os.path.realpath(prefix.parent)) / prefix.name))
        hit = any(_fits(form, path, word) for form in forms for path in made)
        if hit and (exact or end < len(ways)):
            return True
    return False


def _fits(form: str, path: Path, word: Word) -> bool:
    mine, theirs = Path(form).parts, path.parts
    if path.name == _ALL and len(mine) == len(theirs):
        mine, theirs = mine[:-1], theirs[:-1]
    if not word.glob:
        return mine == theirs
    return len(mine) == len(theirs) and all(map(fnmatchcase, theirs, mine))


def _above(command: Command, word: Word, made: set[Path]) -> bool:
    """Whether something that was made lies below a path."""
    if command.cwd is None or word.text.startswith("-") or not word.literal:
        return False
    path = command.cwd / word.text
    forms = {os.path.normpath(path), os.path.realpath(path)}
    return any(form == str(parent) for form in forms for each in made for parent in each.parents)
