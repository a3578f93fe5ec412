"""Which rules a simple command, a tool or a redirection matches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase

from agentrewind.backup.rules.rule import Rule
from agentrewind.backup.values import Command, Tier, Word

_ORDER = (Tier.REWRITE, Tier.PAIR, Tier.SNAPSHOT)


class Rules:
    """Rules in order: tier by tier, and within a tier as given. The first of an id counts."""

    def __init__(self, rules: Iterable[Rule]) -> None:
        first: dict[str, Rule] = {}
        for rule in rules:
            first.setdefault(rule.id, rule)
        self.all = tuple(sorted(first.values(), key=lambda rule: _ORDER.index(rule.tier)))
        self._by_program: dict[str, list[Rule]] = {}
        self._patterns: list[Rule] = []
        for rule in self.all:
            if any(_is_pattern(name) for name in rule.program):
                self._patterns.append(rule)
            for name in rule.program:
                self._by_program.setdefault(name, []).append(rule)

    def for_command(self, command: Command) -> tuple[Rule, ...]:
        """The rules for its program that its subcommand and options satisfy, first match first."""
        name = command.name
        named = self._by_program.get(name, [])
        found = [rule for rule in named if satisfies(rule, command.argv[1:])]
        for rule in self._patterns:
            if rule not in found and any(fnmatchcase(name, pattern) for pattern in rule.program):
                found += [rule] if satisfies(rule, command.argv[1:]) else []
        return tuple(sorted(found, key=lambda rule: _ORDER.index(rule.tier)))

    def knows(self, program: str) -> bool:
        """Whether any rule is for this program, matched or not."""
        named = program in self._by_program
        return named or any(fnmatchcase(program, name) for rule in self._patterns for name in rule.program)

    def for_tool(self, name: str) -> tuple[Rule, ...]:
        """The rules for a tool of this name."""
        return tuple(rule for rule in self.all if any(fnmatchcase(name, pattern) for pattern in rule.tool))

    def for_redirects(self) -> tuple[Rule, ...]:
        """The rules for redirections that write."""
        return tuple(rule for rule in self.all if rule.redirect)


def _is_pattern(name: str) -> bool:
    return any(sign in name for sign in "*?[")


def satisfies(rule: Rule, words: Sequence[Word]) -> bool:
    """Whether the words after the program satisfy a rule's subcommand and options."""
    given, operands = split_options(words, rule.values)
    taking = frozenset(rule.values)
    if rule.subcommand and not any(_begins(operands, each.split(" ")) for each in rule.subcommand):
        return False
    if rule.any_option and not (
        any(_may_be(each, given, taking) for each in rule.any_option) or _unknown(words)
    ):
        return False
    return not any(_surely_is(each, given, taking) for each in rule.no_option)


def split_options(words: Sequence[Word], values: Iterable[str]) -> tuple[list[str], list[Word]]:
    """Option words (values left out) and operands. After `--` all are operands; `-` alone is one."""
    taking = frozenset(values)
    options: list[str] = []
    operands: list[Word] = []
    rest = iter(words)
    for word in rest:
        text = word.text
        if text == "--" and word.literal:
            operands += rest
        elif len(text) > 1 and text.startswith(("-", "+")):
            options.append(text)
            if _takes_next(text, taking):
                next(rest, None)
        else:
            operands.append(word)
    return options, operands


def _takes_next(text: str, taking: frozenset[str]) -> bool:
    if text in taking:
        return True
    if text.startswith("--"):
        return False
    # of a cluster the first letter with a value takes the rest of it, or the next word
    takers = [at for at, letter in enumerate(text[1:], 1) if f"-{letter}" in taking]
    return bool(takers) and takers[0] == len(text) - 1


def _begins(operands: Sequence[Word], wanted: Sequence[str]) -> bool:
    if len(operands) < len(wanted):
        return False
    return all(word.literal and word.text == want for word, want in zip(operands, wanted, strict=False))


def _may_be(option: str, given: Sequence[str], taking: frozenset[str]) -> bool:
    """Present in any spelling: whole, with `=value`, cut short, or in a cluster of letters."""
    short = any(
        text.startswith("--") and len(text) > 3 and option.startswith(text.partition("=")[0])
        for text in given
    )
    return short or any(_is(option, text, taking) for text in given)


def _surely_is(option: str, given: Sequence[str], taking: frozenset[str]) -> bool:
    """Present in full, and not taken back by its `--no-` form."""
    taken_back = option.startswith("--") and f"--no-{option[2:]}" in given
    return not taken_back and any(_is(option, text, taking) for text in given)


def _is(option: str, text: str, taking: frozenset[str]) -> bool:
    if option in (text, text.partition("=")[0]):
        return True
    in_cluster = len(option) == 2 and option[0] == text[0] and not text.startswith("--")
    return in_cluster and option[1] in _letters(text, taking)


def _letters(text: str, taking: frozenset[str]) -> Iterator[str]:
    """Letters of a cluster up to the first that takes the rest as its value."""
    for letter in text[1:]:
        if not letter.isalnum():
            return
        yield letter
        if f"-{letter}" in taking:
            return


def _unknown(words: Sequence[Word]) -> bool:
    """Whether some word before `--` may turn out to be an option."""
    for word in words:
        if not word.literal:
            return True
        if word.text == "--":
            return False
    return False
