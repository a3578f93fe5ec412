"""What a command runs in its turn, and the options that stand before it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from agentrewind.backup.values import Command, Word


@dataclass(frozen=True, slots=True, kw_only=True)
class Nested:
    """Something that a command runs: words that are a command, or a text for a shell.

    `command` holds what is known of how it runs: user, host, directory, redirections; not its argv.
    """

    command: Command
    words: tuple[Word, ...] | None = None
    text: str = ""
    arguments: tuple[Word, ...] | None = None
    keeps_stdin: bool = True


@dataclass(slots=True)
class Taken:
    """A wrapper's options, and the words after them."""

    options: dict[str, Word] = field(default_factory=dict)
    rest: list[Word] = field(default_factory=list)
    problem: str = ""


def made_unclear(command: Command, reason: str) -> Command:
    return replace(command, unclear=command.unclear or reason)


def open_ended(inner: Command, rest: list[Word], sign: str | None) -> Nested:
    """The command with words of its own; where they are `sign`, they stand for what comes from elsewhere."""
    words = [
        replace(word, literal=False, text="{}" if word.text == sign else word.text)
        if sign and sign in word.text
        else word
        for word in rest
    ]
    return Nested(command=replace(inner, open_ended=True, stdin=None), words=tuple(words), keeps_stdin=False)


def text_of(
    inner: Command, words: list[Word] | tuple[Word, ...], arguments: tuple[Word, ...] | None = ()
) -> Command | Nested:
    """A shell's text that is the words joined by blanks."""
    if not words or not all(word.literal and not word.glob for word in words):
        shown = " ".join(word.text for word in words)
        return replace(
            inner,
            argv=(Word(inner.wrappers[-1]), *words),
            unclear=f"the text {shown!r} is only known at run time",
        )
    return Nested(command=inner, text=" ".join(word.text for word in words), arguments=arguments)


def take(words: tuple[Word, ...], values: str, flags: str) -> Taken:
    """Split a wrapper's options from what follows. An option that is not known is a problem."""
    taking, lone = frozenset(values.split()), frozenset(flags.split())
    taken = Taken(rest=list(words))
    while taken.rest and not taken.problem:
        word = taken.rest[0]
        if not word.literal or word.glob:
            if word.text.startswith("-"):
                taken.problem = f"{word.text} is only known at run time"
            return taken
        if word.text == "--":
            taken.rest.pop(0)
            return taken
        if not word.text.startswith("-") or (word.text == "-" and "-" not in lone):
            return taken
        taken.rest.pop(0)
        _option(word.text, taking, lone, taken)
    return taken


def _option(text: str, taking: frozenset[str], lone: frozenset[str], taken: Taken) -> None:
    name, equals, value = text.partition("=")
    if text in lone or (name in lone and equals and name.startswith("--")):
        taken.options[name] = Word(value)
    elif name in taking and (not equals or name.startswith("--")):
        taken.options[name] = Word(value) if equals else _next(taken)
    elif text.startswith("--") or len(text) == 2:
        taken.problem = f"the option {text} is not understood"
    else:
        _cluster(text, taking, lone, taken)


def _cluster(text: str, taking: frozenset[str], lone: frozenset[str], taken: Taken) -> None:
    for at, letter in enumerate(text[1:], 1):
        option = f"-{letter}"
        if option in taking:
            taken.options[option] = Word(text[at + 1 :]) if text[at + 1 :] else _next(taken)
            return
        if option not in lone:
            taken.problem = f"the option {text} is not understood"
            return
        taken.options[option] = Word(text[at + 1 :])
        if option == "-i" and at + 1 < len(text) and "--replace" in lone:
            return


def _next(taken: Taken) -> Word:
    if not taken.rest:
        taken.problem = "an option lacks its value"
        return Word("")
    return taken.rest.pop(0)
