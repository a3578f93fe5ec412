"""Runs one agent under the layer within a Harbor environment, and answers what it submits."""

from __future__ import annotations

import asyncio
import json
import shlex
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from agentrewind.errors import AgentRewindError
from agentrewind.records import JsonObject
from agentrewind.run_store import RunStore
from agentrewind.usage import Usage, usage_of
from runner.cell import Strategy
from runner.harbor.environment import PLACE, ROOT, Environment, EnvironmentFailedError, must
from runner.harbor.submissions import Judge, serve
from runner.harnesses import harness_settings
from runner.order import Conditions

STORE = "agentrewind"
"""Below the agent's logs: the store of the run, for the viewer and all other commands."""

_REPORT, _MESSAGES, _PROCESS = "agentrewind.json", "agentrewind.txt", "agentrewind.pid"
_PROVIDER_VARIABLES = ("API_KEY", "API_BASE", "BASE_URL")
_ABLATED = {
    Strategy.REWIND_NO_ENVIRONMENT: "environment",
    Strategy.REWIND_NO_CONTEXT: "context",
    Strategy.REWIND_NO_MEMORY: "memory",
}
_OWN_SHELL = {"mini-swe-agent": ("environment.timeout=14400",)}
"""What a harness's own shell needs, where 0 seconds are no time at all and not no limit."""

STRATEGIES = (Strategy.CONTINUE, Strategy.REWIND, *_ABLATED)
"""Those that a single run has; the others start runs of their own or review them from outside."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Drive:
    """What to run. `logs` is the agent's log folder in the environment, `variables` the provider's."""

    harness: str
    model: str
    strategy: Strategy
    logs: str
    workspace: str | None
    variables: Mapping[str, str]
    settings: tuple[str, ...] = ()


def provider_variables(model: str, environment: Mapping[str, str]) -> dict[str, str]:
    """The variables of the model's provider, and no other's.

    >>> provider_variables("openai/x", {"OPENAI_API_KEY": "k", "OTHER_API_KEY": "o", "HOME": "/"})
    {'OPENAI_API_KEY': 'k'}
    """
    provider = model.partition("/")[0].upper().replace("-", "_")
    names = (f"{provider}_{name}" for name in _PROVIDER_VARIABLES)
    return {name: environment[name] for name in names if name in environment}


async def drive(
    environment: Environment, instruction: str, wanted: Drive, judge: Judge | None, *, python: str
) -> JsonObject:
    """Run the agent to its end; the fields of `run --json`. Without a judge a submission is the end.

    Cancelled, by a time-out say, it ends the run in the container first; the log is kept as far as it went.
    Raises EnvironmentFailedError where the run cannot be made or fails for another reason than the agent's.
    """
    workspace = wanted.workspace or (await must(environment, "asking for the folder", "pwd")).strip()
    if workspace == "/":
        raise EnvironmentFailedError(
            "the task works in /, which is no workspace: name its folder with workspace="
        )
    await _put(environment, instruction, f"{PLACE}/instruction.md")
    command = _command(wanted, python, workspace, judged=judge is not None)
    variables = {**wanted.variables, "AGENTREWIND_HOME": f"{wanted.logs}/{STORE}"}
    async with asyncio.TaskGroup() as group:
        serving = group.create_task(serve(environment, judge, workspace)) if judge else None
        try:
            await environment.exec(command, env=variables)
        except asyncio.CancelledError:
            # a container goes on with a command that nobody waits for, and the verifier comes next
            await environment.exec(f"sh {PLACE}/stop.sh {wanted.logs}/{_PROCESS}", user=ROOT)
            raise
        if serving is not None:
            serving.cancel()
    return await _report(environment, wanted.logs)


def _command(wanted: Drive, python: str, workspace: str, *, judged: bool) -> str:
    strategy = "rewind" if wanted.strategy.rewinds else "continue"
    parts = [python, "-P", "-m", "agentrewind.cli", "run", "--json", "--harness", wanted.harness]
    parts += ["--model", wanted.model, "--workspace", workspace, "--task", f"@{PLACE}/instruction.md"]
    parts += ["--strategy", strategy, "--track-everything"]
    if wanted.strategy in _ABLATED:
        parts += ["--ablate", _ABLATED[wanted.strategy]]
    for setting in _settings(wanted):
        parts += ["--config", setting]
    if judged:
        parts += ["--check", f"sh {PLACE}/submit.sh"]
    began = f"echo $$ >{wanted.logs}/{_PROCESS}"
    return f"{began}; exec {shlex.join(parts)} >{wanted.logs}/{_REPORT} 2>{wanted.logs}/{_MESSAGES}"


def _settings(wanted: Drive) -> list[str]:
    given = harness_settings(wanted.harness, Conditions(temperature=None))
    texts = given.pop("config")
    assert isinstance(texts, list)
    ours = [*(f"{name}={json.dumps(value)}" for name, value in given.items()), *map(str, texts)]
    return [*ours, *_OWN_SHELL.get(wanted.harness, ()), *wanted.settings]


async def _put(environment: Environment, text: str, target: str) -> None:
    with tempfile.TemporaryDirectory() as place:
        (Path(place) / "text").write_text(text, encoding="utf-8")
        (Path(place) / "text").chmod(0o644)
        await environment.upload_file(Path(place) / "text", target)


async def _report(environment: Environment, logs: str) -> JsonObject:
    ended = await environment.exec(f"tail -n 1 {logs}/{_REPORT}", user=ROOT)
    try:
        report: JsonObject = json.loads(ended.stdout or "")
    except ValueError:
        report = {}
    if "state" not in report or report["state"] == "error":
        said = await environment.exec(f"tail -c 2000 {logs}/{_MESSAGES}", user=ROOT)
        reason = report.get("detail") or said.stdout or "it printed nothing"
        raise EnvironmentFailedError(f"the agent's run failed: {reason!s}")
    return report


def usage_in(store: Path) -> tuple[Usage, JsonObject]:
    """What the newest run of a store took, and its figures; nothing where there is no readable run."""
    try:
        timeline = RunStore(store).runs()[0].timeline()
    except (IndexError, AgentRewindError, OSError):
        return Usage(tokens_in=None, tokens_out=None, cost=None), {}
    figures: JsonObject = {
        "run_id": timeline.header.run_id,
        "nodes": len(timeline.nodes),
        "segments": len(timeline.segments),
        "submissions": len(timeline.submissions()),
    }
    return usage_of(timeline.nodes.values()), figures
