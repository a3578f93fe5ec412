"""Answers in the form that Qwen-Agent's prompt asks for, made from answers with tool calls, and back."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

from harness_adapters.demo.forms import TaggedText
from harness_adapters.scripted import Policy, ScriptedAnswer, ScriptedRequest, ToolCall
from harness_adapters.scripted_request import text_of


def in_tags(policy: Policy) -> Policy:
    """A policy that speaks tool calls, for an agent that reads and writes them as text.

    The conversation is shown to it with calls and results in it, as chat completions would have them.
    """

    def tagged(request: ScriptedRequest) -> ScriptedAnswer:
        answer = policy(with_calls(request))
        said = [
            f"<tool_call>\n{json.dumps({'name': name, 'arguments': arguments})}\n</tool_call>"
            for name, arguments in answer.tool_calls
        ]
        return dataclasses.replace(answer, content="\n".join([answer.content or "", *said]), tool_calls=())

    return tagged


def with_calls(request: ScriptedRequest) -> ScriptedRequest:
    """The request with its tagged texts taken apart."""
    form = TaggedText()
    messages: list[dict[str, Any]] = []
    waiting: list[ToolCall] = []
    for index, message in enumerate(request.messages):
        text = text_of(message)
        if message["role"] == "assistant" and "<tool_call>" in text:
            calls = [json.loads(part.partition("</tool_call>")[0]) for part in text.split("<tool_call>")[1:]]
            waiting = [
                ToolCall(
                    call_id=f"text_{index}_{place}",
                    name=call["name"],
                    arguments=json.dumps(call["arguments"]),
                )
                for place, call in enumerate(calls)
            ]
            messages.append(
                {
                    "role": "assistant",
                    "content": text.partition("<tool_call>")[0].strip(),
                    "tool_calls": [
                        {
                            "id": call.call_id,
                            "type": "function",
                            "function": {"name": call.name, "arguments": call.arguments},
                        }
                        for call in waiting
                    ],
                }
            )
        elif message["role"] == "user" and text.startswith("<tool_response>"):
            parts = [part.partition("\n</tool_response>")[0] for part in text.split("<tool_response>\n")[1:]]
            messages += [
                {"role": "tool", "tool_call_id": call.call_id, "content": part}
                for call, part in zip(waiting, parts, strict=True)
            ]
        else:
            messages.append(dict(message))
    tools = [{"type": "function", "function": {"name": name}} for name in sorted(form.offers(request))]
    return dataclasses.replace(request, messages=tuple(messages), tools=tuple(tools))
