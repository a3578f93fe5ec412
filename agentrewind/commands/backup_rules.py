"""`agentrewind backup rules`: the rules in force, or what is wrong with a file of rules."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from agentrewind.commands.given_path import GivenPath
from agentrewind.commands.output import counted, emit, json_option, say
from agentrewind.commands.session import Session

if TYPE_CHECKING:
    from agentrewind.backup.rules.rule import Rule
    from agentrewind.records import Json


@click.command("rules")
@click.option(
    "--check",
    type=GivenPath(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Check this file instead; problems are named by line, and exit code 2 says that there are some.",
)
@json_option
@click.pass_obj
def rules(session: Session, *, check: Path | None, as_json: bool) -> None:
    """List the rules in force: the user's ($AGENTREWIND_HOME/backup/rules.toml), then those that come along.

    The first rule that matches a simple command counts, those of tier rewrite before pair before snapshot.
    """
    from agentrewind.backup.rules.loading import load_rules, read_rules

    if check is not None:
        found = read_rules(session.directory / check)
        if as_json:
            emit([_document(rule) for rule in found])
        else:
            say(f"{check}: {counted(len(found), 'rule')}, all sound")
        return
    found = load_rules(session.home).all
    if as_json:
        emit([_document(rule) for rule in found])
        return
    for rule in found:
        _tell(rule)


def _document(rule: Rule) -> dict[str, Json]:
    return {
        "id": rule.id,
        "kind": rule.kind,
        "tier": rule.tier.value,
        "program": list(rule.program),
        "tool": list(rule.tool),
        "redirect": rule.redirect,
        "subcommand": list(rule.subcommand),
        "any_option": list(rule.any_option),
        "no_option": list(rule.no_option),
        "values": list(rule.values),
        "parameters": dict(rule.parameters),
        "captures": rule.captures,
        "verify": rule.verify,
        "restore": rule.restore,
        "untried": rule.untried,
        "source": rule.source,
    }


def _tell(rule: Rule) -> None:
    what = ", ".join(rule.program or rule.tool) or "redirections"
    words = " or ".join(rule.subcommand)
    options = f" with {' or '.join(rule.any_option)}" if rule.any_option else ""
    without = f" without {' or '.join(rule.no_option)}" if rule.no_option else ""
    untried = "  (untried)" if rule.untried else ""
    say(f"{rule.id}  {rule.tier.value}  {rule.kind}{untried}", style="strong")
    say(f"    for       {what} {words}{options}{without}".rstrip())
    say(f"    captures  {rule.captures}")
    say(f"    restore   {rule.restore}")
    say(f"    from      {rule.source}", style="faint")
