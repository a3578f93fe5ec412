"""Joins mini-SWE-agent (2.4) to the layer: its model's answers, its shell, its submission.

The agent, its model and its environment are the package's own, built from its own configuration; only
instances are changed, and `attach` does the same for an agent that somebody built himself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from agentrewind.adapters import AgentOutcome, Assignment
from agentrewind.errors import UsageError
from agentrewind.layer import Layer
from agentrewind.rewind.signal import LayerSignal
from harness_adapters.mini_swe_agent_forms import form_of, is_text
from harness_adapters.shell import Shell, open_shell, own_shell

_TOOL = "bash"
_SUBMITTED = "submitted"
_AGENT_SETTINGS = frozenset(
    {
        "system_template",
        "instance_template",
        "step_limit",
        "cost_limit",
        "wall_time_limit_seconds",
        "max_consecutive_format_errors",
    }
)
"""What `DefaultAgent` understands of `mini.yaml`, which is written for the interactive agent."""


class MiniSweAgent:
    """Builds a `DefaultAgent` with the package's own configuration, attaches it, and runs it to its end.

    Settings: `config` is a list of what the package's own `-c` option takes (files or `key=value`), on top
    of `mini.yaml`. `model.model_class` chooses how the agent speaks: `litellm` (tool calls, the default),
    `litellm_response` (the Responses API) or `litellm_textbased` (one command in the text, no tool calls),
    which stands on `mini_textbased.yaml`.
    """

    def run(self, layer: Layer, assignment: Assignment) -> AgentOutcome:
        """Run the agent. Raises what the agent raises: a provider that fails, a limit of its own."""
        from minisweagent.agents.default import DefaultAgent
        from minisweagent.environments.local import LocalEnvironment
        from minisweagent.models import get_model

        config = _configuration(assignment.settings.get("config"))
        model = get_model(assignment.model, config=config.get("model", {}))
        settings = {name: value for name, value in config.get("agent", {}).items() if name in _AGENT_SETTINGS}
        with open_shell(assignment) as shell:
            environment = LocalEnvironment(**{**config.get("environment", {}), "cwd": shell.directory})
            if own_shell(assignment):
                environment.execute = in_shell(environment, shell)
            agent = DefaultAgent(model, environment, **settings)
            attachment = attach(agent, layer)
            info = agent.run(assignment.task)
            return attachment.outcome(info)


def in_shell(environment: Any, shell: Shell) -> Callable[..., dict[str, Any]]:
    """In place of the environment's `execute`: its command runs in the shell; a timeout of 0 means none."""

    def execute(action: Mapping[str, Any], cwd: str = "", *, timeout: int | None = None) -> dict[str, Any]:
        ended = shell.run(str(action.get("command", "")), timeout or environment.config.timeout or None)
        output = {"output": ended.output, "returncode": ended.exit_code, "exception_info": ""}
        environment._check_finished(output)
        return output

    return execute


def attach(agent: Any, layer: Layer) -> Attachment:
    """Join an agent that was built already, before its `run`. Raises UsageError for what cannot be joined."""
    return Attachment(agent, layer)


class Attachment:
    """The joints between one agent and the layer."""

    def __init__(self, agent: Any, layer: Layer) -> None:
        self._agent = agent
        self._layer = layer
        self._form = form_of(agent.model)
        self._execute = agent.env.execute
        self._parse = agent.model._parse_actions
        self._format = agent.model.format_observation_messages
        self._outputs: list[dict[str, Any]] = []
        self._answer = -1
        self._verdict: str | None = None
        self._join()

    def outcome(self, info: Mapping[str, Any]) -> AgentOutcome:
        """What became of the agent, from its own exit status and the last verdict."""
        status = str(info.get("exit_status", ""))
        if self._verdict == "accepted":
            return AgentOutcome(state="accepted", detail="the submission was accepted")
        if self._verdict == "rejected":
            return AgentOutcome(state="rejected", detail="the same first problem too many times in a row")
        return AgentOutcome(state="stopped", detail=f"mini-SWE-agent ended with {status or 'no exit status'}")

    def _join(self) -> None:
        import litellm

        agent, model = self._agent, self._agent.model
        if self._layer.guidance:
            told = self._layer.guidance + self._form.how_to
            agent.config.system_template += "\n\n{% raw %}" + told + "{% endraw %}"
        # tenacity swallows even a BaseException and sleeps between ten tries; a bad request stays one
        model.abort_exceptions = [
            *model.abort_exceptions,
            LayerSignal,
            litellm.exceptions.BadRequestError,
        ]
        model._query = self._query
        model._parse_actions = self._parse_actions
        model.format_observation_messages = self._format_observations
        agent.env.execute = self._run_action

    def _query(self, messages: list[Any], **kwargs: Any) -> Any:
        return self._form.ask(self._agent.model, self._layer, messages, kwargs)

    def _parse_actions(self, response: Any) -> list[dict[str, Any]]:
        return self._form.actions(response, self._layer, self._parse)

    def _run_action(self, action: dict[str, Any], *args: Any, **kwargs: Any) -> dict[str, Any]:
        """In place of the environment's `execute`: every call passes the layer."""
        call_id = action.get("tool_call_id")
        if self._answer != len(self._agent.messages):
            self._answer, self._outputs = len(self._agent.messages), []
        outputs = self._outputs
        if "rewind" in action:
            result = self._layer.run_tool(
                action["rewind"], action["arguments"], _never, tool_call_id=call_id, interrupted=_output
            )
            output = _output(str(result.value))
        else:
            result = self._layer.run_tool(
                _TOOL,
                {"command": action.get("command", "")},
                lambda: self._perform(action, *args, **kwargs),
                tool_call_id=call_id,
                interrupted=lambda text: {"output": "", "returncode": -1, "exception_info": text},
            )
            output = _object(result.value)
        outputs.append(output)
        if _SUBMITTED in output:
            self._submit(result.record_uid, _strings(output[_SUBMITTED]), outputs)
        return output

    def _perform(self, action: dict[str, Any], *args: Any, **kwargs: Any) -> dict[str, Any]:
        """Run the command; a submission becomes a value, so that the log can hold it."""
        from minisweagent.exceptions import Submitted

        try:
            output: dict[str, Any] = self._execute(action, *args, **kwargs)
        except Submitted as submitted:
            messages = [dict(message) for message in submitted.messages]
            return {"output": "", "returncode": 0, "exception_info": "", _SUBMITTED: messages}
        return output

    def _submit(self, record_uid: Any, messages: list[dict[str, Any]], outputs: list[dict[str, Any]]) -> None:
        """End the agent when the submission is accepted or the run is over, else tell it and let it go on."""
        from minisweagent.exceptions import InterruptAgentFlow, Submitted

        verdict = self._layer.submit(record_uid)
        if verdict.final:
            self._verdict = "accepted" if verdict.accepted else "rejected"
            raise Submitted(*messages)
        answer = self._agent.messages[-1]
        # every call of the answer needs its result, or the provider refuses the next request
        observations = self._agent.model.format_observation_messages(
            answer, list(outputs), self._agent.get_template_vars()
        )
        feedback = self._agent.model.format_message(role="user", content=verdict.feedback)
        raise InterruptAgentFlow(*observations, feedback)

    def _format_observations(
        self,
        message: dict[str, Any],
        outputs: list[dict[str, Any]],
        template_vars: dict[str, Any] | None = None,
    ) -> list[dict[str, Any]]:
        """The package's own observations, but the answers of the layer's tools whole and as they are."""
        formatted: list[dict[str, Any]] = self._format(message, outputs, template_vars)
        actions = message.get("extra", {}).get("actions", [])
        for action, output, observation in zip(actions, outputs, formatted, strict=False):
            if "rewind" in action:
                observation[self._form.result] = output["output"]
        return formatted


def _configuration(specs: object) -> dict[str, Any]:
    """The package's settings, those given on top of the ones that belong to the model class."""
    from minisweagent.config import get_config_from_spec
    from minisweagent.utils.serialize import recursive_merge

    given = (
        [str(spec) for spec in specs] if isinstance(specs, Sequence) and not isinstance(specs, str) else []
    )
    try:
        own: dict[str, Any] = recursive_merge(*map(get_config_from_spec, given))
        in_text = is_text(str(own.get("model", {}).get("model_class", "")))
        below = get_config_from_spec("mini_textbased.yaml" if in_text else "mini.yaml")
        merged: dict[str, Any] = recursive_merge(below, own)
    except (OSError, ValueError) as error:
        raise UsageError(f"mini-SWE-agent's configuration cannot be read: {error}") from error
    return merged


def _output(text: str) -> dict[str, Any]:
    return {"output": text, "returncode": 0, "exception_info": ""}


def _object(value: object) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise UsageError(f"a recorded shell result is a {type(value).__name__}, not an object")
    return dict(value)


def _strings(value: object) -> list[dict[str, Any]]:
    return [dict(message) for message in value] if isinstance(value, list) else []


def _never() -> object:
    raise AssertionError("the layer carries out its own tools")
