"""Turns the words of a simple command into options, operands and the paths that they name."""

from __future__ import annotations

import glob
import os
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path

from agentrewind.backup.kind import UnclearError
from agentrewind.backup.values import Command, Context, Word


@dataclass(frozen=True, slots=True)
class Given:
    """A command's words after its program: options with their values, in order, and operands."""

    options: tuple[tuple[str, Word | None], ...] = ()
    operands: tuple[Word, ...] = field(default=())

    def has(self, *names: str) -> bool:
        """Any of these options was given, in full or cut short."""
        return any(
            name in names
            or (name.startswith("--") and len(name) > 3 and any(each.startswith(name) for each in names))
            for name, _ in self.options
        )

    def value(self, *names: str) -> Word | None:
        """The value of the last of these options."""
        found = [value for name, value in self.options if name in names]
        return found[-1] if found else None


def read_words(command: Command, values: Collection[str], optional: Collection[str] = ()) -> Given:
    """The words of a command.

    `values` are the options that take a value, in the next word or attached; `optional` are short ones
    that take it attached or not at all.
    """
    options: list[tuple[str, Word | None]] = []
    operands: list[Word] = []
    rest = iter(command.argv[1:])
    for word in rest:
        text = word.text
        if text == "--" and word.literal:
            operands += rest
        elif text.startswith("--"):
            name, equals, value = text.partition("=")
            attached = Word(value, word.literal, word.glob) if equals else None
            options.append((name, attached or (next(rest, None) if name in values else None)))
        elif text.startswith("-") and len(text) > 1:
            options += _cluster(word, values, optional, rest)
        else:
            operands.append(word)
    return Given(tuple(options), tuple(operands))


def _cluster(
    word: Word, values: Collection[str], optional: Collection[str], rest: Iterator[Word]
) -> Iterator[tuple[str, Word | None]]:
    """`-rf`, `-C dir`, `-Cdir`; an option in full that has several letters (`-delete`) as it is, too."""
    text = word.text
    if text in values and len(text) > 2:
        yield text, next(rest, None)
        return
    if len(text) > 2:
        yield text, None
    for place, letter in enumerate(text[1:], start=1):
        name = f"-{letter}"
        attached = Word(text[place + 1 :], word.literal, word.glob) if text[place + 1 :] else None
        if name in values or name in optional:
            yield name, attached or (next(rest, None) if name in values else None)
            return
        yield name, None


def paths_of(word: Word, command: Command, context: Context) -> list[Path]:
    """The absolute paths that a word names: one, or what its pattern matches now.

    Raises UnclearError where that is known only when the command runs.
    """
    if not word.literal:
        raise UnclearError(f"what {word.text!r} stands for is known only when the command runs")
    path = _absolute(word.text, command, context)
    last = word.text.rstrip("/").rpartition("/")[2]
    if word.glob and last.startswith(".") and fnmatchcase("..", last):
        raise UnclearError(f"{word.text!r} may stand for the directory above as well")
    if not word.glob:
        return [path]
    found = sorted(glob.glob(str(path)))  # noqa: PTH207 - Path.glob takes hidden files as well
    # a pattern that matches nothing stays as it is written
    return [Path(each) for each in found] if found else [path]


def _absolute(text: str, command: Command, context: Context) -> Path:
    if text.startswith("/"):
        return Path(os.path.normpath(text)) if ".." not in text.split("/") else Path(text)
    if command.cwd is None:
        raise UnclearError(f"in which directory {text!r} lies is known only when the command runs")
    return Path(command.cwd) / text


def resolved(path: Path, *, follow: bool) -> tuple[Path, ...]:
    """Where a path really lies, through every link on the way; with `follow` also what it points to itself.

    Raises UnclearError where links go in a circle.
    """
    try:
        own = path.parent.resolve() / path.name if path.name not in ("", "..") else path.resolve()
        return (own, path.resolve()) if follow and own.is_symlink() else (own,)
    except (OSError, RuntimeError) as error:
        raise UnclearError(f"{path} cannot be followed: {error}") from error
