"""Which commands get just what a `find` finds, and what else they are given."""

from __future__ import annotations

from dataclasses import replace

from agentrewind.backup.values import Command, Word

_IN_PLACE = (
    "rm",
    "rmdir",
    "unlink",
    "shred",
    "chmod",
    "chown",
    "chgrp",
    "touch",
    "truncate",
    "gzip",
    "setfattr",
)
"""Programs that change nothing but the paths that find hands them, and those that are named beside them."""

_OTHER = ("-printf", "-fprint", "-ls", "-fls", "-exec", "-ok", "-delete", "-files0-from")
"""Beginnings of actions with which find prints something else, or changes what it has found."""


def prints_matches(command: Command) -> bool:
    """Whether all that a command writes to a pipe is the paths that it finds."""
    return (
        command.name == "find"
        and not (command.unclear or command.open_ended or command.host)
        and not any(word.text.startswith(_OTHER) for word in command.argv)
        and all(each.descriptor == 2 for each in command.redirects if ">" in each.operator)
    )


def parts(command: Command) -> tuple[tuple[Command, ...], str]:
    """The commands by which one has to be judged, and why that is not all, empty where it is.

    What find hands to a program that changes those paths alone is asked of find; what the program is given
    besides is judged as its own words.
    """
    if not command.open_ended:
        return (_listing(command),), ""
    if command.name == "find":
        return (command,), "where it looks comes from another command's output"
    found = _as_find(command)
    if found is None:
        return (command,), "its operands come from another command's output"
    places = [place for place, word in enumerate(command.argv) if word == Word("{}", literal=False)]
    first = places[0] if places else len(command.argv)
    if places != list(range(first, len(command.argv))):
        return (found, command), "what it is given besides the paths that are found may be anything"
    return (found, replace(command, argv=command.argv[:first], open_ended=False)), ""


def _listing(command: Command) -> Command:
    """Find without `-print`, which would mix its names into the list that it is asked for."""
    if command.name != "find":
        return command
    return replace(command, argv=tuple(w for w in command.argv if w.text not in ("-print", "-print0")))


def _as_find(command: Command) -> Command | None:
    """The find that can tell what the command is handed, with the command as its action."""
    finder = command.source
    if finder is None or command.name not in _IN_PLACE:
        return None
    if command.wrappers[-1:] == ("find",):
        return replace(_listing(finder), redirects=())
    if command.wrappers[-1:] == ("xargs",) and finder.cwd is not None and finder.cwd == command.cwd:
        action = tuple(Word(text) for text in ("-exec", command.name, "{}", ";"))
        listing = _listing(finder)
        return replace(listing, argv=(*listing.argv, *action), redirects=())
    return None
