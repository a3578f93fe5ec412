"""Sees a run through for `run` and `demo`: shows it while it goes on, and tells at the end how it stands."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace

import click

from agentrewind.commands import exit_codes
from agentrewind.commands.output import counted, say
from agentrewind.commands.session import Session
from agentrewind.display import Follower, make_display
from agentrewind.display_story import moved
from agentrewind.display_text import file_name, one_line, printable, shorten
from agentrewind.errors import AgentRewindError
from agentrewind.outcome import RunResult
from agentrewind.records import Json, JsonObject, Restored, RewindDone
from agentrewind.run_store import Run
from agentrewind.starting import Start
from agentrewind.supervise import Surroundings

_SHOWN_PATHS = 8
_SHOWN_DETAIL = 600


@dataclass(slots=True)
class Watched:
    """A run under way: its result once it has one, and where it is kept."""

    runs: list[Run] = field(default_factory=list)

    @property
    def run(self) -> Run | None:
        """The run, None while there is none yet."""
        return self.runs[0] if self.runs else None


def see_through(
    session: Session,
    begin: Callable[[Surroundings], RunResult],
    *,
    as_json: bool,
    environment: Mapping[str, str] | None = None,
    start: str = "spawn",
) -> tuple[Run, RunResult]:
    """Run `begin` with a display; an error after the run exists says how to go on with it.

    With `as_json` nothing goes to standard output, and progress to standard error only if that is a
    terminal. A run that Ctrl-C stopped has the exit code of one that was interrupted.
    """
    watched = Watched()
    with _resumable(watched), contextlib.ExitStack() as stack:
        signals = stack.enter_context(_signals_seen())
        stream = sys.stderr if as_json else sys.stdout
        follower: Follower | None = None
        if stream is not None and (not as_json or stream.isatty()):
            follower = stack.enter_context(Follower(make_display(stream)))

        def created(run: Run) -> None:
            watched.runs.append(run)
            if not as_json:
                with contextlib.suppress(OSError):  # a run goes on though nobody can read of it
                    say(f"run {run.run_id}", style="strong")
            if follower is not None:
                follower.follow(run)

        result = begin(
            Surroundings(
                home=session.home,
                user_home=session.user_home,
                environment=session.environment if environment is None else environment,
                clock=session.clock,
                tell=lambda text: click.echo(printable(text), err=True),
                on_created=created,
                start=Start(start),
            )
        )
        if result.state == "stopped" and signal.SIGINT in signals():
            result = replace(result, exit_code=exit_codes.INTERRUPTED)
    assert watched.run is not None
    return watched.run, result


@contextlib.contextmanager
def _signals_seen() -> Iterator[Callable[[], bytes]]:
    """Tells which signals came so far, by number, whoever handled them.

    The supervisor hands a Ctrl-C on to the agent, so none is raised here.
    """
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    os.set_blocking(writing, False)
    before = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)

    def seen() -> bytes:
        try:
            return os.read(reading, 4096)
        except BlockingIOError:
            return b""

    try:
        yield seen
    finally:
        signal.set_wakeup_fd(before)
        os.close(reading)
        os.close(writing)


def document(run: Run, result: RunResult) -> JsonObject:
    """What `run --json` and `demo --json` print."""
    return {
        "run_id": result.run_id,
        "state": result.state,
        "accepted": result.accepted,
        "rewinds": result.rewinds,
        "nodes": result.nodes,
        "submissions": result.submissions,
        "segments": result.segments,
        "detail": result.detail,
        "log": str(run.directory),
    }


def tell_end(run: Run, result: RunResult) -> None:
    """For people: how the run ended, what was put back, where the log is and how to look at it."""
    say()
    say(
        f"{result.state}: {shorten(result.detail, _SHOWN_DETAIL)}", style="good" if result.accepted else "bad"
    )
    figures = [
        counted(result.nodes, "node"),
        counted(result.rewinds, "rewind"),
        counted(result.submissions, "submission"),
        counted(result.segments, "segment"),
    ]
    say(f"  figures   {', '.join(figures)}")
    for line in _put_back(run):
        say(f"  put back  {line}")
    say(f"  log       {run.directory}")
    say(f"  look      agentrewind log {run.run_id}")
    say(f"            agentrewind candidates {run.run_id}")
    if result.rewinds:
        say(f"            agentrewind undo {run.run_id}")


def tell_trouble(run: Run, result: RunResult) -> None:
    """On standard error, for a run that ended for no reason of its own: why, and how to go on."""
    if result.state not in ("error", "stopped"):
        return
    say_error(f"{'error' if result.state == 'error' else 'stopped'}: {shorten(result.detail, _SHOWN_DETAIL)}")
    _tell_resume(run)


def say_error(text: str) -> None:
    """One line on standard error."""
    click.echo(one_line(text), err=True)


@contextlib.contextmanager
def _resumable(watched: Watched) -> Iterator[None]:
    try:
        yield
    except (AgentRewindError, KeyboardInterrupt):
        if watched.run is not None:
            _tell_resume(watched.run)
        raise


def _tell_resume(run: Run) -> None:
    say_error(f"the run is kept; go on with: agentrewind run --resume {run.run_id}")


def _put_back(run: Run) -> Iterator[str]:
    timeline = run.timeline()
    for number in timeline.segments:
        for event in timeline.events(number):
            if isinstance(event, RewindDone):
                yield f"by the rewind to {event.target}: {_report(event.report)}"
            elif isinstance(event, Restored):
                yield f"by a restore ({event.by}): {_report(event.report)}"


def _report(report: Mapping[str, Json]) -> str:
    paths: list[str] = []
    for name in ("created", "modified", "deleted"):
        found = report.get(name)
        paths += [each for each in found if isinstance(each, str)] if isinstance(found, list) else []
    paths.sort(key=lambda path: path.startswith(".git/"))  # what a person knows by name comes first
    shown = ", ".join(map(file_name, paths[:_SHOWN_PATHS])) + (" …" if len(paths) > _SHOWN_PATHS else "")
    checked = ", verified" if report.get("verified") is True else ""
    return f"{moved(report)}{checked}" + (f" ({shown})" if shown else "") + _outside(report)


def _outside(report: Mapping[str, Json]) -> str:
    """What became of state outside the workspace."""
    found = report.get("external")
    external = [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []
    text = ""
    for state in dict.fromkeys(each.get("state") for each in external):
        names = [
            file_name(str(each.get("what")))
            for each in external
            if each.get("state") == state and each.get("kind")
        ]
        name = "left as it is" if state == "preserved" else state
        text += f"; outside the workspace {name!s}: {', '.join(names[:_SHOWN_PATHS])}"
    return text
