"""`agentrewind run`: one agent under the layer, from its start or from where it was left."""

from __future__ import annotations

import pkgutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from agentrewind.commands.given_path import GivenPath
from agentrewind.commands.harnesses import HARNESS_HELP
from agentrewind.commands.output import emit, json_option
from agentrewind.commands.session import Session
from agentrewind.errors import UsageError

if TYPE_CHECKING:
    from agentrewind.backup.policy import BackupPolicy
    from agentrewind.options import RunOptions
    from agentrewind.outcome import RunResult
    from agentrewind.records import Json
    from agentrewind.supervise import Surroundings
    from agentrewind.workspace.policy import Policy

MODELS = {"demo": "harness_adapters.demo.command:scripted_model"}
"""Models that we serve ourselves: the setting by which a run names one, and what serves it while it lasts."""

_NEEDED = ("harness", "model", "workspace", "task")


@click.command("run")
@click.option("--harness", metavar="NAME", help=HARNESS_HELP)
@click.option("--model", metavar="MODEL", help="Model name as the harness's client takes it.")
@click.option("--workspace", metavar="DIR", type=GivenPath(path_type=Path), help="Where the agent works.")
@click.option("--task", metavar="TEXT|@FILE", help="What the agent is to do, or a file that says it.")
@click.option("--check", metavar="CMD", help="Validates each submission; exit 0 accepts, 125: cannot judge.")
@click.option(
    "--strategy",
    type=click.Choice(["rewind", "continue"]),
    default="rewind",
    show_default=True,
    help="Whether the agent can go back.",
)
@click.option("--max-rewinds", metavar="N", type=click.IntRange(min=0), help="Rewinds allowed; any number.")
@click.option(
    "--memory-role",
    type=click.Choice(["system", "user"]),
    default="system",
    show_default=True,
    help="Role of the message that holds the notes carried back.",
)
@click.option(
    "--on-divergence",
    type=click.Choice(["stop", "position"]),
    help="When a request differs from the log: stop, or go on by position. [default: stop]",
)
@click.option(
    "--ablate",
    type=click.Choice(["environment", "context", "memory"]),
    multiple=True,
    help="Leave this part of every rewind out; may be repeated.",
)
@click.option(
    "--backup", is_flag=True, help="Preserve what lies outside the workspace before a call changes it."
)
@click.option(
    "--mode",
    metavar="MODE|TEXT",
    help="Changes worth a backup: full, high-impact, beyond-request, human-work, or your own words. "
    "[default: full]",
)
@click.option(
    "--backup-model", metavar="M", help="Model that preserves what no rule can, as litellm names it."
)
@click.option(
    "--reflect",
    type=click.Choice(["off", "propose", "auto"]),
    help="What that model did becomes a rule: never, for `backup accept`, or at once. [default: off]",
)
@click.option(
    "--trigger",
    type=click.Choice(["all", "outside"]),
    help="Look at every call, or at those that surely write outside the workspace. [default: all]",
)
@click.option(
    "--on-failure",
    type=click.Choice(["block", "warn"]),
    help="A call whose backup failed: does not run, or runs without. [default: block]",
)
@click.option(
    "--on-unknown",
    type=click.Choice(["run", "block"]),
    help="A call for which nothing can be preserved: runs and is logged as such, or does not. [default: run]",
)
@click.option(
    "--start",
    type=click.Choice(["spawn", "warm"]),
    default="spawn",
    show_default=True,
    help="A new interpreter for each attempt, or a fork of one that has imported the harness.",
)
@click.option("--config", metavar="SPEC", multiple=True, help="Setting of the harness; may be repeated.")
@click.option("--exclude", metavar="PATTERN", multiple=True, help="Leave these paths alone; may be repeated.")
@click.option("--volatile", metavar="PATTERN", multiple=True, help="Caches, deleted at a restore.")
@click.option("--track-everything", is_flag=True, help="Apply no path rule at all.")
@click.option(
    "--snapshot-deadline",
    metavar="SECONDS",
    type=click.IntRange(min=1),
    default=60,
    show_default=True,
    help="A node whose snapshot takes longer is no checkpoint; the agent goes on.",
)
@click.option(
    "--resume", metavar="RUN", help="Go on with this run; with --on-divergence, --start and --json only."
)
@json_option
@click.argument("command", nargs=-1, type=click.UNPROCESSED, metavar="[-- COMMAND ...]")
@click.pass_context
def run(context: click.Context, /, *, resume: str | None, as_json: bool, **given: Any) -> None:
    """Run an agent under the layer, or go on with a run.

    A run needs --harness, --model, --workspace and --task; `--resume RUN` goes on after a crash, an
    interrupted rewind or a failure of the provider.

    With `--workspace DIR -- COMMAND ...` any Python agent runs under the layer as it is: its clients are
    joined when it starts, it runs in DIR, and its end is its submission. Arguments that name a file here,
    and none in DIR, are passed as absolute paths. What it prints is kept in the run's agent.log.
    """
    session = context.find_object(Session)
    assert session is not None
    if resume is not None:
        _refuse_others(context)
    elif given["command"]:
        _require_for_command(given)
    else:
        _require(given)
    from agentrewind.commands.running import document, see_through, tell_end, tell_trouble

    def begin(around: Surroundings) -> RunResult:
        return _start(given, session, around) if resume is None else _resume(session, resume, given, around)

    if resume is not None:
        _go_inside(context, session, resume, given, as_json=as_json)
    with _environment(session, resume) as environment:
        found, result = see_through(
            session, begin, as_json=as_json, environment=environment, start=given["start"]
        )
    if not as_json:
        tell_end(found, result)
    tell_trouble(found, result)
    if as_json:
        emit(document(found, result))
    context.exit(result.exit_code)


def _go_inside(
    context: click.Context, session: Session, resume: str, given: Mapping[str, Any], *, as_json: bool
) -> None:
    """Resume a run that has a copy where the copy is seen; ends the command then."""
    from agentrewind.copied_runs import go_inside, needs_enclosure

    run = session.open_run(resume)
    if not needs_enclosure(run, session.environment):
        return
    chosen = ["--start", given["start"], *(["--json"] if as_json else [])]
    if given["on_divergence"]:
        chosen += ["--on-divergence", given["on_divergence"]]
    arguments = ["run", "--resume", str(run.run_id), *chosen]
    context.exit(go_inside(run, arguments, home=session.home, environment=session.environment))


@contextmanager
def _environment(session: Session, resume: str | None) -> Iterator[Mapping[str, str]]:
    """The agent's environment; where the run that goes on had a model of ours, that model is there again."""
    if resume is not None:
        options = session.open_run(resume).timeline().header.options
        settings = options.get("settings")
        for name, path in MODELS.items():
            if isinstance(settings, dict) and name in settings:
                with pkgutil.resolve_name(path)(str(settings[name]), session.environment) as environment:
                    yield environment
                return
    yield session.environment


def _refuse_others(context: click.Context) -> None:
    allowed = {"resume", "on_divergence", "as_json", "start"}
    for parameter in context.command.params:
        source = context.get_parameter_source(parameter.name or "")
        if parameter.name not in allowed and source is click.core.ParameterSource.COMMANDLINE:
            name = "COMMAND" if isinstance(parameter, click.Argument) else parameter.opts[0]
            raise UsageError(f"{name} cannot be given with --resume: a run keeps what it was started with")


def _require(given: dict[str, Any]) -> None:
    missing = [f"--{name}" for name in _NEEDED if not given[name]]
    if missing:
        raise UsageError(
            f"{', '.join(missing)} missing: a run needs --{', --'.join(_NEEDED)}; a program of your own "
            "needs --workspace and, last, -- COMMAND"
        )


def _require_for_command(given: dict[str, Any]) -> None:
    if not given["workspace"]:
        raise UsageError("--workspace missing: a command runs in a workspace")
    foreign = [f"--{name}" for name in ("harness", "model", "task", "config") if given[name]]
    if foreign:
        raise UsageError(f"{', '.join(foreign)}: the command itself decides these; leave them out")


def _command(words: tuple[str, ...], here: Path, workspace: Path) -> tuple[str, ...]:
    """The command as it is started in the workspace: files that are only here become absolute."""
    return tuple(
        str(here / word) if (here / word).is_file() and not (workspace / word).exists() else word
        for word in words
    )


def _start(given: dict[str, Any], session: Session, around: Surroundings) -> RunResult:
    from agentrewind.runs import NewRun, start_run

    root = session.directory / given["workspace"]
    new = NewRun(
        root=root,
        harness=given["harness"],
        model=given["model"],
        options=_options(given, session),
        policy=_policy(given),
    )
    return start_run(new, around)


def _resume(session: Session, name: str, given: dict[str, Any], around: Surroundings) -> RunResult:
    from agentrewind.replayer import OnDivergence
    from agentrewind.runs import resume_run

    chosen = given["on_divergence"]
    return resume_run(
        session.open_run(name).run_id,
        around,
        on_divergence=OnDivergence(chosen) if chosen else None,
    )


def _options(given: dict[str, Any], session: Session) -> RunOptions:
    from agentrewind.options import Ablation, RunOptions, Strategy
    from agentrewind.replayer import OnDivergence

    config: list[Json] = list(given["config"])
    backup = backup_policy(given)
    if backup is not None:
        from agentrewind.backup.joining import check_ready

        check_ready(session.home)
    return RunOptions(
        task=read_task(given["task"] or "", session.directory),
        check=given["check"],
        strategy=Strategy(given["strategy"]),
        ablations=frozenset(Ablation(each) for each in given["ablate"]),
        max_rewinds=given["max_rewinds"],
        memory_role=given["memory_role"],
        on_divergence=OnDivergence(given["on_divergence"] or "stop"),
        settings={"config": config} if config else {},
        command=_command(given["command"], session.directory, session.directory / given["workspace"]),
        backup=backup,
    )


def backup_policy(given: Mapping[str, Any]) -> BackupPolicy | None:
    """What the options say of backups, None without --backup. Raises UsageError for options that need it."""
    from agentrewind.backup.policy import BackupPolicy, Mode

    options = ("mode", "backup_model", "reflect", "trigger", "on_failure", "on_unknown")
    chosen = {name: given[name] for name in options if given[name]}
    if not given["backup"]:
        if chosen:
            option = f"--{next(iter(chosen)).replace('_', '-')}"
            raise UsageError(f"{option} only means something with --backup")
        return None
    chosen["model"] = chosen.pop("backup_model", "")
    mode = chosen.get("mode", "full")
    if mode not in [each.value for each in Mode]:
        chosen |= {"words": chosen.pop("mode")}
    if mode != "full" and not chosen["model"]:
        raise UsageError(f"--mode {mode} needs --backup-model: a model judges whether a call is meant")
    if chosen.get("reflect", "off") != "off" and not chosen["model"]:
        raise UsageError(f"--reflect {chosen['reflect']} needs --backup-model")
    return BackupPolicy.from_json(chosen)


def read_task(text: str, directory: Path) -> str:
    """The task itself, or the text of the file that `@FILE` names."""
    if not text.startswith("@"):
        return text
    path = directory / text[1:]
    try:
        found = path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise UsageError(f"--task {text}: {path} cannot be read as UTF-8 text ({error})") from error
    if not found.strip():
        raise UsageError(f"--task {text}: {path} is empty")
    return found


def _policy(given: dict[str, Any]) -> Policy:
    from agentrewind.workspace.policy import Policy

    policy = replace(
        Policy.default().with_excluded(given["exclude"]),
        track_everything=given["track_everything"],
        snapshot_seconds=given["snapshot_deadline"],
    )
    policy = replace(policy, volatile=(*policy.volatile, *given["volatile"]))
    return Policy.from_json(policy.to_json())  # which names what is wrong with a pattern
