"""Puts a person's words in the place of what a model answered at a node. Pure."""

from __future__ import annotations

import copy
import json
from dataclasses import replace

from agentrewind.errors import UsageError
from agentrewind.records import Json, JsonObject, LlmNode, Metadata

_THOUGHTS = ("reasoning_content", "reasoning", "thinking_blocks", "refusal", "provider_specific_fields")


def read_answer(text: str) -> Json:
    """The object that a text is, else the text itself. Raises UsageError for one that only begins like it."""
    if not text.lstrip().startswith("{"):
        return text
    try:
        found: Json = json.loads(text)
    except ValueError as error:
        raise UsageError(f"the answer looks like JSON and is none: {error}") from error
    return found


def edited(node: LlmNode, answer: Json) -> LlmNode:
    """The node as if the model had answered this.

    `answer` is text, or an object with `content` (text) and `tool_calls`, each with `name` and `arguments`
    (an object, or JSON text), or as chat completions have them. Raises UsageError for anything else, and for
    answers of APIs other than chat completions.
    """
    output = copy.deepcopy(node.output or {})
    choice = _choice(output)
    given: JsonObject = answer if isinstance(answer, dict) else {"content": answer}
    if unknown := given.keys() - {"content", "tool_calls"}:
        raise UsageError(f"an answer has `content` and `tool_calls`, not {', '.join(sorted(unknown))}")
    content, calls = given.get("content"), given.get("tool_calls") or []
    if not isinstance(content, str | None) or not isinstance(calls, list) or not (content or calls):
        raise UsageError("an answer is a text, or an object with text as `content` or a list as `tool_calls`")
    output["content"] = content
    output["tool_calls"] = [_call(each, node, place) for place, each in enumerate(calls)]
    choice["finish_reason"] = "tool_calls" if calls else "stop"
    message = choice.get("message")
    if isinstance(message, dict):
        # what the model had thought belongs to what it had answered
        for name in _THOUGHTS:
            message.pop(name, None)
    span = {name: replace(each, after_commit=None) for name, each in node.metadata.workspaces.items()}
    metadata: Metadata = replace(node.metadata, workspaces=span)
    return replace(node, output=output, error=None, metadata=metadata)


def _choice(output: JsonObject) -> JsonObject:
    """The choice within the provider's own answer, which says how it ended; an unused one without such."""
    if "response" not in output:
        return {}
    response = output["response"]
    choices = response.get("choices") if isinstance(response, dict) else None
    found = [each for each in choices if isinstance(each, dict)] if isinstance(choices, list) else []
    if len(found) != 1:
        raise UsageError("only an answer of chat completions, and of one choice, can be edited")
    return found[0]


def _call(call: Json, node: LlmNode, place: int) -> JsonObject:
    if not isinstance(call, dict):
        raise UsageError("each of `tool_calls` is an object with `name` and `arguments`")
    function = call.get("function")
    named = function if isinstance(function, dict) else call
    name, arguments = named.get("name"), named.get("arguments", {})
    if not isinstance(name, str) or not isinstance(arguments, str | dict):
        raise UsageError("each of `tool_calls` has a `name`, and `arguments` as an object or as JSON text")
    text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    uid = call.get("id") if isinstance(call.get("id"), str) else f"call_{node.record_uid}_edited_{place}"
    return {"id": uid, "type": "function", "function": {"name": name, "arguments": text}}
