"""Says which simple commands change nothing: a table of programs, their subcommands and their options.

A program that is not in a table, an option that may write or run something, a word that may turn out to be
such an option: not read-only. One command's verdict says nothing of the commands around it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

from agentrewind.backup.understanding import reading_tables as tables
from agentrewind.backup.understanding.reading_texts import READERS
from agentrewind.backup.understanding.steering import SYSTEM_DIRECTORIES
from agentrewind.backup.values import Command, Redirect, Word

_CODE = re.compile(r"\$\(|`|^-\w*C")
_NOWHERE = re.compile(r"/dev/(null|stdout|stderr|tty|zero|fd/\d+)")


def reads(command: Command) -> bool:
    """Whether the command changes nothing, whatever the words that are only known at run time become."""
    if command.unclear or writing_redirects(command):
        return False
    if not command.argv:
        return True
    program = command.argv[0]
    if not program.literal or not _is_found_by_name(program.text):
        return False
    name, words = command.name, command.argv[1:]
    if name in tables.PLAIN:
        return not (name in tables.EVALUATING and any(_CODE.search(word.text) for word in words))
    if command.open_ended or any(_may_be_option(word, command.cwd) for word in words):
        return False
    texts = [word.text for word in words]
    if name in tables.VERSIONED and len(texts) == 1 and texts[0] in ("--version", "-V", "--help", "-version"):
        return True
    return _by_table(name, texts)


def writing_redirects(command: Command) -> tuple[Redirect, ...]:
    """The redirections that may create or change a file."""
    return tuple(each for each in command.redirects if _writes(each))


def _writes(redirect: Redirect) -> bool:
    operator, target = redirect.operator, redirect.target
    if ">" not in operator:
        return False
    if operator in (">&", "<&") and target.literal and re.fullmatch(r"\d*-?", target.text):
        return False
    return not (target.literal and _NOWHERE.fullmatch(target.text))


def _is_found_by_name(program: str) -> bool:
    """A bare name, or one in a system directory; `./ls` may be anything."""
    directory, slash, _ = program.rpartition("/")
    return not slash or directory in SYSTEM_DIRECTORIES


def _may_be_option(word: Word, cwd: Path | None) -> bool:
    """Whether a word may turn out to be an option: unknown, or a pattern that fits a name with a dash."""
    if not word.literal:
        return True
    if not word.glob or word.text[:1] not in "*?[-":
        return False
    try:
        return cwd is None or any(entry.name.startswith("-") for entry in os.scandir(cwd))
    except OSError:
        return True


def _by_table(name: str, texts: Sequence[str]) -> bool:
    special = READERS.get(name)
    if special is not None:
        return special(texts)
    denied = tables.DENIED.get(name)
    if denied is not None:
        needed = tables.NEEDED.get(name)
        if needed is not None and not any(text in needed for text in texts):
            return False
        return not _has(texts, denied.options) and _operands_fit(texts, denied)
    family = tables.SUBCOMMANDS.get(name)
    return family is not None and _subcommand_reads(texts, family)


def _has(texts: Sequence[str], options: frozenset[str]) -> bool:
    """Any of these options in any spelling: cut short, with `=value`, in a cluster."""
    for text in texts:
        if not text.startswith(("-", "+")) or len(text) < 2:
            continue
        name = text.partition("=")[0]
        if name in options:
            return True
        if text.startswith("--"):
            if any(option.startswith(name) and option.startswith("--") for option in options):
                return True
        elif any(f"{text[0]}{letter}" in options for letter in name[1:]):
            return True
    return False


def _operands_fit(texts: Sequence[str], denied: tables.Denied) -> bool:
    operands = [text for text in texts if not text.startswith("-") or text == "-"]
    return len(operands) <= denied.operands and all(
        re.fullmatch(denied.shape, text, re.DOTALL) for text in operands
    )


def _subcommand_reads(texts: Sequence[str], family: tables.Family) -> bool:
    """Judged by the first operand, or the first two; an option before them has to be one that is known."""
    if _has(texts, family.denied):
        return False
    operands: list[str] = []
    rest = iter(texts)
    for text in rest:
        if not text.startswith("-"):
            operands.append(text)
            if operands[0] in family.one or len(operands) == 2:
                break
        elif text in family.values:
            next(rest, None)
        elif text.partition("=")[0] not in family.values | family.flags:
            return False
    return bool(operands) and (operands[0] in family.one or " ".join(operands) in family.two)
