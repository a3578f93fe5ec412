"""`agentrewind doctor`: is what AgentRewind needs here, and what is to be installed where it is not."""

from __future__ import annotations

import click

from agentrewind.commands.output import emit, json_option, say
from agentrewind.commands.session import Session


@click.command("doctor")
@json_option
@click.pass_context
def doctor(context: click.Context, /, *, as_json: bool) -> None:
    """Check git, the store, the file system, limits, clients and harnesses.

    Ends with 1 where something is missing that every run needs; what only some runs need is named, with what
    installs it.
    """
    from agentrewind.health import check_up

    session: Session = context.obj
    findings = check_up(home=session.home, environment=session.environment)
    if as_json:
        emit([finding.to_json() for finding in findings])
    else:
        for finding in findings:
            mark = {"good": "ok", "note": "--", "bad": "!!"}[finding.state]
            style = {"good": "", "note": "note", "bad": "bad"}[finding.state]
            say(f"{mark}  {finding.what}: {finding.found}", style=style)
            if finding.advice:
                say(f"      {finding.advice}", style=style)
    context.exit(1 if any(finding.state == "bad" for finding in findings) else 0)
