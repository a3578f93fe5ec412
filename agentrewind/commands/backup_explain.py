"""`agentrewind backup explain`: what would be preserved before a call, and why, without running anything."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click
import orjson

from agentrewind.commands.given_path import GivenPath
from agentrewind.commands.output import counted, emit, json_option, say
from agentrewind.commands.session import Session
from agentrewind.display_text import file_name
from agentrewind.errors import UsageError

if TYPE_CHECKING:
    from agentrewind.backup.values import Decision, ToolCall
    from agentrewind.records import Json


@click.command("explain")
@click.argument("command", metavar="COMMAND")
@click.option(
    "--tool", metavar="NAME", help="COMMAND is the JSON of this tool's arguments, not a shell command."
)
@click.option(
    "--cwd", type=GivenPath(path_type=Path), metavar="DIR", help="Where the call runs. Default: here."
)
@click.option(
    "--workspace",
    type=GivenPath(path_type=Path),
    metavar="DIR",
    help="The directory that snapshots cover. Default: none, so that every file counts as outside.",
)
@json_option
@click.pass_obj
def explain(
    session: Session,
    *,
    command: str,
    tool: str | None,
    cwd: Path | None,
    workspace: Path | None,
    as_json: bool,
) -> None:
    """Say whether COMMAND reads, and otherwise what would be preserved before it and how that comes back.

    Nothing is run, preserved or changed; tools may be asked what the command would touch.
    """
    from agentrewind.backup.decide import decide
    from agentrewind.backup.kinds.table import kind_of
    from agentrewind.backup.masking import credentials_in
    from agentrewind.backup.rules.loading import load_rules
    from agentrewind.backup.values import Context

    here = session.directory / (cwd or ".")
    context = Context(
        cwd=here,
        env=session.environment,
        home=session.user_home or Path("/"),
        workspace=(session.directory / workspace).resolve() if workspace else None,
    )
    call = _call(command, tool)
    decision = decide(call, context, load_rules(session.home))
    phrases = [kind_of(target.kind).describe(target) for target in decision.targets]
    if as_json:
        emit({**_document(decision, phrases), "masked": credentials_in(call.arguments)})
        return
    _tell(decision, phrases)
    if masked := credentials_in(call.arguments):
        say(
            f"masks     {counted(masked, 'credential')} of the call, before a model would see it",
            style="note",
        )


def _call(command: str, tool: str | None) -> ToolCall:
    from agentrewind.backup.values import ToolCall

    if tool is None:
        return ToolCall(name="bash", arguments={"command": command})
    try:
        return ToolCall(name=tool, arguments=orjson.loads(command))
    except orjson.JSONDecodeError as error:
        raise UsageError(f"the arguments of {tool} are not JSON: {error}") from error


def _document(decision: Decision, phrases: list[tuple[str, str]]) -> dict[str, Json]:
    targets: list[Json] = [{"kind": target.kind, "name": target.name} for target in decision.targets]
    return {
        "read_only": decision.read_only,
        "tier": decision.tier.value,
        "rule": decision.rules[0] if decision.rules else None,
        "rules": list(decision.rules),
        "targets": targets,
        "captures": [captured for captured, _ in phrases],
        "restore": [restored for _, restored in phrases],
        "uncovered": list(decision.uncovered),
        "untried": list(decision.untried),
        "reason": decision.reason,
    }


def _tell(decision: Decision, phrases: list[tuple[str, str]]) -> None:
    say(f"tier      {decision.tier.value}", style="strong")
    say(f"reads     {'yes' if decision.read_only else 'no'}")
    if decision.rules:
        say(f"rules     {file_name(', '.join(decision.rules))}")
    for captured, restored in phrases:
        say(f"preserves {file_name(captured)}")
        say(f"restores  {file_name(restored)}")
    for each in decision.uncovered:
        say(f"uncovered {file_name(each)}", style="note")
    for each in decision.untried:
        say(f"untried   no test has proven the rule {file_name(each)}", style="note")
    say(f"because   {file_name(decision.reason)}")
