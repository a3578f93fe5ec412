"""Joins litellm to the gate: `completion` and `acompletion`, wherever they were bound.

litellm is never imported from here; the wrappers are put in place when somebody else imports it.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable
from types import ModuleType
from typing import Any

from agentrewind.capture.gate import Call, Gate, is_inside
from agentrewind.capture.hook import replace_everywhere, when_imported
from agentrewind.errors import DamagedError, UsageError
from agentrewind.jsonform import to_json
from agentrewind.records import JsonObject

CurrentGate = Callable[[], Gate | None]

_MARK = "__agentrewind__"


def install(current_gate: CurrentGate) -> None:
    """Wrap litellm's entry points now or as soon as it is imported. Installing twice changes nothing."""
    when_imported("litellm", functools.partial(_patch, current_gate=current_gate))


def _patch(module: ModuleType, *, current_gate: CurrentGate) -> None:
    for name, wrap in (("completion", _wrap), ("acompletion", _wrap_async)):
        original = getattr(module, name)
        if hasattr(original, _MARK):
            continue
        wrapped = wrap(original, module, current_gate)
        setattr(wrapped, _MARK, original)
        replace_everywhere(original, wrapped)


def _wrap(original: Callable[..., Any], module: ModuleType, current_gate: CurrentGate) -> Callable[..., Any]:
    @functools.wraps(original)
    def completion(*args: Any, **kwargs: Any) -> Any:
        gate = current_gate()
        if gate is None or is_inside():
            return original(*args, **kwargs)
        with gate.stopping():
            bound = _bind(args, kwargs)
            call = _call("litellm.completion", bound, module)
        if bound.get("acompletion"):
            return gate.arun(call, lambda messages: original(**{**bound, "messages": messages}))
        return gate.run(call, lambda messages: original(**{**bound, "messages": messages}))

    return completion


def _wrap_async(
    original: Callable[..., Any], module: ModuleType, current_gate: CurrentGate
) -> Callable[..., Any]:
    @functools.wraps(original)
    async def acompletion(*args: Any, **kwargs: Any) -> Any:
        gate = current_gate()
        if gate is None or is_inside():
            return await original(*args, **kwargs)
        with gate.stopping():
            bound = _bind(args, kwargs)
            call = _call("litellm.acompletion", bound, module)
        return await gate.arun(call, lambda messages: original(**{**bound, "messages": messages}))

    return acompletion


def _bind(args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """Positional arguments under their names: `model` and `messages` come first in both signatures."""
    if len(args) > 2:
        raise UsageError("litellm.completion takes model and messages by position, the rest by name")
    return {**dict(zip(("model", "messages"), args, strict=False)), **kwargs}


def _call(client: str, bound: dict[str, Any], module: ModuleType) -> Call[Any]:
    if bound.get("stream"):
        raise UsageError(f"{client}(stream=True) cannot be recorded yet; ask for a whole answer")
    parameters = {
        name: value
        for name, value in bound.items()
        if name not in ("model", "messages", "tools", "acompletion")
    }
    return Call(
        client=client,
        model=str(bound.get("model", "")),
        messages=bound.get("messages") or (),
        tools=bound.get("tools"),
        parameters=parameters,
        encode=encode_answer,
        decode=lambda output: module.ModelResponse(**decode_answer(output)),
    )


def encode_answer(response: Any) -> JsonObject:
    """A chat completion as JSON, with content, tool calls and usage of its only choice lifted to the top."""
    dump = to_json(response.model_dump(mode="json"))
    if not isinstance(dump, dict):
        raise UsageError(f"litellm answered with {type(response).__name__}, which is no chat completion")
    output: JsonObject = {
        "content": None,
        "tool_calls": [],
        "usage": dump.pop("usage", None),
        "response": dump,
    }
    message = _only_message(dump)
    if message is not None:
        output["content"] = message.pop("content", None)
        output["tool_calls"] = message.pop("tool_calls", None)
    return output


def decode_answer(output: JsonObject) -> JsonObject:
    """The inverse of `encode_answer`."""
    dump = copy.deepcopy(output["response"])
    if not isinstance(dump, dict):
        raise DamagedError("a recorded answer of litellm has no response object")
    message = _only_message(dump)
    if message is not None:
        message["content"] = output.get("content")
        message["tool_calls"] = output.get("tool_calls")
    if output.get("usage") is not None:
        dump["usage"] = output["usage"]
    return dump


def _only_message(dump: JsonObject) -> JsonObject | None:
    choices = dump.get("choices")
    if not isinstance(choices, list) or len(choices) != 1 or not isinstance(choices[0], dict):
        return None
    message = choices[0].get("message")
    return message if isinstance(message, dict) else None
