"""`agentrewind undo`: back to before the last restore or rewind."""

from __future__ import annotations

import click

from agentrewind.commands.output import emit, json_option, say
from agentrewind.commands.restore import machine_of, tell_done
from agentrewind.commands.session import Session


@click.command("undo")
@click.argument("run", metavar="RUN")
@click.option(
    "--outside",
    type=click.Choice(["keep", "revert"]),
    help="What to do with changes that no tool call made. [default: stop there]",
)
@json_option
@click.pass_obj
def undo(session: Session, *, run: str, outside: str | None, as_json: bool) -> None:
    """Take back the last restore or rewind.

    Undoing a rewind brings the files back and makes the branch that it abandoned the current one again;
    `run --resume` goes on there. A second undo takes the first one back.
    """
    from agentrewind.manual import Outside
    from agentrewind.manual import undo as take_back

    found = session.open_run(run)
    done = take_back(found, outside=Outside(outside or "stop"), machine=machine_of(session))
    if as_json:
        emit(done.to_json())
        return
    tell_done(done, f"took back {done.undone}")
    say(f"agentrewind undo {found.run_id} takes this back in turn")
