"""`agentrewind replay`: the current path again, with no provider and no tool."""

from __future__ import annotations

import click

from agentrewind.commands.output import counted, emit, json_option, say
from agentrewind.commands.session import Session


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
@json_option
@click.pass_context
def replay(
    context: click.Context, /, *, run: str, until: str | None, on_divergence: str, as_json: bool
) -> None:
    """Run the current path again, every call answered from the log.

    The harness works in a scratch copy that it sees at the recorded path; neither the workspace nor the log
    is touched. Exit code 3 where the harness asks for something else than the log holds.
    """
    session = context.find_object(Session)
    assert session is not None
    from agentrewind.replayer import OnDivergence
    from agentrewind.replaying import replay_run

    found = replay_run(
        session.open_run(run),
        home=session.home,
        environment=session.environment,
        until=until,
        on_divergence=OnDivergence(on_divergence),
    )
    if as_json:
        emit(found.to_json())
    else:
        where = f", stopped before {found.reached}" if found.reached else ""
        say(f"{counted(found.served, 'call')} served from the log, none made{where}")
        for warning in found.warnings:
            say(f"  by position: {warning}", style="note")
        if found.divergence is not None:
            say(str(found.divergence), style="bad")
    context.exit(found.divergence.exit_code if found.divergence is not None else 0)
