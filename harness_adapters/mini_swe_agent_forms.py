"""How each of mini-SWE-agent's model classes asks, and how its answers name the layer's two tools."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

from agentrewind.errors import UsageError
from agentrewind.layer import Layer
from agentrewind.records import JsonObject

Action = dict[str, Any]
Parse = Callable[[Any], list[Action]]

_IN_TEXT = """

In your answers each of the two takes the place of the command, alone in the code block, with its arguments \
as one JSON object behind its name: `backtrack_candidates {"reason": "…"}`, and, once you have read what it \
answers, `backtrack_commit {"record_uid": "…", "memory_summary": "…"}` in a later answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """One model class's way of speaking.

    Attributes:
        ask: makes the class's request with the two tools beside its shell.
        actions: the actions of an answer in their order, by the class's own parser but for those of the
            layer, which carry `rewind` and `arguments`. Raises what the parser raises.
        result: the field of an observation that holds what the tool answered.
        how_to: what the guidance has to say besides, where tools are no tools of the provider's API.
    """

    ask: Callable[[Any, Layer, list[Any], dict[str, Any]], Any]
    actions: Callable[[Any, Layer, Parse], list[Action]]
    result: str = "content"
    how_to: str = ""


def form_of(model: Any) -> Form:
    """The form of a model's class. Raises UsageError for a class that asks in another way."""
    from minisweagent.models.litellm_model import LitellmModel
    from minisweagent.models.litellm_response_model import LitellmResponseModel
    from minisweagent.models.litellm_textbased_model import LitellmTextbasedModel

    # by the method that asks: a subclass with one of its own would be overruled without a word
    forms = {LitellmModel._query: CHAT, LitellmResponseModel._query: RESPONSES}
    forms[LitellmTextbasedModel._query] = TEXT
    form = forms.get(getattr(type(model), "_query", None))
    if form is None:
        raise UsageError(
            f"{type(model).__name__} does not ask its provider as one of mini-SWE-agent's litellm classes "
            "does; use the model class litellm, litellm_response or litellm_textbased"
        )
    return form


def is_text(model_class: str) -> bool:
    """Whether the package's `model_class` setting names the class without tool calls."""
    from minisweagent.models import get_model_class
    from minisweagent.models.litellm_textbased_model import LitellmTextbasedModel

    return issubclass(get_model_class("", model_class), LitellmTextbasedModel)


# --- tool calls of chat completions ---


def _ask_chat(model: Any, layer: Layer, messages: list[Any], more: dict[str, Any]) -> Any:
    import litellm
    from minisweagent.models.utils.actions_toolcall import BASH_TOOL

    return litellm.completion(
        model=model.config.model_name,
        messages=messages,
        tools=[BASH_TOOL, *layer.rewind_tools],
        **(model.config.model_kwargs | more),
    )


def _chat_actions(response: Any, layer: Layer, parse: Parse) -> list[Action]:
    calls = response.choices[0].message.tool_calls or []
    named = [(call.function.name, call.function.arguments, call.id) for call in calls]

    def alone(place: int) -> Any:
        only = response.model_copy(deep=True)
        only.choices[0].message.tool_calls = [calls[place]]
        return only

    return _from_calls(response, named, alone, layer, parse)


# --- function calls of the Responses API ---


def _ask_responses(model: Any, layer: Layer, messages: list[Any], more: dict[str, Any]) -> Any:
    import litellm
    from minisweagent.models.utils.actions_toolcall_response import BASH_TOOL_RESPONSE_API

    flat = [{"type": "function", **cast("JsonObject", tool["function"])} for tool in layer.rewind_tools]
    return litellm.responses(
        model=model.config.model_name,
        input=messages,
        tools=[BASH_TOOL_RESPONSE_API, *flat],
        **(model.config.model_kwargs | more),
    )


def _response_actions(response: Any, layer: Layer, parse: Parse) -> list[Action]:
    calls = [item for item in response.output if _field(item, "type") == "function_call"]
    named = [(_field(call, "name"), _field(call, "arguments"), _field(call, "call_id")) for call in calls]

    def alone(place: int) -> Any:
        return response.model_copy(update={"output": [calls[place]]})

    return _from_calls(response, named, alone, layer, parse)


def _field(item: Any, name: str) -> Any:
    return item.get(name) if isinstance(item, dict) else getattr(item, name, None)


# --- one command in the text ---


def _ask_text(model: Any, layer: Layer, messages: list[Any], more: dict[str, Any]) -> Any:
    import litellm

    return litellm.completion(
        model=model.config.model_name, messages=messages, **(model.config.model_kwargs | more)
    )


def _text_actions(response: Any, layer: Layer, parse: Parse) -> list[Action]:
    actions = parse(response)
    for action in actions:
        name, *rest = action["command"].split(maxsplit=1)
        if layer.is_rewind_tool(name):
            action |= {"command": "", "rewind": name, "arguments": _arguments(rest[0] if rest else "{}")}
    return actions


CHAT = Form(ask=_ask_chat, actions=_chat_actions)
RESPONSES = Form(ask=_ask_responses, actions=_response_actions, result="output")
TEXT = Form(ask=_ask_text, actions=_text_actions, how_to=_IN_TEXT)


def _from_calls(
    response: Any,
    named: list[tuple[str, str, str]],
    alone: Callable[[int], Any],
    layer: Layer,
    parse: Parse,
) -> list[Action]:
    """One action per call, in their order."""
    if not any(layer.is_rewind_tool(name) for name, _, _ in named):
        return parse(response)
    actions: list[Action] = []
    for place, (name, arguments, call_id) in enumerate(named):
        if layer.is_rewind_tool(name):
            mine = {"rewind": name, "arguments": _arguments(arguments)}
            actions.append({"command": "", "tool_call_id": call_id, **mine})
        else:
            actions += parse(alone(place))
    return actions


def _arguments(text: str) -> Any:
    try:
        return json.loads(text, strict=False)  # a note of several lines is often written as it is
    except json.JSONDecodeError:
        return text
