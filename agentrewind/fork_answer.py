"""Puts a person's words in the place of what a model answered at a node. Pure."""

from __future__ import annotations

import copy
import json
from dataclasses import dataclass, replace

from agentrewind.errors import UsageError
from agentrewind.records import Json, JsonObject, LlmNode, Metadata

_THOUGHTS = ("reasoning_content", "reasoning", "thinking_blocks", "refusal", "provider_specific_fields")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Call:
    """A tool call of the new answer; its arguments are an object, or text where the tool takes text."""

    uid: str
    name: str
    arguments: JsonObject | str

    @property
    def text(self) -> str:
        given = self.arguments
        return given if isinstance(given, str) else json.dumps(given, ensure_ascii=False)

    @property
    def fields(self) -> JsonObject:
        """The arguments as an object. Raises UsageError where they are none."""
        try:
            found: Json = json.loads(self.arguments) if isinstance(self.arguments, str) else self.arguments
        except ValueError as error:
            raise UsageError(f"the arguments of {self.name} are no JSON object: {error}") from error
        if not isinstance(found, dict):
            raise UsageError(f"the arguments of {self.name} are no JSON object")
        return found


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
    """The node as if the model had answered this, in the form in which it had answered.

    `answer` is text, or an object with `content` (text) and `tool_calls`, each with `name` and `arguments`
    (an object, or JSON text), or as chat completions have them. What the model had thought and how many
    tokens it took stays with what it had answered: thoughts go, usage is left as it was. Raises UsageError
    for anything else, and for a recorded answer of no known form or of several choices.
    """
    given: JsonObject = answer if isinstance(answer, dict) else {"content": answer}
    if unknown := given.keys() - {"content", "tool_calls"}:
        raise UsageError(f"an answer has `content` and `tool_calls`, not {', '.join(sorted(unknown))}")
    content, listed = given.get("content"), given.get("tool_calls") or []
    if not isinstance(content, str | None) or not isinstance(listed, list) or not (content or listed):
        raise UsageError("an answer is a text, or an object with text as `content` or a list as `tool_calls`")
    calls = [_call(each, node, place) for place, each in enumerate(listed)]
    output = copy.deepcopy(node.output or {})
    if "response" in output:
        _say(output["response"], content, calls, node)
    output["content"] = content
    output["tool_calls"] = [
        {"id": each.uid, "type": "function", "function": {"name": each.name, "arguments": each.text}}
        for each in calls
    ]
    span = {name: replace(each, after_commit=None) for name, each in node.metadata.workspaces.items()}
    metadata: Metadata = replace(node.metadata, workspaces=span)
    return replace(node, output=output, error=None, metadata=metadata)


def _say(response: Json, content: str | None, calls: list[_Call], node: LlmNode) -> None:
    """Let the provider's own answer say this; each form has its own place for it."""
    body = response if isinstance(response, dict) else {}
    choices, generations = _objects(body.get("choices")), _objects(body.get("generations"))
    if len(choices) == 1:
        _say_in_chat(choices[0], calls)
    elif body.get("object") == "response":
        body["output"] = _items(content, calls, node)
        body.update({"status": "completed", "error": None, "incomplete_details": None})
    elif body.get("type") == "message":
        body["content"] = _blocks(content, calls)
        body.update({"stop_reason": "tool_use" if calls else "end_turn", "stop_sequence": None})
    elif len(generations) == 1:
        _say_in_langchain(generations[0], content, calls)
    else:
        raise UsageError(
            "the recorded answer has no form in which another one can be written: it is none of chat "
            "completions, responses, Anthropic messages or LangChain, or has several choices"
        )


def _say_in_chat(choice: JsonObject, calls: list[_Call]) -> None:
    # content and calls are those at the top of the output
    choice["finish_reason"] = "tool_calls" if calls else "stop"
    message = choice.get("message")
    if isinstance(message, dict):
        for name in _THOUGHTS:
            message.pop(name, None)
        if not calls:
            # providers say nothing where there are none, and refuse an empty list in what they are sent
            message.pop("tool_calls", None)


def _items(content: str | None, calls: list[_Call], node: LlmNode) -> list[Json]:
    """The output of the Responses API: a message, then the calls."""
    end = f"{node.record_uid}_edited"
    found: list[Json] = []
    if content:
        part: JsonObject = {"type": "output_text", "text": content, "annotations": [], "logprobs": []}
        found.append(
            {
                "id": f"msg_{end}",
                "type": "message",
                "role": "assistant",
                "status": "completed",
                "content": [part],
            }
        )
    for place, call in enumerate(calls):
        item: JsonObject = {"status": "completed", "call_id": call.uid, "name": call.name}
        if call.name in _taking_text(node.tools):
            item |= {"id": f"ctc_{end}_{place}", "type": "custom_tool_call", "input": call.text}
        else:
            item |= {"id": f"fc_{end}_{place}", "type": "function_call", "arguments": call.text}
        found.append(item)
    return found


def _taking_text(tools: Json) -> frozenset[str]:
    """The names of the tools whose input is a text of any form."""
    return frozenset(str(each.get("name")) for each in _objects(tools) if each.get("type") == "custom")


def _blocks(content: str | None, calls: list[_Call]) -> list[Json]:
    """The content of an Anthropic message."""
    texts: list[Json] = [{"type": "text", "text": content}] if content else []
    uses: list[Json] = [
        {"type": "tool_use", "id": call.uid, "name": call.name, "input": call.fields} for call in calls
    ]
    return texts + uses


def _say_in_langchain(generation: JsonObject, content: str | None, calls: list[_Call]) -> None:
    message = generation.get("message")
    data = message.get("data") if isinstance(message, dict) else None
    if not isinstance(data, dict):
        raise UsageError("the recorded answer of a LangChain model has no message to be edited")
    data["content"] = content or ""
    data["tool_calls"] = [
        {"type": "tool_call", "id": call.uid, "name": call.name, "args": call.fields} for call in calls
    ]
    data.update({"invalid_tool_calls": [], "additional_kwargs": {}})
    for place in (data.get("response_metadata"), generation.get("generation_info")):
        if isinstance(place, dict) and "finish_reason" in place:
            place["finish_reason"] = "tool_calls" if calls else "stop"


def _call(call: Json, node: LlmNode, place: int) -> _Call:
    if not isinstance(call, dict):
        raise UsageError("each of `tool_calls` is an object with `name` and `arguments`")
    function = call.get("function")
    named = function if isinstance(function, dict) else call
    name, arguments = named.get("name"), named.get("arguments", {})
    if not isinstance(name, str) or not isinstance(arguments, str | dict):
        raise UsageError("each of `tool_calls` has a `name`, and `arguments` as an object or as JSON text")
    uid = call.get("id")
    return _Call(
        uid=uid if isinstance(uid, str) else f"call_{node.record_uid}_edited_{place}",
        name=name,
        arguments=arguments,
    )


def _objects(value: Json) -> list[JsonObject]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []
