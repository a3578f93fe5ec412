"""Joins Qwen-Agent (0.0.34) to the layer: the tools of its FnCallAgent and Assistant, and what they submit.

The agent is the package's own. Only instances are changed, and `attach` does the same for an agent that
somebody built himself. An answer without a tool call is a submission; a rejected one is followed by the
feedback as the user's next message.
"""

from __future__ import annotations

import copy
import json
import tempfile
from collections.abc import Callable, Container, Sequence
from contextlib import ExitStack, chdir
from typing import Any

import json5
from qwen_agent.agents import Assistant, FnCallAgent, fncall_agent
from qwen_agent.llm.oai import TextChatAtOAI
from qwen_agent.llm.schema import ASSISTANT, FUNCTION, USER, ContentItem, Message
from qwen_agent.tools.base import BaseTool

from agentrewind.adapters import AgentOutcome, Assignment
from agentrewind.capture.nesting import is_inside
from agentrewind.errors import AgentRewindError, UsageError
from agentrewind.jsonform import to_json
from agentrewind.layer import Layer
from agentrewind.named_calls import parent_of
from agentrewind.own_tools import rewind_tools
from agentrewind.records import Json, JsonObject
from harness_adapters import shell as shells
from harness_adapters.instructions import system_prompt
from harness_adapters.settings import Choices, openai_model, read_settings
from harness_adapters.shell import (
    COMMAND_DESCRIPTION,
    DESCRIPTION,
    NAME,
    TIMEOUT_S,
    LocalShell,
    exit_code_in,
    open_shell,
)

AGENTS = ("fncall", "assistant")
TOOLS = ("native", "prompt")
MAX_CALLS = 250
SETTINGS: dict[str, Choices] = {
    "agent": AGENTS,
    "tools": TOOLS,
    "max_calls": int,
    "timeout": float,
    "generate_cfg": dict,
    "instructions": str,
}


class QwenAgentAdapter:
    """Builds an agent with a shell in the workspace, attaches it, and has it work until it is accepted.

    Settings: `agent` (`fncall` or `assistant`), `tools` (`native`: the provider's own tool calls; `prompt`:
    the package's, written into the prompt), `max_calls` (about so many LLM calls without a submission end
    the run), `timeout` of a command in seconds (0: none), `generate_cfg` (the package's own), `instructions`
    (in place of our system prompt). `config` holds the same as `name=value`.
    """

    def run(self, layer: Layer, assignment: Assignment) -> AgentOutcome:
        """Run the agent. Raises what the agent raises: a provider that fails, an error of its own."""
        with ExitStack() as stack:
            with layer.collecting():
                settings = read_settings(assignment.settings, harness="qwen-agent", known=SETTINGS)
                shell = stack.enter_context(open_shell(assignment))
                agent = self.build(assignment, settings, shell=shell)
                attach(agent, layer)
            max_calls = settings.get("max_calls", MAX_CALLS)
            assert isinstance(max_calls, int)
            return work_until_accepted(agent, layer, assignment.task, max_calls=max_calls)

    def build(
        self, assignment: Assignment, settings: JsonObject, *, shell: shells.Shell | None = None
    ) -> Any:
        """The agent, not attached yet; its commands run in `shell`, or on this machine."""
        shell = shell or LocalShell(assignment.workspace)
        native = settings.get("tools", TOOLS[0]) == "native"
        given = settings.get("generate_cfg") or {}
        timeout = settings.get("timeout", TIMEOUT_S)
        assert isinstance(given, dict)
        assert isinstance(timeout, int | float)
        configuration = {
            "model": openai_model(assignment.model),
            "model_type": "oai",
            "generate_cfg": {**given, "use_raw_api": native},
        }
        kind = Assistant if settings.get("agent") == "assistant" else FnCallAgent
        # the package makes folders for documents in the current directory, which is the user's workspace
        with tempfile.TemporaryDirectory() as elsewhere, chdir(elsewhere):
            agent = kind(
                function_list=[Shell(shell, timeout)],
                llm=configuration,
                system_message=settings.get("instructions") or system_prompt(shell.directory),
            )
        if native:
            name_results_as_openai(agent.llm)
        return agent


def work_until_accepted(agent: Any, layer: Layer, task: str, *, max_calls: int = MAX_CALLS) -> AgentOutcome:
    """Let an attached agent work: its final answer is submitted, and feedback goes back into the same loop.

    The package ends a run silently after some LLM calls (20, if nobody changed it); that is no submission,
    and the agent goes on where it was, up to `max_calls`.
    """
    messages = [Message(role=USER, content=task)]
    calls = 0
    while True:
        responses: list[Any] = []
        for responses in agent.run(messages):  # noqa: B007 - a generator that has to be used up
            pass
        layer.latch.check()
        messages = [*messages, *responses]
        if not responses:
            return AgentOutcome(state="stopped", detail="the model answered with nothing, again and again")
        if responses[-1].role == FUNCTION:
            calls += fncall_agent.MAX_LLM_CALL_PER_RUN
            if calls < max_calls:
                continue
            return AgentOutcome(state="stopped", detail=f"no submission within {calls} LLM calls")
        verdict = layer.submit_last()
        if verdict.accepted:
            return AgentOutcome(state="accepted", detail="the final answer was accepted")
        if verdict.final:
            return AgentOutcome(state="rejected", detail="the same first problem too many times in a row")
        calls = 0
        messages = [*messages, Message(role=USER, content=verdict.feedback)]


def attach(agent: Any, layer: Layer) -> None:
    """Join an agent that was built already, before its `run`: calls pass the layer, the two tools are added.

    The agents of a hub are joined with it; only the hub itself can go back. Raises UsageError for what
    cannot be joined.
    """
    members = [each for each in getattr(agent, "agents", []) if isinstance(each, FnCallAgent)]
    for each in (agent, *members):
        _check(each)
    for tool in rewind_tools("qwen") if layer.options.can_rewind else []:
        agent._init_tool(tool)
    if layer.guidance:
        agent.system_message = "\n\n".join(filter(None, (agent.system_message, layer.guidance)))
    for each in (agent, *members):
        each._call_tool = _routed(each, layer)


def name_results_as_openai(llm: Any) -> None:
    """Name the call of a native tool result in `tool_call_id`, on which servers insist, and not in `id`."""
    original = llm.convert_messages_to_dicts

    def convert(messages: list[Any]) -> list[dict[str, Any]]:
        return [_named(each) if each["role"] == "tool" else each for each in original(messages)]

    llm.convert_messages_to_dicts = convert


class Shell(BaseTool):  # type: ignore[misc]
    """Runs commands in the workspace."""

    name = NAME
    description = DESCRIPTION
    parameters = {  # noqa: RUF012 - the package's form
        "type": "object",
        "properties": {"command": {"type": "string", "description": COMMAND_DESCRIPTION}},
        "required": ["command"],
    }

    def __init__(self, shell: shells.Shell, timeout: float = TIMEOUT_S) -> None:
        super().__init__()
        self._shell = shell
        self._timeout = timeout

    def call(self, params: str | dict[str, Any], **_: Any) -> str:
        command = str(self._verify_json_format_args(params)["command"])
        return self._shell.run(command, self._timeout or None).text()


def _routed(agent: Any, layer: Layer) -> Callable[..., Any]:
    """In place of the agent's `_call_tool`: every call passes the layer, unknown tools included."""
    original = agent._call_tool

    def call_tool(tool_name: str, tool_args: str | dict[str, Any] = "{}", **kwargs: Any) -> Any:
        if is_inside() and not layer.is_rewind_tool(tool_name):
            return original(tool_name, tool_args, **kwargs)  # an agent within a tool, which is one node
        live: list[Any] = []

        def perform() -> Json:
            live.append(original(tool_name, tool_args, **kwargs))
            return _encode(live[0])

        answer = layer.last_answer
        result = layer.run_tool(
            tool_name,
            _arguments(tool_args),
            perform,
            tool_call_id=_call_id(kwargs.get("messages", ()), () if answer is None else parent_of(answer)),
            parent=None if answer is None else answer.record_uid,
        )
        return live[0] if live else _decode(result.value)

    return call_tool


def _check(agent: Any) -> None:
    """Refuse what would be half recorded."""
    name = getattr(agent, "name", None) or type(agent).__name__
    if not isinstance(agent, FnCallAgent):
        raise UsageError(f"{name} is no FnCallAgent of Qwen-Agent and cannot be joined to the layer")
    if "_call_tool" in vars(agent):
        raise UsageError(f"{name} is joined to a layer already; build a new agent for each run")
    if not isinstance(agent.llm, TextChatAtOAI):
        raise UsageError(
            f"{name}: {type(agent.llm).__name__} calls its provider in a way that is not captured; "
            "use model_type 'oai'"
        )
    if agent.llm.cache is not None:
        raise UsageError(f"{name}: with cache_dir calls are answered without the provider; leave it out")


def _call_id(messages: Sequence[Any], given: Container[str]) -> str | None:
    """The id of the call that is next: of the last answer's calls, the first without a result.

    None where the provider has `given` no such id: with tools in the prompt the package counts the calls of
    an answer, from 1 in each.
    """
    results = 0
    while results < len(messages) and messages[-1 - results].role == FUNCTION:
        results += 1
    calls: list[Any] = []
    for message in reversed(messages[: len(messages) - results]):
        if message.role != ASSISTANT:
            break
        if message.function_call:
            calls.insert(0, message)
    if results >= len(calls):
        return None
    found = str((calls[results].extra or {}).get("function_id"))
    return found if found in given else None


def _arguments(given: str | dict[str, Any]) -> object:
    """The arguments as the package reads them (JSON, or JSON5), or the text where they are none."""
    if not isinstance(given, str):
        return given
    for loads in (json.loads, json5.loads):
        try:
            return to_json(loads(given))
        except (ValueError, RecursionError, AgentRewindError):
            continue
    return given


def _encode(value: Any) -> Json:
    if isinstance(value, str):
        code = exit_code_in(value)
        return value if code is None else {"text": value, "exit_code": code}
    return {"items": [item.model_dump() for item in value]}


def _decode(value: Json) -> Any:
    if isinstance(value, dict) and isinstance(items := value.get("items"), list):
        return [ContentItem(**item) for item in items if isinstance(item, dict)]
    return value["text"] if isinstance(value, dict) else value


def _named(result: Any) -> dict[str, Any]:
    plain: dict[str, Any] = copy.deepcopy(dict(result))
    return {"role": "tool", "tool_call_id": plain.get("id"), "content": plain.get("content") or ""}
