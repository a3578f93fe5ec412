"""What a shell knows at one point of a text: its directory, variables, functions and arguments."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from agentrewind.backup.values import Context, Word


@dataclass(slots=True)
class Scope:
    """A shell's state. A variable that is None is set to something unknown; one that is absent may be set.

    `inherited`: names of variables that it was started with, which programs see.
    `exports`: variables that the text itself has given to the programs that it starts.
    `fixed`: names of variables that may keep their value whatever is assigned.
    `taint` says why names of programs no longer mean what they say, empty while they do.
    """

    cwd: Path | None
    home: Path
    variables: dict[str, str | None]
    functions: dict[str, Any] = field(default_factory=dict)
    exports: dict[str, Word] = field(default_factory=dict)
    inherited: frozenset[str] = frozenset()
    arguments: tuple[Word, ...] | None = None
    fixed: frozenset[str] = frozenset()
    taint: str = ""

    def copy(self) -> Scope:
        """A shell of its own that begins with this state."""
        return replace(
            self, variables=dict(self.variables), functions=dict(self.functions), exports=dict(self.exports)
        )

    def value(self, name: str) -> str | None:
        """The variable's text, None where it cannot be told."""
        if name == "PWD":
            return str(self.cwd) if self.cwd is not None else None
        return self.variables.get(name)

    def spoil(self, reason: str) -> None:
        """From here on a program's name says nothing for sure."""
        self.taint = self.taint or reason


def scope_of(context: Context) -> Scope:
    """The shell in which a call begins."""
    variables: dict[str, str | None] = {**context.env, "HOME": str(context.home), "IFS": " \t\n"}
    return Scope(cwd=context.cwd, home=context.home, variables=variables, inherited=frozenset(context.env))


def merged(first: Scope | None, second: Scope | None) -> Scope | None:
    """What holds whichever of two ways was taken; None for a way that ends the shell."""
    if first is None or second is None or first is second:
        return first if second is None else second
    names = first.variables.keys() | second.variables.keys()
    variables: dict[str, str | None] = {}
    for name in names:
        one, other = first.variables.get(name), second.variables.get(name)
        variables[name] = one if one == other else None
    functions: dict[str, Any] = {}
    for name in first.functions.keys() | second.functions.keys():
        mine, theirs = first.functions.get(name), second.functions.get(name)
        functions[name] = mine if mine is theirs else None
    exports = dict(first.exports)
    for name, word in second.exports.items():
        exports[name] = word if exports.get(name) == word else Word(f"${name}", literal=False)
    for name in first.exports.keys() - second.exports.keys():
        exports[name] = Word(f"${name}", literal=False)
    return Scope(
        exports=exports,
        inherited=first.inherited,
        cwd=first.cwd if first.cwd == second.cwd else None,
        home=first.home,
        variables=variables,
        functions=functions,
        fixed=first.fixed | second.fixed,
        arguments=first.arguments if first.arguments == second.arguments else None,
        taint=first.taint or second.taint,
    )
