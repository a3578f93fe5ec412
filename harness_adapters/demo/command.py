"""`agentrewind demo`: the whole story in a fresh workspace, with a scripted model or a real one."""

from __future__ import annotations

import shlex
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import click

from agentrewind.commands.given_path import GivenPath
from agentrewind.commands.harnesses import HARNESS_HELP
from agentrewind.commands.output import emit, json_option, say
from agentrewind.commands.session import Session
from agentrewind.errors import UsageError

if TYPE_CHECKING:
    from agentrewind.options import RunOptions
    from agentrewind.outcome import RunResult
    from agentrewind.records import JsonObject
    from agentrewind.workspace.policy import Policy

SCRIPTED = "openai/scripted-demo"
HARNESS = "mini-swe-agent"


@click.command("demo")
@click.option(
    "--story",
    type=click.Choice(["release", "external"]),
    default="release",
    show_default=True,
    help="What is lost: work in the workspace, or a database column and files outside of it.",
)
@click.option(
    "--strategy",
    type=click.Choice(["rewind", "continue"]),
    default="rewind",
    show_default=True,
    help="The agent with rewind, or the same agent without it, which cannot succeed.",
)
@click.option("--harness", metavar="NAME", default=HARNESS, show_default=True, help=HARNESS_HELP)
@click.option("--model", metavar="NAME", help="A real model of a real provider instead of the scripted one.")
@click.option(
    "--workspace",
    metavar="DIR",
    type=GivenPath(path_type=Path),
    help="Build the workspace here; must be empty or absent. [default: a fresh temporary folder]",
)
@json_option
@click.pass_context
def demo(
    context: click.Context,
    /,
    *,
    story: str,
    strategy: str,
    harness: str,
    model: str | None,
    workspace: Path | None,
    as_json: bool,
) -> None:
    """The whole story offline, with a scripted model.

    An agent prepares a release, destroys something that its tools cannot bring back, is rejected, looks
    where it could go back to, rewinds with a note to itself, and finishes. Harness, shell, git, database
    and check are real; the model's answers are scripted and cost nothing. --model NAME gives the same
    assignment to a real model.

    --story external: the agent drops a column of a PostgreSQL database and deletes a folder, both outside its
    workspace, and the rewind brings both back. PostgreSQL has to be installed; the demo starts its own.
    """
    session = context.find_object(Session)
    assert session is not None
    from agentrewind.adapters import check_harness
    from agentrewind.commands.running import document, see_through, tell_end, tell_trouble
    from agentrewind.runs import NewRun, start_run
    from agentrewind.supervise import Surroundings
    from harness_adapters.demo import build_workspace

    check_harness(harness)
    root = _root(session, workspace)
    if story == "external":
        if strategy != "rewind":
            raise UsageError("--story external is told with --strategy rewind only")
        from harness_adapters.demo.external_run import tell_external

        context.exit(tell_external(session, root, harness=harness, model=model, as_json=as_json))
    build_workspace(root)
    new = NewRun(
        root=root,
        harness=harness,
        model=model or SCRIPTED,
        options=_options(strategy, scripted=model is None),
        policy=_policy(),
    )
    if not as_json:
        say(_opening(strategy, model, root))

    def begin(around: Surroundings) -> RunResult:
        return start_run(new, around)

    with (
        scripted_model(strategy, session.environment)
        if model is None
        else nullcontext(session.environment) as environment
    ):
        run, result = see_through(session, begin, as_json=as_json, environment=environment)
    if not as_json:
        tell_end(run, result)
        say(f"  files     {root}")
        say()
        say(_closing(strategy, result, scripted=model is None))
    tell_trouble(run, result)
    if as_json:
        emit({**document(run, result), "workspace": str(root), "scripted": model is None})
    context.exit(result.exit_code)


def _root(session: Session, workspace: Path | None) -> Path:
    if workspace is None:
        return Path(tempfile.mkdtemp(prefix="agentrewind-demo-")).resolve()
    root = session.directory / workspace
    if root.exists() and (not root.is_dir() or any(root.iterdir())):
        raise UsageError(f"--workspace {workspace}: the demo needs an empty or absent folder")
    return root.resolve()


def _options(strategy: str, *, scripted: bool) -> RunOptions:
    from agentrewind.options import RunOptions, Strategy
    from harness_adapters.demo import checker_path, task_text

    check = f"{shlex.quote(sys.executable)} {shlex.quote(str(checker_path()))}"
    # by this setting `run --resume` knows which model to serve again
    settings: JsonObject = {"demo": strategy} if scripted else {}
    return RunOptions(task=task_text(), check=check, strategy=Strategy(strategy), settings=settings)


def _policy() -> Policy:
    from agentrewind.workspace.policy import Policy

    return Policy.default()


@contextmanager
def scripted_model(strategy: str, environment: Mapping[str, str]) -> Iterator[Mapping[str, str]]:
    """The agent process's environment with the scripted model in it, whose server lives as long as this."""
    from harness_adapters.demo import policy
    from harness_adapters.scripted import ScriptedModel

    with ScriptedModel(policy(strategy)) as server:
        yield {**environment, **local_provider(server.base_url)}


def local_provider(base_url: str) -> Mapping[str, str]:
    """The variables by which every client reaches a scripted model on this machine."""
    return {
        "OPENAI_BASE_URL": base_url,
        "OPENAI_API_BASE": base_url,
        # a proxy of the user's must not stand between the agent and its own machine
        "NO_PROXY": "127.0.0.1,localhost",
        "no_proxy": "127.0.0.1,localhost",
        "OPENAI_API_KEY": "scripted-no-key",
    }


def _opening(strategy: str, model: str | None, root: Path) -> str:
    who = f"the model {model}" if model else "a scripted model, whose answers were written beforehand"
    how = "It can go back." if strategy == "rewind" else "It cannot go back (--strategy continue)."
    return f"An agent prepares a release in {root}, with {who}. {how}"


def _closing(strategy: str, result: RunResult, *, scripted: bool) -> str:
    if not scripted:
        return "The model was a real one; what it did is its own."
    if strategy == "continue":
        return (
            "The same agent without rewind: it had destroyed what the archive needs, tried repairs, and "
            "was rejected each time. `agentrewind demo` shows it with rewind. The model is scripted."
        )
    if result.accepted:
        return (
            "The agent migrated the database before it had exported the old entries, was rejected, went "
            "back to the point before the migration with a note to itself, kept its earlier work, and was "
            "accepted. The model is scripted; harness, shell, git, database, check and rewind are real."
        )
    return "The story did not come to its end; the log above tells where. The model is scripted."
