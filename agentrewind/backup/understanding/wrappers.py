"""Takes off what only starts another command: `sudo`, `env`, `timeout`, `xargs`, `bash -c` and so on."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from agentrewind.backup.understanding.nested import Nested, Taken, made_unclear, open_ended, take, text_of
from agentrewind.backup.understanding.runners import RUNNERS
from agentrewind.backup.understanding.steering import steers
from agentrewind.backup.understanding.wrapper_table import PREFIXES
from agentrewind.backup.values import Command, Redirect, Word

_SHELLS = ("bash", "sh", "dash", "ash", "zsh", "ksh", "rbash")
_SPLIT = re.compile(r"-[iv0]*S|--split-string=?")
_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)


def unwrap(command: Command) -> Iterator[Command | Nested]:
    """The command itself, or what it runs instead; for `find -exec` and its kind both."""
    name = command.name
    if name in PREFIXES:
        yield _prefixed(command, name)
    elif name in _SHELLS:
        yield _shell(command)
    elif name in RUNNERS:
        yield from RUNNERS[name](command)
    else:
        yield command


def _prefixed(command: Command, name: str) -> Command | Nested:
    prefix = PREFIXES[name]
    if name == "env" and any(_SPLIT.match(word.text) for word in command.argv[1:]):
        return _split_string(command)
    taken = take(command.argv[1:], prefix.values, f"{prefix.flags} {prefix.alone}")
    if taken.problem:
        return made_unclear(command, f"{name}: {taken.problem}")
    if any(option in taken.options for option in prefix.alone.split()):
        return command
    inner = _assigned(command, taken) if prefix.assigns else command
    skipped, rest = taken.rest[: prefix.skip], taken.rest[prefix.skip :]
    if not rest:
        return _alone(command, name, taken)
    files = [taken.options[option] for option in prefix.writes.split() if option in taken.options]
    redirects = (*command.redirects, *(Redirect(operator=">", target=word) for word in files))
    inner = replace(inner, redirects=redirects, wrappers=(*command.wrappers, name), argv=())
    if name in _CHANGES:
        inner = _CHANGES[name](inner, taken.options, skipped)
    if name == "xargs":
        return _appended(inner, taken, rest)
    if name == "flock" and rest[0].text in ("-c", "--command"):
        return text_of(inner, rest[1:2])
    return Nested(command=inner, words=tuple(rest))


def _assigned(command: Command, taken: Taken) -> Command:
    """With the `NAME=value` words before the command taken as assignments."""
    assigned = dict(command.assignments)
    while taken.rest and (match := _ASSIGNMENT.fullmatch(taken.rest[0].text)):
        word = taken.rest.pop(0)
        name, value = match.groups()
        assigned[name] = replace(word, text=value)
        if steers(name, value if word.literal else None):
            command = made_unclear(command, f"{name} is set, which may change what commands do")
    return replace(command, assignments=assigned)


def _alone(command: Command, name: str, taken: Taken) -> Command:
    """A wrapper that is given no command: a login shell, or a list of something."""
    if name in ("sudo", "doas") or (name == "chroot" and taken.rest):
        return made_unclear(command, f"{name} starts a shell")
    if name in ("env", "xargs", "nice", "exec", "builtin", "command", "busybox", "time", "nohup"):
        return command
    return made_unclear(command, f"{name} is given no command")


def _as_user(command: Command, options: Mapping[str, Word], skipped: list[Word]) -> Command:
    word = options.get("-u") or options.get("--user") or Word("root")
    command = replace(command, user=word.text if word.literal else "?")
    return _in_directory(command, options.get("-D") or options.get("--chdir"))


def _env_directory(command: Command, options: Mapping[str, Word], skipped: list[Word]) -> Command:
    return _in_directory(command, options.get("-C") or options.get("--chdir"))


def _in_directory(command: Command, word: Word | None) -> Command:
    if word is None:
        return command
    known = word.literal and command.cwd is not None
    return replace(command, cwd=command.cwd / word.text if known and command.cwd is not None else None)


def _other_root(command: Command, options: Mapping[str, Word], skipped: list[Word]) -> Command:
    return replace(command, host=f"chroot {skipped[0].text}")


def _lock_file(command: Command, options: Mapping[str, Word], skipped: list[Word]) -> Command:
    return replace(command, redirects=(*command.redirects, Redirect(operator=">>", target=skipped[0])))


_CHANGES: dict[str, Callable[[Command, Mapping[str, Word], list[Word]], Command]] = {
    "sudo": _as_user,
    "doas": _as_user,
    "env": _env_directory,
    "chroot": _other_root,
    "flock": _lock_file,
}


def _appended(inner: Command, taken: Taken, rest: list[Word]) -> Nested:
    """xargs: its operands come from its input, at the end or wherever the replaced text stands."""
    mark = taken.options.get("-I") or taken.options.get("-i") or taken.options.get("--replace")
    sign = (mark.text or "{}") if mark is not None else None
    delimiter = taken.options.get("-d") or taken.options.get("--delimiter")
    divided = delimiter is not None and delimiter.text != "\\n"
    if inner.open_ended or divided or "-a" in taken.options or "--arg-file" in taken.options:
        inner = replace(inner, source=None)
    return open_ended(inner, rest, sign)


def _split_string(command: Command) -> Command | Nested:
    """`env -S`: the text is divided into words, much as a shell would."""
    for at, word in enumerate(command.argv[1:], 1):
        match = _SPLIT.match(word.text)
        if match is None:
            continue
        if not all(each.literal for each in command.argv):
            break
        first = word.text[match.end() :]
        rest = [each.text for each in command.argv[at + 1 :]]
        text = first if first else (rest.pop(0) if rest else "")
        return Nested(
            command=replace(command, argv=(), wrappers=(*command.wrappers, "env")),
            text=" ".join(["env", *[each.text for each in command.argv[1:at]], text, shlex.join(rest)]),
        )
    return made_unclear(command, "env -S divides text that is only known at run time")


def _shell(command: Command) -> Command | Nested:
    """`bash -c TEXT`, and a shell that reads its text from standard input."""
    rest = list(command.argv[1:])
    if [word.text for word in rest] in (["--version"], ["--help"]):
        return command
    inner = replace(command, argv=(), wrappers=(*command.wrappers, command.name))
    letters = ""
    while rest and rest[0].text[:1] in ("-", "+") and len(rest[0].text) > 1 and rest[0].text != "--":
        word = rest.pop(0)
        if not word.literal or word.text in ("--rcfile", "--init-file"):
            return made_unclear(
                command, f"{command.name} {word.text}: what it runs is only known at run time"
            )
        letters += "" if word.text.startswith(("--", "+")) else word.text
        if word.text.endswith(("o", "O")) and not word.text.startswith("--"):
            rest[:1] = []
    rest = rest[1:] if rest[:1] == [Word("--")] else rest
    if "c" in letters:
        return text_of(inner, rest[:1], None if command.open_ended else tuple(rest[2:]))
    if rest and "s" not in letters:
        return command
    if command.stdin is None:
        return made_unclear(command, f"{command.name} runs what comes from its standard input")
    return Nested(command=inner, text=command.stdin, arguments=tuple(rest), keeps_stdin=False)
