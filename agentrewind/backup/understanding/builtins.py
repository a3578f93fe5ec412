"""What the shell's own commands do to the shell: directory, variables, options, text that is run later."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from agentrewind.backup.understanding.scope import Scope
from agentrewind.backup.understanding.steering import steers
from agentrewind.backup.understanding.syntax import Node
from agentrewind.backup.values import Command, Redirect, Word

_NAME = re.compile(r"[A-Za-z_]\w*")


@dataclass(frozen=True, slots=True)
class After:
    """The shell after a builtin's success and failure (None: it has ended); `text` is run in it at once."""

    ok: Scope | None
    failed: Scope | None
    text: str | None = None


RUNS_TEXT = ("eval", "trap", "source", ".")
"""Builtins that run what they are given, which is unknown where they spoil the scope."""

Effect = Callable[[Command, Scope], After]


def effect_of(name: str) -> Effect | None:
    """What a builtin of this name does to the shell; None for a name that does nothing to it."""
    return _EFFECTS.get(name)


def assign(scope: Scope, name: str, value: str | None, *, exporting: bool = False) -> None:
    """Set a variable, None to something unknown. One that programs see already is exported again."""
    value = None if name in scope.fixed else value
    known = (scope.variables.get("PATH") or "").split(":")
    if steers(name, value, known):
        scope.spoil(f"{name} is set, which may change what commands do")
    if value is not None and ("$(" in value or "`" in value):
        # arithmetic and eval run such text
        scope.spoil(f"{name} holds code")
    if exporting or name in scope.inherited or name in scope.exports:
        scope.exports[name] = Word(value) if value is not None else Word(f"${name}", literal=False)
    scope.variables[name] = value


def forget_arithmetic(node: object, scope: Scope) -> None:
    """Variables that an arithmetic expression names may have any value afterwards."""
    for part in _dicts(node):
        if part.get("Type") == "Lit" and _NAME.fullmatch(str(part.get("Value", ""))):
            assign(scope, str(part["Value"]), None)


def forget_defaults(node: object, scope: Scope) -> None:
    """`${x:=…}` and `$((x=…))` set variables."""
    for part in _dicts(node):
        if part.get("Type") == "ArithmExp":
            forget_arithmetic(part.get("X"), scope)
        elif part.get("Type") == "ParamExp" and "=" in str((part.get("Exp") or {}).get("Op", "")):
            assign(scope, str(part.get("Param", {}).get("Value", "")), None)


def holds_code(node: object) -> bool:
    """Whether quoted text under an expression holds a substitution, which indexes of arrays run."""
    texts = (str(part.get("Value", "")) for part in _dicts(node) if part.get("Type") in ("Lit", "SglQuoted"))
    return any("$(" in text or "`" in text for text in texts)


def _dicts(node: object) -> Iterator[Node]:
    stack = [node]
    while stack:
        item = stack.pop()
        if isinstance(item, list):
            stack += item
        elif isinstance(item, dict):
            yield item
            stack += item.values()


def output_of(command: Command) -> tuple[str | None, Redirect | None]:
    """What a command hands on through a pipe: its text, or the file that holds it; None where unknown."""
    words = command.argv[1:]
    if command.host or command.unclear or any(not word.literal or word.glob for word in words):
        return None, None
    if any(each.operator.startswith((">", "&>")) for each in command.redirects):
        return None, None
    texts = [word.text for word in words]
    match command.name:
        case "cat":
            return _copied(command, texts)
        case "echo":
            return _echoed(texts), None
        case "printf":
            return _printed(texts), None
        case _:
            return None, None


def _copied(command: Command, texts: list[str]) -> tuple[str | None, Redirect | None]:
    if not texts or texts == ["-"]:
        return command.stdin, None
    if len(texts) > 1 or texts[0].startswith("-") or command.cwd is None:
        return None, None
    return None, Redirect(operator="<", target=Word(str(command.cwd / texts[0])))


def _printed(texts: list[str]) -> str | None:
    if texts and not re.search(r"[%\\]", texts[0].replace("\\n", "\n")):
        return texts[0].replace("\\n", "\n")
    if texts[:1] in (["%s"], ["%s\\n"]):
        end = "\n" if texts[0].endswith("n") else ""
        return "".join(text + end for text in texts[1:])
    return None


def _echoed(texts: list[str]) -> str | None:
    end = "\n"
    while texts and texts[0] in ("-n", "-e", "-E"):
        end = "" if texts[0] == "-n" else end
        if texts[0] == "-e" and any("\\" in text for text in texts):
            return None
        texts = texts[1:]
    # dash expands backslashes, bash does not
    return None if any("\\" in text for text in texts) else " ".join(texts) + end


def _nothing(command: Command, scope: Scope) -> After:
    return After(scope, scope)


def _cd(command: Command, scope: Scope) -> After:
    words = [word for word in command.argv[1:] if word.text not in ("-L", "--") or not word.literal]
    there = scope.copy()
    # -P goes by where links lead, which may change on the way; pushd rotates its stack by +N and -N
    odd = any(word.text.startswith(("-", "+")) for word in words) or not {"HOME", "CDPATH"}.isdisjoint(
        command.assignments.keys() - scope.exports.keys()
    )
    odd = odd or (command.name == "pushd" and not words)
    there.cwd = None if odd else _directory(words, scope)
    there.variables.pop("OLDPWD", None)
    return After(there, scope)


def _directory(words: list[Word], scope: Scope) -> Path | None:
    if not words:
        home = scope.value("HOME")
        return Path(home) if home else None
    word = words[0]
    if len(words) > 1 or not word.literal or word.glob or word.text in ("-", ""):
        return None
    if word.text.startswith("/"):
        return Path(os.path.normpath(word.text))
    if scope.cwd is None or scope.variables.get("CDPATH"):
        return None
    return Path(os.path.normpath(scope.cwd / word.text))


def _away(command: Command, scope: Scope) -> After:
    """popd, return, break, continue: what is done after it, and where, depends."""
    scope.cwd = None
    for name in scope.variables:
        scope.variables[name] = None
    return After(scope, scope)


def _end(command: Command, scope: Scope) -> After:
    return After(None, None)


def _read(command: Command, scope: Scope) -> After:
    for word in command.argv[1:]:
        if not word.literal:
            scope.spoil("a variable whose name is only known at run time is set")
        elif _NAME.fullmatch(word.text):
            assign(scope, word.text, None)
    for name in ("REPLY", "MAPFILE", "OPTARG", "OPTIND"):
        assign(scope, name, None)
    return After(scope, scope)


def _printf(command: Command, scope: Scope) -> After:
    words = command.argv[1:3]
    if words and not words[0].literal:
        scope.spoil("a variable whose name is only known at run time may be set")
    if len(words) == 2 and words[0].text == "-v":
        assign(scope, words[1].text, None)
    elif words and words[0].text.startswith("-v"):
        assign(scope, words[0].text[2:], None)
    return After(scope, scope)


def _unset(command: Command, scope: Scope) -> After:
    for word in command.argv[1:]:
        if not word.literal or steers(word.text, None):
            scope.spoil("a variable that may change what commands do is unset")
        scope.variables[word.text] = None
        scope.functions.pop(word.text, None)
    return After(scope, scope)


_SET = re.compile(
    r"[-+][eEuxvhmbC]*|[-+][eEuxvhmbC]*o|pipefail|errexit|nounset|xtrace|verbose|errtrace|noclobber"
)


def _set(command: Command, scope: Scope) -> After:
    words = command.argv[1:]
    for at, word in enumerate(words):
        if word.literal and word.text == "--":
            scope.arguments = words[at + 1 :]
            return After(scope, scope)
        if not word.literal or not _SET.fullmatch(word.text):
            scope.arguments = None
            scope.spoil("options of the shell are set that change how words are read")
    return After(scope, scope)


def _shift(command: Command, scope: Scope) -> After:
    count = command.argv[1].text if len(command.argv) > 1 and command.argv[1].literal else "1"
    given = scope.arguments
    known = given is not None and len(command.argv) <= 2 and count.isdigit() and int(count) <= len(given)
    literal = all(word.literal for word in command.argv)
    scope.arguments = given[int(count) :] if given is not None and known and literal else None
    return After(scope, scope)


def _declares(command: Command, scope: Scope) -> After:
    """`command export x=…` is no declaration to the parser: its words are taken apart by other rules."""
    if any(not word.literal or "=" in word.text or word.text.startswith("-") for word in command.argv[1:]):
        scope.spoil(f"{command.argv[0].text} is run in a way that hides what it sets")
    return After(scope, scope)


def _rebinds(command: Command, scope: Scope) -> After:
    """alias, shopt, enable, hash, source: afterwards a name may mean another program."""
    if len(command.argv) > 1 and not (command.name == "hash" and command.argv[1].text == "-r"):
        scope.spoil(f"{command.argv[0].text} may change what names mean")
    return After(scope, scope)


def _source(command: Command, scope: Scope) -> After:
    if len(command.argv) == 2 and command.argv[1].literal and scope.cwd is not None:
        script = scope.cwd / command.argv[1].text
        root = script.parent.parent
        if script.name == "activate" and script.parent.name == "bin" and (root / "pyvenv.cfg").is_file():
            path = f"{script.parent}:{scope.variables.get('PATH') or os.defpath}"
            for name, value in (("PATH", path), ("VIRTUAL_ENV", str(root))):
                scope.variables[name] = value
                scope.exports[name] = Word(value)
            return After(scope, scope)
    scope.spoil("a file of commands is read into the shell")
    return After(scope, scope)


def _eval(command: Command, scope: Scope) -> After:
    words = command.argv[1:]
    if all(word.literal and not word.glob for word in words):
        return After(scope, scope, " ".join(word.text for word in words))
    scope.spoil("eval runs text that is only known at run time")
    return After(scope, scope)


def _trap(command: Command, scope: Scope) -> After:
    words = [word for word in command.argv[1:] if word.text != "--"]
    if len(words) < 2 or words[0].text in ("-", "", "-l", "-p"):
        return After(scope, scope)
    if not words[0].literal:
        scope.spoil("trap runs text that is only known at run time")
        return After(scope, scope)
    return After(scope, scope, words[0].text)


_EFFECTS: dict[str, Effect] = {
    "cd": _cd,
    "chdir": _cd,
    "pushd": _cd,
    "popd": _away,
    "return": _away,
    "break": _away,
    "continue": _away,
    "exit": _end,
    "logout": _end,
    "read": _read,
    "mapfile": _read,
    "readarray": _read,
    "getopts": _read,
    "printf": _printf,
    "unset": _unset,
    "set": _set,
    "shift": _shift,
    "export": _declares,
    "declare": _declares,
    "typeset": _declares,
    "local": _declares,
    "readonly": _declares,
    "let": _declares,
    "shopt": _rebinds,
    "alias": _rebinds,
    "unalias": _rebinds,
    "enable": _rebinds,
    "hash": _rebinds,
    "bind": _rebinds,
    "source": _source,
    ".": _source,
    "eval": _eval,
    "trap": _trap,
}
