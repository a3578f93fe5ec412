"""The command line `runner`: the table of its commands, and where errors become exit codes."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from agentrewind import __version__
from agentrewind.clock import SystemClock
from agentrewind.commands import exit_codes
from agentrewind.commands.table import CommandTable
from agentrewind.display_text import printable
from agentrewind.errors import AgentRewindError
from mettlebench.errors import MettleBenchError
from runner.commands.session import Session

COMMANDS = {
    "run": ("runner.commands.run:run", "Run one agent on one task."),
    "batch": ("runner.commands.batch:batch", "Run a whole campaign, or go on with one."),
    "status": ("runner.commands.status:status", "Show how a campaign stands."),
    "cancel": ("runner.commands.status:cancel", "End a campaign, or some of its cells."),
    "report": ("runner.report.command:report", "Write what a campaign found: page, tables, plots."),
    "regrade": ("runner.commands.regrade:regrade", "Judge finished cells again, by their snapshots."),
}
"""Name, where it is, and its short help."""

HIDDEN = {"cell": "runner.commands.cell:cell"}
"""What the runner starts itself."""


@click.group(
    cls=CommandTable,
    table=COMMANDS,
    hidden=HIDDEN,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Exit codes: 0 done, 1 the job failed, 2 wrong usage, 4 damaged or missing data, 5 refused to "
    "protect data.",
)
@click.version_option(__version__, prog_name="runner")
@click.pass_context
def runner(context: click.Context) -> None:
    """Run agents on MettleBench's tasks, one or a whole campaign.

    A cell is one task, model, harness, strategy and run index: TASK/MODEL/HARNESS/STRATEGY/RUN. Each
    finished cell leaves a result.json.
    """
    context.obj = Session(environment=dict(os.environ), directory=Path.cwd(), clock=SystemClock())


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and leave with its exit code; errors are told in one line."""
    sys.exit(_invoke(list(sys.argv[1:] if arguments is None else arguments)))


def _invoke(given: Sequence[str]) -> int:
    try:
        code = runner.main(given, prog_name="runner", standalone_mode=False)
    except (AgentRewindError, MettleBenchError) as error:
        click.echo(f"error: {printable(str(error))}", err=True)
        return error.exit_code
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
        return error.exit_code
    except click.ClickException as error:
        if isinstance(error, click.UsageError) and error.ctx is not None:
            click.echo(error.ctx.get_usage(), err=True)
        click.echo(f"error: {error.format_message()}", err=True)
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        click.echo("interrupted", err=True)
        return exit_codes.INTERRUPTED
    return code if isinstance(code, int) else 0


if __name__ == "__main__":
    main()
