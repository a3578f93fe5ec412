"""Joins smolagents (1.26) to the layer: what its CodeAgent and its ToolCallingAgent do, and what they submit.

The agent is the package's own. Only instances are changed, and `attach` does the same for an agent that
somebody built himself, with the agents it manages. A final answer is a submission; a rejected one becomes an
error of that step, so that memory and variables stay and the same loop goes on.
"""

from __future__ import annotations

import json
from contextlib import ExitStack
from typing import Any

from smolagents import CodeAgent, LiteLLMModel, MultiStepAgent, OpenAIModel, ToolCallingAgent
from smolagents.local_python_executor import LocalPythonExecutor
from smolagents.monitoring import LogLevel

from agentrewind.adapters import AgentOutcome, Assignment
from agentrewind.errors import UsageError
from agentrewind.layer import Layer
from agentrewind.records import RecordUid
from harness_adapters.settings import NOT_OURS
from harness_adapters.shell import LocalShell, Shell, open_shell
from harness_adapters.smolagents_joint import Joint, Routed
from harness_adapters.smolagents_tools import workspace_tools

MAX_STEPS = 250
AGENTS = ("code", "tool_calling")
SETTINGS = frozenset(
    {"agent", "imports", "stream", "planning_interval", "max_steps", "instructions", "model_settings"}
)

_IN_CODE = """

In your code the two are ordinary functions: `print(backtrack_candidates(reason="…"))` in one answer, and, \
once you have read it, `backtrack_commit(record_uid="…", memory_summary="…")` in the next. Variables and \
functions that your code had defined by then are there again after going back."""


class NotAcceptedError(Exception):
    """A final answer was checked and is not accepted; the text says why."""


class SmolagentsAdapter:
    """Builds an agent with a shell and file tools in the workspace, attaches it, and runs it to its end.

    Settings: `agent` (`code` or `tool_calling`), `imports` (what a CodeAgent may import beyond the default),
    `stream`, `planning_interval`, `max_steps`, `instructions`, `model_settings` (arguments of its requests).
    `config` holds the same as `name=value`.
    """

    agent = AGENTS[0]

    def run(self, layer: Layer, assignment: Assignment) -> AgentOutcome:
        """Run the agent. Raises what the agent raises: a provider that fails, an error of its own."""
        with ExitStack() as stack:
            with layer.collecting():
                agent = self.build(assignment, shell=stack.enter_context(open_shell(assignment)))
                attachment = attach(agent, layer)
            agent.run(assignment.task)
            return attachment.outcome()

    def build(self, assignment: Assignment, *, shell: Shell | None = None) -> Any:
        """The agent, not attached yet. Raises UsageError for settings that make no sense."""
        settings = _settings(assignment)
        kind = settings.get("agent", self.agent)
        if kind not in AGENTS:
            raise UsageError(
                f"smolagents has no agent {kind!r}; settings.agent is one of {', '.join(AGENTS)}"
            )
        imports = settings.get("imports") or []
        if not isinstance(imports, list) or (imports and kind != "code"):
            raise UsageError("settings.imports is a list of modules, for the agent `code` only")
        shared: dict[str, Any] = {
            "tools": workspace_tools(assignment.workspace, shell or LocalShell(assignment.workspace)),
            "model": LiteLLMModel(model_id=assignment.model, **(settings.get("model_settings") or {})),
            "stream_outputs": settings.get("stream") is True,
            "planning_interval": settings.get("planning_interval"),
            "max_steps": settings.get("max_steps") or MAX_STEPS,
            "instructions": settings.get("instructions"),
            "verbosity_level": LogLevel.ERROR,
        }
        if kind == "tool_calling":
            return ToolCallingAgent(**shared)
        # no limit of time: a shell command may take as long as it takes
        return CodeAgent(
            **shared, additional_authorized_imports=imports, executor_kwargs={"timeout_seconds": None}
        )


class CodeAgentAdapter(SmolagentsAdapter):
    """The agent `code`, whatever the default is."""


class ToolCallingAdapter(SmolagentsAdapter):
    """The agent `tool_calling` unless the settings say otherwise."""

    agent = AGENTS[1]


def attach(agent: Any, layer: Layer) -> Attachment:
    """Join an agent that was built already, before its `run`. Raises UsageError for what cannot be joined."""
    return Attachment(agent, layer)


class Attachment:
    """The joints between one agent, the agents it manages, and the layer."""

    def __init__(self, agent: Any, layer: Layer) -> None:
        self._agent = agent
        self._layer = layer
        self._submitted: RecordUid | None = None
        self._verdict: str | None = None
        for each in _family(agent):
            _check(each)
        for place, each in enumerate(_family(agent)):
            main = each is agent
            Joint(each, layer, label=each.name or f"agent-{place}", answered=self._answered if main else None)
        if layer.options.can_rewind:
            in_code = _IN_CODE if isinstance(agent, CodeAgent) else ""
            agent.instructions = "\n\n".join(filter(None, (agent.instructions, layer.guidance + in_code)))
        agent.final_answer_checks = [*agent.final_answer_checks, self.submission]

    def outcome(self) -> AgentOutcome:
        """What became of the agent, from the last verdict; it may have ended without a submission."""
        if self._verdict == "accepted":
            return AgentOutcome(state="accepted", detail="the final answer was accepted")
        if self._verdict == "rejected":
            return AgentOutcome(state="rejected", detail="the same first problem too many times in a row")
        return AgentOutcome(
            state="stopped", detail=f"the agent ended after {self._agent.max_steps} steps at most"
        )

    def submission(self, *_: object, **__: object) -> bool:
        """The harness's last check of a final answer; what it raises is told to the agent, which goes on."""
        if self._submitted is None:
            return True
        verdict = self._layer.submit(self._submitted)
        if not verdict.final:
            raise NotAcceptedError(verdict.feedback)
        self._verdict = "accepted" if verdict.accepted else "rejected"
        return True

    def _answered(self, record_uid: RecordUid) -> None:
        self._submitted = record_uid


def _settings(assignment: Assignment) -> dict[str, Any]:
    """The settings by name, those given as text included."""
    found: dict[str, Any] = {
        name: value for name, value in assignment.settings.items() if name not in NOT_OURS
    }
    config = assignment.settings.get("config") or []
    for each in config if isinstance(config, list) else [config]:
        name, separator, text = str(each).partition("=")
        if not separator:
            raise UsageError(f"smolagents takes a setting as NAME=VALUE, not {each!r}")
        try:
            found[name] = json.loads(text)
        except json.JSONDecodeError:
            found[name] = text
    if unknown := sorted(set(found) - SETTINGS):
        raise UsageError(f"smolagents has no setting {unknown[0]!r}; known: {', '.join(sorted(SETTINGS))}")
    return found


def _family(agent: Any) -> list[Any]:
    """The agent and all that it manages, each once."""
    found = [agent]
    for each in found:
        managed = getattr(each, "managed_agents", {}).values()
        found += [one for one in managed if all(one is not known for known in found)]
    return found


def _check(agent: Any) -> None:
    """Refuse what would be half recorded."""
    name = getattr(agent, "name", None) or type(agent).__name__
    if not isinstance(agent, MultiStepAgent):
        raise UsageError(f"{name} is no agent of smolagents and cannot be joined to the layer")
    if any(isinstance(tool, Routed) for tool in agent.tools.values()):
        raise UsageError(f"{name} is joined to a layer already; build a new agent for each run")
    model = agent.model
    # a router has ways of its own to its providers
    direct = isinstance(model, LiteLLMModel) and getattr(model.client, "__name__", "") == "litellm"
    if not (direct or isinstance(model, OpenAIModel)):
        raise UsageError(
            f"{name}: {type(model).__name__} calls its provider in a way that is not captured; "
            "use LiteLLMModel or OpenAIModel"
        )
    if isinstance(agent, CodeAgent) and not isinstance(agent.python_executor, LocalPythonExecutor):
        raise UsageError(
            f"{name}: code that runs in a {type(agent.python_executor).__name__} cannot be brought back; "
            "use executor_type='local'"
        )
