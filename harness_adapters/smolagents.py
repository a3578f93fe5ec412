"""Joins smolagents (1.26) to the layer: what its CodeAgent and its ToolCallingAgent do, and what they submit.

The agent is the package's own. Only instances are changed, and `attach` does the same for an agent that
somebody built himself, with the agents it manages. A final answer is a submission; a rejected one becomes an
error of that step, so that memory and variables stay and the same loop goes on.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from typing import Any

from smolagents import CodeAgent, LiteLLMModel, MultiStepAgent, ToolCallingAgent
from smolagents.agent_types import handle_agent_input_types, handle_agent_output_types
from smolagents.local_python_executor import LocalPythonExecutor
from smolagents.monitoring import LogLevel
from smolagents.tools import BaseTool

from agentrewind.adapters import AgentOutcome, Assignment
from agentrewind.capture.gate import is_inside, parent_of
from agentrewind.errors import UsageError
from agentrewind.layer import Layer
from agentrewind.records import Json, JsonObject, LlmNode, RecordUid
from agentrewind.rewind.tools import COMMIT
from harness_adapters.smolagents_code import CodeActions
from harness_adapters.smolagents_tools import rewind_tools, workspace_tools
from harness_adapters.smolagents_values import MARK, decode_value, describe, encode_value, is_inert

FINAL = "final_answer"
MAX_STEPS = 250
AGENTS = ("code", "tool_calling")

_IN_CODE = """

In your code the two are ordinary functions: `print(backtrack_candidates(reason="…"))` in one answer, and, \
once you have read it, `backtrack_commit(record_uid="…", memory_summary="…")` in the next. Variables and \
functions that your code had defined by then are there again after going back."""

_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_call_id: ContextVar[str | None] = ContextVar("agentrewind_smolagents_call", default=None)
_acting: ContextVar[RecordUid | None] = ContextVar("agentrewind_smolagents_acting", default=None)


class InterruptedCallError(Exception):
    """A tool call whose process died; its effect is unknown and it was not repeated."""


class NotAcceptedError(Exception):
    """A final answer was checked and is not accepted; the text says why."""


class SmolagentsAdapter:
    """Builds an agent with a shell and file tools in the workspace, attaches it, and runs it to its end.

    Settings: `agent` (`code` or `tool_calling`), `imports` (what a CodeAgent may import beyond the default),
    `stream`, `planning_interval`, `max_steps`, `instructions`.
    """

    agent = AGENTS[0]

    def run(self, layer: Layer, assignment: Assignment) -> AgentOutcome:
        """Run the agent. Raises what the agent raises: a provider that fails, an error of its own."""
        with layer.collecting():
            agent = self.build(assignment)
            attachment = attach(agent, layer)
        agent.run(assignment.task)
        return attachment.outcome()

    def build(self, assignment: Assignment) -> Any:
        """The agent, not attached yet. Raises UsageError for settings that make no sense."""
        settings = assignment.settings
        kind = settings.get("agent", self.agent)
        if kind not in AGENTS:
            raise UsageError(
                f"smolagents has no agent {kind!r}; settings.agent is one of {', '.join(AGENTS)}"
            )
        imports = settings.get("imports") or []
        if not isinstance(imports, list) or (imports and kind != "code"):
            raise UsageError("settings.imports is a list of modules, for the agent `code` only")
        shared: dict[str, Any] = {
            "tools": workspace_tools(assignment.workspace),
            "model": LiteLLMModel(model_id=assignment.model),
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


class Joint:
    """The joints of a single agent: every tool of it is replaced by one that passes the layer."""

    def __init__(
        self, agent: Any, layer: Layer, *, label: str, answered: Callable[[RecordUid], None] | None
    ) -> None:
        self.layer = layer
        self._agent = agent
        self._answered = answered or (lambda uid: None)
        self._parent: RecordUid | None = None
        self._code: CodeActions | None = None
        added = rewind_tools() if answered is not None and layer.options.can_rewind else []
        tools = {**agent.tools, **{tool.name: tool for tool in added}}
        agent.tools = {name: Routed(tool, name, self) for name, tool in tools.items()}
        if isinstance(agent, CodeAgent):
            self._code = agent.python_executor = CodeActions(
                agent.python_executor,
                layer,
                label=label,
                named=lambda: {**agent.tools, **agent.managed_agents},
                begun=self._begin,
                submitted=self._answered,
                step=lambda: len(agent.memory.steps),
                alone=not agent.managed_agents,
            )
        else:
            self._process = agent.process_tool_calls
            self._execute = agent.execute_tool_call
            agent.process_tool_calls = self._process_tool_calls
            agent.execute_tool_call = self._execute_tool_call

    def call(self, name: str, arguments: JsonObject, perform: Callable[[], object]) -> Any:
        """One tool call of this agent, through the layer."""
        live: list[object] = []
        sealed = self.layer.code.sealed

        def performed() -> Json:
            live.append(perform())
            return encode_value(live[0], sealed.keep)

        result = self.layer.run_tool(
            name,
            arguments,
            performed,
            tool_call_id=None if self._code is not None else _call_id.get(),
            # within a code action that is a node of its own, all belongs to the answer that was the code
            parent=_acting.get() if is_inside() else self._parent,
            interrupted=lambda text: {MARK: "interrupted", "text": text},
        )
        if name == FINAL:
            self._answered(result.record_uid)
        if live:
            if self._code is not None and not is_inert(live[0]):
                self._code.live_object = True
            return live[0] if isinstance(result.value, dict) and MARK in result.value else result.value
        if isinstance(result.value, dict) and result.value.get(MARK) == "interrupted":
            raise InterruptedCallError(str(result.value.get("text")))
        return decode_value(result.value, sealed.load, inert_only=self._code is not None)

    def _begin(self, answer: LlmNode) -> None:
        self._parent = answer.record_uid
        _acting.set(answer.record_uid)

    def _process_tool_calls(self, chat_message: Any, memory_step: Any) -> Iterator[Any]:
        """The harness's own, with ids that stay the same on replay, and an order where it matters."""
        answer = self.layer.last_answer
        if answer is not None and not is_inside():
            self._begin(answer)
            given = parent_of(answer)
            for place, call in enumerate(chat_message.tool_calls):
                if call.id not in given and _UUID.fullmatch(str(call.id)):
                    call.id = f"call_{answer.record_uid}_{place}"
        for call in chat_message.tool_calls:
            call.function.arguments = _tagged(call.function.arguments, call.id)
        threads = self._agent.max_tool_threads
        if any(call.function.name == COMMIT for call in chat_message.tool_calls):
            # what stands before the commit runs, and what stands after it does not
            self._agent.max_tool_threads = 1
        try:
            yield from self._process(chat_message, memory_step)
        finally:
            self._agent.max_tool_threads = threads
        self.layer.latch.check()

    def _execute_tool_call(self, tool_name: str, arguments: Any) -> Any:
        token = _call_id.set(getattr(arguments, "call_id", None))
        if isinstance(arguments, _Arguments | _Text):
            arguments = arguments.plain()
        try:
            return self._execute(tool_name, arguments)
        finally:
            _call_id.reset(token)


class Routed(BaseTool):  # type: ignore[misc]
    """Stands in the place of a tool, and is it in all other respects; a call passes the layer first."""

    def __init__(self, inner: Any, name: str, joint: Joint) -> None:
        self._inner = inner
        self._joint = joint
        self.name = name

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["_inner"], name)

    def __call__(self, *args: Any, sanitize_inputs_outputs: bool = False, **kwargs: Any) -> Any:
        if sanitize_inputs_outputs:
            args, kwargs = handle_agent_input_types(*args, **kwargs)
        value = self._joint.call(
            self.name, _by_name(self._inner.inputs, args, kwargs), lambda: self._inner(*args, **kwargs)
        )
        return handle_agent_output_types(value, self._inner.output_type) if sanitize_inputs_outputs else value


class _Arguments(dict[str, Any]):
    """Arguments that know their call; true when empty as well, since the harness drops what is not."""

    call_id: str

    def __bool__(self) -> bool:
        return True

    def plain(self) -> dict[str, Any]:
        return dict(self)


class _Text(str):
    """Arguments that are no JSON, and know their call."""

    call_id: str

    def plain(self) -> str:
        return str.__str__(self)


def _tagged(arguments: Any, call_id: str) -> Any:
    if isinstance(arguments, dict):
        tagged: _Arguments | _Text = _Arguments(arguments)
    elif isinstance(arguments, str):
        tagged = _Text(arguments)
    else:
        return arguments
    tagged.call_id = call_id
    return tagged


def _by_name(inputs: Mapping[str, Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> JsonObject:
    """Positional arguments under the names that the tool gives them."""
    named, placed = dict(kwargs), list(args)
    if len(args) == 1 and not kwargs and isinstance(args[0], dict) and set(args[0]) <= set(inputs):
        named, placed = dict(args[0]), []
    found: JsonObject = dict(zip(inputs, map(describe, placed), strict=False))
    if len(placed) > len(inputs):
        found["*"] = [describe(value) for value in placed[len(inputs) :]]
    found.update({str(name): describe(value) for name, value in named.items()})
    return found


def _family(agent: Any) -> list[Any]:
    """The agent and all that it manages, each once."""
    found = [agent]
    for each in found:
        found += [one for one in each.managed_agents.values() if all(one is not known for known in found)]
    return found


def _check(agent: Any) -> None:
    """Refuse what would be half recorded."""
    name = getattr(agent, "name", None) or type(agent).__name__
    if not isinstance(agent, MultiStepAgent):
        raise UsageError(f"{name} is no agent of smolagents and cannot be joined to the layer")
    if not isinstance(agent.model, LiteLLMModel) or getattr(agent.model.client, "__name__", "") != "litellm":
        raise UsageError(
            f"{name}: {type(agent.model).__name__} does not call its provider through litellm.completion; "
            "use LiteLLMModel"
        )
    if isinstance(agent, CodeAgent) and not isinstance(agent.python_executor, LocalPythonExecutor):
        raise UsageError(
            f"{name}: code that runs in a {type(agent.python_executor).__name__} cannot be brought back; "
            "use executor_type='local'"
        )
