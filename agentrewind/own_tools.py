"""An agent's own tools through the layer, and the layer's two tools in a harness's form.

Under `agentrewind run … -- COMMAND` the process is joined already, and only tools have to be routed
through `call_tool` or `@tool`. Without a layer these do nothing but run the tool.
"""

from __future__ import annotations

import functools
import inspect
import json
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from agentrewind.current import current_layer
from agentrewind.errors import UsageError
from agentrewind.records import Json, JsonObject
from agentrewind.rewind.tools import CANDIDATES, COMMIT, GUIDANCE, SCHEMAS, openai_tools
from agentrewind.submissions import SubmissionResult

P = ParamSpec("P")
R = TypeVar("R")

STYLES = ("openai", "python", "langchain", "qwen")


def call_tool(
    name: str, arguments: Json, perform: Callable[[], Any] | None = None, *, tool_call_id: str | None = None
) -> Any:
    """Run a tool through the layer: recorded live, served from the log on replay.

    The two rewind tools are carried out by the layer itself and need no `perform`. Without a
    `tool_call_id` the call belongs to the first call of that name in the last answer that has no result
    yet. Raises what the tool raises, and the layer's signals, which are to be let through.
    """
    layer = current_layer()
    if layer is None:
        if perform is None:
            raise UsageError(f"{name} is carried out by the layer, and this process has none")
        return perform()
    if perform is None and not layer.is_rewind_tool(name):
        raise UsageError(f"nothing was given that carries out the tool {name}")
    return layer.run_tool(name, arguments, perform or _never, tool_call_id=tool_call_id).value


def tool(function: Callable[P, R]) -> Callable[P, R]:
    """Decorate a tool of one's own: every call passes the layer, under the function's name.

    Its arguments have to be what JSON can hold; they are recorded by their parameters' names.
    """
    signature = inspect.signature(function)

    @functools.wraps(function)
    def routed(*args: P.args, **kwargs: P.kwargs) -> R:
        bound = signature.bind(*args, **kwargs)
        result: R = call_tool(function.__name__, dict(bound.arguments), lambda: function(*args, **kwargs))
        return result

    return routed


def submit() -> SubmissionResult:
    """Have the present state checked as a submission; without a layer everything is accepted."""
    layer = current_layer()
    if layer is None:
        return SubmissionResult(accepted=True, final=True, feedback="")
    return layer.submit_last()


def rewind_tools(style: str = "openai") -> list[Any]:
    """The two tools in a harness's own form; empty where this process has no layer or may not rewind.

    Args:
        style: `openai` (entries of a request's `tools`), `python` (plain callables), `langchain`
            (`BaseTool` objects), `qwen` (Qwen-Agent tool objects).
    """
    if style not in STYLES:
        raise UsageError(f"unknown style {style!r}; known: {', '.join(STYLES)}")
    layer = current_layer()
    if layer is None or not layer.options.can_rewind:
        return []
    if style == "openai":
        return list(openai_tools())
    if style == "python":
        return [backtrack_candidates, backtrack_commit]
    if style == "langchain":
        return _langchain_tools()
    return _qwen_tools()


def rewind_guidance() -> str:
    """The text that tells an agent when and how to go back; empty where it cannot."""
    layer = current_layer()
    return GUIDANCE if layer is not None and layer.options.can_rewind else ""


def backtrack_candidates(reason: str) -> str:
    """List the points of this run that can be gone back to, newest first, as JSON text."""
    return str(call_tool(CANDIDATES, {"reason": reason}))


def backtrack_commit(record_uid: str, memory_summary: str, reason: str = "") -> str:
    """Go back to a point; returns only where that was refused, with the reason as JSON text."""
    return str(
        call_tool(COMMIT, {"record_uid": record_uid, "memory_summary": memory_summary, "reason": reason})
    )


def _never() -> object:
    raise AssertionError("the layer carries out its own tools")


def _parameters(name: str) -> JsonObject:
    parameters = SCHEMAS[name]["parameters"]
    assert isinstance(parameters, dict)
    return parameters


def _langchain_tools() -> list[Any]:
    from langchain_core.tools import StructuredTool

    return [
        StructuredTool(
            name=name,
            description=str(SCHEMAS[name]["description"]),
            args_schema=_parameters(name),
            func=function,
        )
        for name, function in ((CANDIDATES, backtrack_candidates), (COMMIT, backtrack_commit))
    ]


def _qwen_tools() -> list[Any]:
    from qwen_agent.tools.base import BaseTool

    class Routed(BaseTool):  # type: ignore[misc]
        def call(self, params: str | dict[str, Any], **_: Any) -> str:
            return str(call_tool(self.name, json.loads(params) if isinstance(params, str) else params))

    return [
        type(
            name,
            (Routed,),
            {
                "name": name,
                "description": str(SCHEMAS[name]["description"]),
                "parameters": {
                    key: value for key, value in _parameters(name).items() if key != "additionalProperties"
                },
            },
        )()
        for name in (CANDIDATES, COMMIT)
    ]
