"""`agentrewind replay`: the current path again, with no provider and no tool."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from agentrewind.commands.output import counted, emit, json_option, say
from agentrewind.commands.session import Session
from agentrewind.display_text import one_line

if TYPE_CHECKING:
    from agentrewind.replay_outcome import Replay


@click.command("replay")
@click.argument("run", metavar="RUN")
@click.option("--until", metavar="NODE", help="Stop before this node of the current path.")
@click.option(
    "--on-divergence",
    type=click.Choice(["stop", "position"]),
    default="stop",
    show_default=True,
    help="When a request differs from the log: stop, or go on by position.",
)
@click.option("--pdb", "debug_at", metavar="NODE", help="Open the debugger in the harness at this node.")
@json_option
@click.pass_context
def replay(context: click.Context, /, *, run: str, as_json: bool, **given: Any) -> None:
    """Run the current path again, every call answered from the log.

    The harness works in a scratch copy that it sees at the recorded path; neither the workspace nor the log
    is touched. Exit code 3 where the harness asks for something else than the log holds. With --pdb the
    harness has your terminal, and Python's debugger opens at its own call just before NODE is served.
    """
    session = context.find_object(Session)
    assert session is not None
    from agentrewind.replayer import OnDivergence
    from agentrewind.replaying import Terminal, replay_run

    debug_at = given["debug_at"]
    opened = session.open_run(run)
    found = replay_run(
        opened,
        home=session.home,
        environment=session.environment,
        until=given["until"],
        on_divergence=OnDivergence(given["on_divergence"]),
        terminal=None if debug_at is None else Terminal(node=debug_at, plain_output=as_json),
    )
    if as_json:
        emit(found.to_json())
    else:
        _tell(opened.run_id, found, debug_at)
    context.exit(found.divergence.exit_code if found.divergence is not None else 0)


def _tell(run_id: str, found: Replay, debug_at: str | None) -> None:
    where = f", stopped before {found.reached}" if found.reached else ""
    say(f"{counted(found.served, 'call')} served from the log, none made{where}")
    if found.nodes:
        say(f"  {ranges(found.nodes)}", style="faint")
    if found.left is not None:
        say(f"left in the debugger at {found.left}", style="note")
    elif debug_at is not None and not found.opened:
        say(f"the debugger never opened: {debug_at} was not asked for", style="note")
    for remark in _remarks(found):
        say(remark, style="note")
    if found.divergence is not None:
        say(str(found.divergence), style="bad")
        if found.unserved:
            say(f"  never asked for: {ranges(found.unserved)}", style="faint")
        if uid := found.divergence.record_uid:
            say(f"  agentrewind show {run_id} {uid} --full", style="faint")


def _remarks(found: Replay) -> list[str]:
    texts = [f"  by position: {warning}" for warning in found.warnings]
    if found.error is not None:
        texts.append(f"at the end of the log the harness ended with {one_line(found.error)}")
    return texts


def ranges(uids: Sequence[str]) -> str:
    """Ids on one line, those that follow each other as a range.

    >>> ranges(["rec_000001", "rec_000002", "rec_000003", "rec_000007"])
    'rec_000001 to rec_000003, rec_000007'
    """
    from agentrewind.lineage import uid_number

    groups: list[list[str]] = []
    for uid in uids:
        last = uid_number(groups[-1][-1]) if groups else None
        if last is not None and uid_number(uid) == last + 1:
            groups[-1].append(uid)
        else:
            groups.append([uid])
    return ", ".join(
        group[0] if len(group) == 1 else f"{group[0]} {'to' if len(group) > 2 else 'and'} {group[-1]}"
        for group in groups
    )
