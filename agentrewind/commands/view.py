"""`agentrewind view`: a run in the browser, or as one page of HTML."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from agentrewind.commands.given_path import GivenPath
from agentrewind.commands.output import emit, json_option, say, size
from agentrewind.commands.session import Session
from agentrewind.errors import UsageError

if TYPE_CHECKING:
    from agentrewind.view.actions import Forking
    from agentrewind.view.server import Opened

_SERVER = ("starlette", "uvicorn", "jinja2")
_PAGE = ("jinja2",)


@click.command("view")
@click.argument("run", metavar="[RUN]", required=False)
@click.option("--node", metavar="NODE", help="Begin at this node.")
@click.option(
    "--html", metavar="FILE", type=GivenPath(path_type=Path), help="Write one page instead of serving."
)
@click.option(
    "--port", type=click.IntRange(0, 65535), default=0, help="Serve on this port. [default: a free one]"
)
@click.option("--no-browser", is_flag=True, help="Only print the address.")
@json_option
@click.pass_obj
def view(session: Session, /, *, run: str | None, as_json: bool, **given: Any) -> None:
    """Look at runs in the browser, while they go on as well.

    The viewer listens on this machine only, under an address that holds a secret; Ctrl-C ends it. With
    --html it writes one page without any script that can be sent to others: what looks like a credential is
    replaced in it, and files are named but not contained.
    """
    html, port, node = given["html"], given["port"], given["node"]
    _check_extra(_PAGE if html else _SERVER)
    found = session.open_run(run) if run else None
    if found is None and (html or node):
        raise UsageError("name the run: `agentrewind view RUN`, or `last` for the newest")
    if found is not None and node:
        found.timeline().node(node)
    if html:
        assert found is not None
        if port or node or given["no_browser"]:
            raise UsageError("--html writes a file; --port, --node and --no-browser mean nothing with it")
        from agentrewind.view.page import write_page

        written = write_page(found, session.home, session.directory / html, made_at=session.clock.now())
        if as_json:
            emit({"file": str(written.path), "bytes": written.size, "nodes": written.nodes})
        else:
            say(f"wrote {written.path}: {written.nodes} nodes, {size(written.size)}")
        return
    from agentrewind.commands.restore import machine_of
    from agentrewind.view.server import Settings, serve

    settings = Settings(
        machine=machine_of(session),
        directory=session.directory,
        run_id=found.run_id if found else None,
        node=node,
        port=port,
        browser=not given["no_browser"],
        forks=_has_fork(),
        forking=_forking(session),
    )
    serve(settings, tell=lambda opened: _tell(opened, wanted=settings.browser, as_json=as_json))


def _tell(opened: Opened, *, wanted: bool, as_json: bool) -> None:
    if as_json:
        emit({"url": opened.url, "port": opened.port})
        return
    if wanted and not opened.browser:
        say("no browser was found; open this address yourself:", style="note")
    say(opened.url, style="strong")
    say(
        "The address holds a secret: whoever has it can read the runs. Ctrl-C ends the viewer.", style="faint"
    )


def _forking(session: Session) -> Forking | None:
    if not _has_fork():
        return None
    from agentrewind.view.forks import Forks

    return Forks(home=session.home, clock=session.clock)


def _has_fork() -> bool:
    context = click.get_current_context().find_root()
    group = context.command
    return isinstance(group, click.Group) and "fork" in group.list_commands(context)


def _check_extra(names: tuple[str, ...]) -> None:
    missing = [name for name in names if find_spec(name) is None]
    if missing:
        raise UsageError(
            f"the viewer needs {', '.join(missing)}, not installed here: pip install 'agentrewind[view]'"
        )
