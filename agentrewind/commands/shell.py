"""`agentrewind shell`: a shell in a scratch copy of the workspace at a node."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

import click

from agentrewind.commands.output import emit, json_option, say
from agentrewind.commands.session import Session
from agentrewind.errors import UsageError


@click.command("shell")
@click.argument("run", metavar="RUN")
@click.argument("node", metavar="NODE")
@click.option("--after", is_flag=True, help="The state after the node instead of before it.")
@click.option("--command", "-c", metavar="TEXT", help="Run this instead of an interactive shell.")
@json_option
@click.pass_context
def shell(
    context: click.Context, /, *, run: str, node: str, after: bool, command: str | None, as_json: bool
) -> None:
    """Open a shell where the workspace is as it was at NODE.

    It is a copy, seen at the recorded path where the system allows that, and gone when the shell ends. Your
    files are not touched.
    """
    from agentrewind.copy_enclosure import enclosed, obstacle
    from agentrewind.manual_history import state_at
    from agentrewind.run_files import declared_root, open_snapshots
    from agentrewind.workspace.restore import restore_into

    session: Session = context.obj
    if as_json and command is None:
        raise UsageError("--json tells what a command gave; it needs --command")
    timeline = session.open_run(run).timeline()
    commit = state_at(timeline, node, after=after)
    root = declared_root(timeline)
    program = session.environment.get("SHELL") or "/bin/sh"
    words = ["/bin/sh", "-c", command] if command is not None else [program]
    with tempfile.TemporaryDirectory(prefix="agentrewind-shell-", ignore_cleanup_errors=True) as folder:
        scratch = Path(folder).resolve() / "workspace"
        with open_snapshots(timeline, session.home) as store:
            restore_into(store, commit, scratch)
        there = not obstacle(root)
        if command is None:
            where = f"at {root}" if there else f"in {scratch}, since this system cannot show it at {root}"
            say(f"the files at {node} are {where}; they go when this shell ends")
        done = subprocess.run(
            enclosed(scratch, root, words, online=True) if there else words,
            cwd=None if there else scratch,
            env={**session.environment, "AGENTREWIND_SHELL": f"{timeline.header.run_id} {node}"},
            stdout=subprocess.PIPE if as_json else None,
            stderr=subprocess.STDOUT if as_json else None,
            check=False,
        )
    if as_json:
        output = done.stdout.decode("utf-8", "backslashreplace")
        emit({"exit_code": done.returncode, "output": output, "at_recorded_path": there})
    context.exit(done.returncode if done.returncode >= 0 else 128 - done.returncode)
