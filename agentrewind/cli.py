"""The command line: the table of commands, and the one place where errors become exit codes.

Commands are named by import path and loaded when they are called, so that help is quick and those that
stand above this package can be named without being imported.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TextIO

import click

from agentrewind import __version__
from agentrewind.clock import SystemClock
from agentrewind.commands import exit_codes
from agentrewind.commands.session import Session
from agentrewind.commands.table import CommandTable
from agentrewind.errors import AgentRewindError

COMMANDS = {
    "demo": ("harness_adapters.demo.command:demo", "The whole story offline, with a scripted model."),
    "run": ("agentrewind.commands.run:run", "Run an agent under the layer, or go on with a run."),
    "list": ("agentrewind.commands.list:list_runs", "List runs, newest first."),
    "log": ("agentrewind.commands.log:log", "Show a run's tree of nodes."),
    "show": ("agentrewind.commands.show:show", "Show one node whole."),
    "view": ("agentrewind.commands.view:view", "Look at runs in the browser, or write a run as one page."),
    "diff": (
        "agentrewind.commands.diff:diff",
        "Show what differs between two nodes, or two runs.",
    ),
    "bisect": ("agentrewind.commands.bisect:bisect", "Find the first node after which a check fails."),
    "blame": ("agentrewind.commands.blame:blame", "Show which node last wrote each line of a file."),
    "candidates": (
        "agentrewind.commands.candidates:candidates",
        "Show where the agent could go back to.",
    ),
    "replay": ("agentrewind.commands.replay:replay", "Run a run again with no provider and no tool."),
    "keep": ("agentrewind.commands.keep:keep", "Keep a run in a repository, as a test of the agent's code."),
    "fork": ("agentrewind.commands.fork:fork", "Go on live from a node, with something changed."),
    "shell": ("agentrewind.commands.shell:shell", "Open a shell in a copy of the workspace at a node."),
    "restore": ("agentrewind.commands.restore:restore", "Bring back the files of a node."),
    "undo": ("agentrewind.commands.undo:undo", "Take back the last restore or rewind."),
    "backup": ("agentrewind.commands.backup:backup", "Preserve external state before calls, and restore it."),
    "export": ("agentrewind.commands.export:export", "Write a run into a file, to carry or for other tools."),
    "import": ("agentrewind.commands.import_:import_", "Bring a run that was exported into the store."),
    "gc": ("agentrewind.commands.gc:gc", "Make room: drop what no kept run names."),
    "verify": ("agentrewind.commands.verify:verify", "Check that logs and snapshots are whole."),
    "doctor": ("agentrewind.commands.doctor:doctor", "Check what this machine has, and say what to install."),
}
"""Name, where it is, and its short help, which stands here so that `--help` imports none of them."""


_CANNOT_WRITE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF)


@click.group(
    cls=CommandTable,
    table=COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Exit codes: 0 done, 1 the job failed, 2 wrong usage, 3 divergence, 4 damaged or missing data, "
    "5 refused to protect data.",
)
@click.version_option(__version__, prog_name="agentrewind")
@click.pass_context
def agentrewind(context: click.Context) -> None:
    """A runtime layer around a coding agent that lets it go back.

    RUN is a run's id, a unique beginning of one, or `last`. NODE is a record_uid as `log` shows it, and
    means the workspace before that node ran. Runs are kept in $AGENTREWIND_HOME (default:
    $XDG_STATE_HOME/agentrewind).
    """
    environment = dict(os.environ)
    if environment.get("NO_COLOR"):
        context.color = False
    context.obj = Session(environment=environment, directory=_current_directory(), clock=SystemClock())


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and leave with its exit code; errors are told in one line, never a traceback."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    for stream in (sys.stdout, sys.stderr):
        # what a locale cannot show is better shown escaped than not at all
        if stream is not None and hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    sys.exit(_run(given))


def _run(given: Sequence[str]) -> int:
    as_json = "--json" in given[: given.index("--")] if "--" in given else "--json" in given
    try:
        code = _invoke(given, as_json=as_json)
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
    except BrokenPipeError:
        _swallow_output()
        return exit_codes.CLOSED_PIPE
    except OSError as error:
        return _refused_by_system(error, as_json=as_json)
    return code


def _invoke(given: Sequence[str], *, as_json: bool) -> int:
    try:
        code = agentrewind.main(given, prog_name="agentrewind", standalone_mode=False)
    except AgentRewindError as error:
        return _tell(error, str(error), error.exit_code, as_json=as_json)
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
        return error.exit_code
    except click.ClickException as error:
        usage = error.ctx.get_usage() if isinstance(error, click.UsageError) and error.ctx else ""
        if usage:
            click.echo(usage, err=True)
        return _tell(error, error.format_message(), error.exit_code, as_json=as_json)
    except SystemExit as error:
        # click ends so by itself when the reader of the output is gone
        raise BrokenPipeError from error
    except (click.Abort, KeyboardInterrupt):
        click.echo("interrupted", err=True)
        return exit_codes.INTERRUPTED
    return code if isinstance(code, int) else 0


def _tell(error: Exception, message: str, code: int, *, as_json: bool) -> int:
    from agentrewind.commands.output import emit
    from agentrewind.display_text import printable

    click.echo(f"error: {printable(message)}", err=True)
    if as_json:
        emit({"error": {"type": type(error).__name__, "message": message}})
    return code


def _refused_by_system(error: OSError, *, as_json: bool) -> int:
    """What failed is a file with a name, or the output: the store has errors of its own."""
    reason = error.strerror or str(error)
    if error.filename is None and error.errno in _CANNOT_WRITE:
        _swallow_output(sys.stdout)
        with suppress(OSError):
            _tell(error, f"the output cannot be written: {reason}", 1, as_json=False)
        return 1
    return _tell(error, f"{error.filename or 'the system refused'}: {reason}", 1, as_json=as_json)


def _swallow_output(*streams: TextIO | None) -> None:
    """Let what is still buffered go nowhere, so that the interpreter ends in peace; both streams if none."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in streams or (sys.stdout, sys.stderr):
        if stream is not None:
            os.dup2(nowhere, stream.fileno())


def _current_directory() -> Path:
    try:
        return Path.cwd()
    except FileNotFoundError:
        return Path("/")


if __name__ == "__main__":
    main()
