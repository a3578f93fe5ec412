"""The agent that Harbor starts: `harbor run … --agent runner.harbor.agent:AgentRewind`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

try:
    from harbor.agents.base import BaseAgent
except ImportError as error:
    raise ImportError(
        "runner.harbor.agent is for use by Harbor, which is not installed here; it needs Python 3.12: "
        "pip install harbor"
    ) from error

import agentrewind
from agentrewind.errors import UsageError
from mettlebench.load import BUILT_IN
from runner.cell import Strategy
from runner.harbor.drive import STORE, STRATEGIES, Drive, drive, provider_variables, usage_in
from runner.harbor.environment import Environment
from runner.harbor.install import PYTHON, install
from runner.harbor.submissions import Judge, task_of

_LOGS = "/logs/agent"


class AgentRewind(BaseAgent):  # type: ignore[misc]  # Harbor is optional
    """One of our harnesses under the layer, in the task's environment.

    Options (`--agent-kwarg NAME=VALUE`): `harness`, `strategy`, `python` (an interpreter of the image that
    has all that is needed), `workspace`, `feedback` (false: a submission is the end), `tasks` (a folder of
    MettleBench tasks, whose submissions are judged here), `settings` (of the harness, a list).
    """

    def __init__(  # noqa: PLR0913 -- the options, as Harbor hands them over
        self,
        logs_dir: Path,
        model_name: str | None = None,
        *,
        harness: str = "mini-swe-agent",
        strategy: str = "rewind",
        python: str | None = None,
        workspace: str | None = None,
        feedback: bool = True,
        tasks: str | None = None,
        settings: list[str] | None = None,
        **rest: Any,
    ) -> None:
        super().__init__(logs_dir=logs_dir, model_name=model_name, **rest)
        if strategy not in STRATEGIES:
            raise UsageError(f"strategy is one of {', '.join(STRATEGIES)}, not {strategy!r}")
        if not model_name:
            raise UsageError("name the model, as the harness's client takes it: --model openai/…")
        self._wanted = Drive(
            harness=harness,
            model=model_name,
            strategy=Strategy(strategy),
            logs=_LOGS,
            workspace=workspace,
            variables=provider_variables(model_name, os.environ),
            settings=tuple(settings or ()),
        )
        self._python = python
        self._tasks = (Path(tasks) if tasks else BUILT_IN) if feedback else None

    @staticmethod
    def name() -> str:
        """What Harbor's results call it."""
        return "agentrewind"

    def version(self) -> str:
        """That of the layer."""
        return agentrewind.__version__

    async def setup(self, environment: Environment) -> None:
        """Bring the layer and the harness into the environment."""
        self._python = await install(environment, harness=self._wanted.harness, python=self._python)

    async def run(self, instruction: str, environment: Environment, context: object) -> None:
        """Run the agent to its end; `context` is filled from the log afterwards, after a time-out too."""
        task = task_of(instruction, self._tasks) if self._tasks else None
        # beside the agent's logs and not in them: those are seen in the environment
        judge = Judge(task=task, folder=self.logs_dir.parent) if task else None
        report = await drive(environment, instruction, self._wanted, judge, python=self._python or PYTHON)
        self.logger.info("the run %s ended: %s", report["run_id"], report["state"])

    def populate_context_post_run(self, context: Any) -> None:
        """Take tokens, cost and figures out of the run's log."""
        usage, figures = usage_in(self.logs_dir / STORE)
        context.n_input_tokens, context.n_output_tokens = usage.tokens_in, usage.tokens_out
        context.cost_usd = usage.cost
        context.metadata = figures or None
