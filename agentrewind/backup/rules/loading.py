"""Reads rules from TOML and checks them; every problem is named by file and line."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Sequence
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from agentrewind.backup.kinds.table import KINDS
from agentrewind.backup.rules.matching import Rules
from agentrewind.backup.rules.rule import Rule
from agentrewind.backup.values import Tier
from agentrewind.errors import UsageError

USER_RULES = ("backup", "rules.toml")
"""Where a user's rules are, below the store."""


class RulesError(UsageError):
    """A rules file cannot be used; `problems` are lines of the form `file:line: what is wrong`."""

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(["the backup rules cannot be used:", *self.problems]))


def load_rules(store: Path | None) -> Rules:
    """The shipped rules with the user's of this store on top. Raises RulesError."""
    own = store.joinpath(*USER_RULES) if store else None
    return Rules((*read_rules(own), *shipped_rules()) if own and own.exists() else shipped_rules())


@cache
def shipped_rules() -> tuple[Rule, ...]:
    """The rules of this package, in order of the files' names."""
    found: list[Rule] = []
    for entry in sorted(resources.files(__package__).iterdir(), key=lambda each: each.name):
        if entry.name.endswith(".toml"):
            found += parse_rules(entry.read_text("utf-8"), entry.name)
    return tuple(found)


def read_rules(path: Path) -> tuple[Rule, ...]:
    """The rules of one file. Raises RulesError."""
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise RulesError([f"{path}:1: cannot be read: {error}"]) from error
    return parse_rules(text, str(path))


def parse_rules(text: str, name: str) -> tuple[Rule, ...]:
    """The rules in `text`; `name` is what problems call it. Raises RulesError with all of them."""
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        line = re.search(r"line (\d+)", str(error))
        raise RulesError([f"{name}:{line.group(1) if line else 1}: {error}"]) from error
    places = _Places(text, name)
    problems = [
        f"{name}:1: unknown table {key!r}; a rule begins with [[rule]]" for key in document.keys() - {"rule"}
    ]
    tables = document.get("rule", [])
    if not isinstance(tables, list):
        raise RulesError([*problems, f"{name}:1: write [[rule]], with two brackets"])
    rules: list[Rule] = []
    seen: set[str] = set()
    for index, table in enumerate(tables):
        wrong = _problems(table, seen)
        problems += [f"{places.of(index, key)}: {what}" for key, what in wrong]
        if not wrong:
            seen.add(table["id"])
            rules.append(_rule(table, places.of(index)))
    if problems:
        raise RulesError(problems)
    return tuple(rules)


class _Places:
    """Lines of rules and of their keys."""

    def __init__(self, text: str, name: str) -> None:
        self._name = name
        self._lines = text.splitlines()
        self._starts = [n for n, line in enumerate(self._lines) if re.match(r"\s*\[\[\s*rule\s*\]\]", line)]

    def of(self, index: int, key: str = "") -> str:
        start = self._starts[index] if index < len(self._starts) else 0
        end = self._starts[index + 1] if index + 1 < len(self._starts) else len(self._lines)
        for number in range(start, end):
            if key and re.match(rf"\s*{re.escape(key)}\b", self._lines[number]):
                return f"{self._name}:{number + 1}"
        return f"{self._name}:{start + 1}"


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _is_words(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(_is_text(each) for each in value)


def _is_options(value: Any) -> bool:
    return _is_words(value) and all(each.startswith(("-", "+")) for each in value)


def _is_flag(value: Any) -> bool:
    return isinstance(value, bool)


_FIELDS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "id": (
        lambda value: _is_text(value) and bool(re.fullmatch(r"[a-z0-9-]+(\.[a-z0-9-]+)+", value)),
        "must be family.name in small letters, digits and hyphens",
    ),
    "kind": (lambda value: isinstance(value, str) and value in KINDS, f"must be one of {', '.join(KINDS)}"),
    "tier": (lambda value: value in ("rewrite", "pair", "snapshot"), "must be rewrite, pair or snapshot"),
    "program": (_is_words, "must be a list of names"),
    "tool": (_is_words, "must be a list of names"),
    "redirect": (_is_flag, "must be true or false"),
    "subcommand": (_is_words, "must be a list of texts"),
    "any_option": (_is_options, "must be a list of options, each with its dash"),
    "no_option": (_is_options, "must be a list of options, each with its dash"),
    "values": (_is_options, "must be a list of options, each with its dash"),
    "parameters": (lambda value: isinstance(value, dict), "must be a table"),
    "captures": (_is_text, "must be a phrase"),
    "verify": (_is_text, "must be a phrase"),
    "restore": (_is_text, "must be a phrase"),
    "untried": (_is_flag, "must be true or false"),
}

_REQUIRED = ("id", "kind", "tier", "captures", "restore")
_FOR_COMMANDS = ("subcommand", "any_option", "no_option", "values")


def _problems(table: Any, seen: set[str]) -> list[tuple[str, str]]:
    """Key and complaint of everything that is wrong with one rule."""
    if not isinstance(table, dict):
        return [("", "a rule is a table")]
    found = [(key, f"unknown key {key!r}") for key in table if key not in _FIELDS]
    for key, (right, what) in _FIELDS.items():
        if key in table and not right(table[key]):
            found.append((key, f"{key} {what}"))
    found += [("", f"{key} is missing") for key in _REQUIRED if key not in table]
    if sum(bool(table.get(key)) for key in ("program", "tool", "redirect")) != 1:
        found.append(("", "exactly one of program, tool and redirect = true has to say what the rule is for"))
    if "program" not in table:
        found += [(key, f"{key} needs program") for key in _FOR_COMMANDS if key in table]
    if isinstance(table.get("id"), str) and table["id"] in seen:
        found.append(("id", f"id {table['id']} stands twice"))
    return found


def _rule(table: dict[str, Any], source: str) -> Rule:
    fields = dict(table)
    fields |= {key: tuple(table[key]) for key in ("program", "tool", *_FOR_COMMANDS) if key in table}
    fields["tier"] = Tier(table["tier"])
    # kinds read a command's words as the rule does, unless its parameters say otherwise
    fields["parameters"] = {"values": table.get("values", []), **table.get("parameters", {})}
    return Rule(**fields, source=source)
