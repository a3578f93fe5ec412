"""`agentrewind fork`: go on live from a node, in a copy of the workspace or, as a rewind, in place."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from agentrewind.commands.output import emit, say
from agentrewind.commands.running import document, see_through, tell_end, tell_trouble
from agentrewind.commands.session import Session
from agentrewind.errors import UsageError

if TYPE_CHECKING:
    from agentrewind.outcome import RunResult
    from agentrewind.run_store import Run
    from agentrewind.supervise import Surroundings


@click.command()
@click.argument("run")
@click.option("--at", "node", required=True, metavar="NODE", help="The answer of the model to go on from.")
@click.option("--memory", metavar="TEXT|@FILE", help="A note that the agent is given there.")
@click.option(
    "--answer",
    metavar="TEXT|@FILE",
    help="What the model is taken to have answered: text, or JSON with content and tool_calls.",
)
@click.option("--model", metavar="M", help="Ask another model from there on.")
@click.option("--system-prompt", metavar="TEXT|@FILE", help="The agent's instructions from there on.")
@click.option("--config", multiple=True, metavar="SPEC", help="A setting of the harness; may be repeated.")
@click.option(
    "--in-place", is_flag=True, help="In the run and its workspace themselves; with --memory alone."
)
@click.option(
    "--outside",
    type=click.Choice(["stop", "revert"]),
    default="stop",
    show_default=True,
    help="With --in-place: what to do with changes that no call of the agent made.",
)
@click.option("--prepare", is_flag=True, help="Make the fork and its copy, and start nothing.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def fork(
    context: click.Context,
    /,
    run: str,
    node: str,
    *,
    in_place: bool,
    prepare: bool,
    as_json: bool,
    **given: Any,
) -> None:
    """Go on live from NODE of RUN, with something changed.

    The fork is a run of its own, which names its parent. Its agent works in a copy of the workspace as it
    was at NODE, and sees it at the recorded path: your files are not touched. State outside the workspace is
    as it is now. What is changed (model, prompt, settings) is not compared when the log is replayed.

    With --in-place it is a rewind by you: the run itself goes back to NODE, its workspace too, and goes on.
    """
    session: Session = context.obj
    found = session.open_run(run)
    if in_place:
        _in_place(context, found, node, given, as_json=as_json)
        return
    made = _make(found, node, given, session)
    if prepare:
        _tell_prepared(made, as_json=as_json)
        return
    if not as_json:
        say(f"fork of {found.run_id} at {node}: run {made.run_id}", style="strong")
        say(f"its files are in {made.directory / 'copy'}")
    context.exit(_resume_inside(made, session, as_json=as_json))


def _make(found: Run, node: str, given: dict[str, Any], session: Session) -> Run:
    from agentrewind.fork_answer import read_answer
    from agentrewind.forking import Edits, make_fork

    answer = _text(given["answer"], "--answer", session.directory)
    edits = Edits(
        memory=_text(given["memory"], "--memory", session.directory) or "",
        answer=None if answer is None else read_answer(answer),
        model=given["model"],
        system_prompt=_text(given["system_prompt"], "--system-prompt", session.directory),
        settings={"config": list(given["config"])} if given["config"] else {},
    )
    return make_fork(found, node, edits, home=session.home, clock=session.clock)


def _in_place(context: click.Context, found: Run, node: str, given: dict[str, Any], *, as_json: bool) -> None:
    from agentrewind.commands.restore import machine_of
    from agentrewind.copied_runs import needs_enclosure
    from agentrewind.person_rewind import ask_to_rewind

    session: Session = context.obj
    foreign = [name for name in ("answer", "model", "system_prompt", "config") if given[name]]
    if foreign:
        option = foreign[0].replace("_", "-")
        raise UsageError(f"--{option} makes another run; it cannot be given with --in-place")
    memory = _text(given["memory"], "--memory", session.directory) or ""
    ask_to_rewind(
        found, node, memory=memory, revert=given["outside"] == "revert", machine=machine_of(session)
    )
    if needs_enclosure(found, session.environment):
        context.exit(_resume_inside(found, session, as_json=as_json))

    def begin(around: Surroundings) -> RunResult:
        from agentrewind.runs import resume_run

        return resume_run(found.run_id, around)

    run, result = see_through(session, begin, as_json=as_json)
    if not as_json:
        tell_end(run, result)
    tell_trouble(run, result)
    if as_json:
        emit(document(run, result))
    context.exit(result.exit_code)


def _resume_inside(run: Run, session: Session, *, as_json: bool) -> int:
    """Go on with a run where its own copy is seen; the exit code of that."""
    from agentrewind.copied_runs import go_inside

    arguments = ["run", "--resume", str(run.run_id), *(["--json"] if as_json else [])]
    return go_inside(run, arguments, home=session.home, environment=session.environment)


def _tell_prepared(made: Run, *, as_json: bool) -> None:
    copy = str(made.directory / "copy")
    if as_json:
        emit({"run_id": made.run_id, "state": "prepared", "copy": copy})
        return
    say(f"run {made.run_id}", style="strong")
    say(f"its files are in {copy}")
    say(f"start it with: agentrewind run --resume {made.run_id}")


def _text(value: str | None, option: str, directory: Path) -> str | None:
    """The text itself, or that of the file that `@FILE` names."""
    if value is None or not value.startswith("@"):
        return value
    path = directory / value[1:]
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise UsageError(f"{option} {value}: {path} cannot be read as UTF-8 text ({error})") from error
