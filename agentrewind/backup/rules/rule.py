"""One rule: which calls it is for, and which kind of external state looks at them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from agentrewind.backup.values import Tier
from agentrewind.records import Json


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A rule as its file gives it. Exactly one of `program`, `tool` and `redirect` says what it is for.

    Attributes:
        id: `family.name`, unique; a user's rule of the same id replaces the shipped one.
        kind: key of `kinds.table.KINDS`.
        tier: REWRITE, PAIR or SNAPSHOT.
        program: base names of programs (globs).
        tool: names of tools (globs). The kind gets the tool's name as the program, and its arguments, as
            JSON, as stdin.
        redirect: for every redirection that writes a file, whatever the command.
        subcommand: the first operands, words joined by one space; any of these.
        any_option: at least one of these is present; a word that is only known at run time may be one.
        no_option: none of these is present for sure.
        values: options that take the next word as their value.
        parameters: handed to `Kind.targets`; `values` are among them.
        captures: what is preserved, a phrase for people; likewise `verify` and `restore`.
        untried: no test has proven it.
        source: `file:line` where it stands.
    """

    id: str
    kind: str
    tier: Tier
    program: tuple[str, ...] = ()
    tool: tuple[str, ...] = ()
    redirect: bool = False
    subcommand: tuple[str, ...] = ()
    any_option: tuple[str, ...] = ()
    no_option: tuple[str, ...] = ()
    values: tuple[str, ...] = ()
    parameters: Mapping[str, Json] = field(default_factory=dict)
    captures: str = ""
    verify: str = ""
    restore: str = ""
    untried: bool = False
    source: str = ""
