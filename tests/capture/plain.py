"""A provider that is a function in this process, and a client that asks it through the gate."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, field

from agentrewind.capture.call import Call
from agentrewind.layer import Layer
from agentrewind.records import Json, JsonObject

SYSTEM: JsonObject = {"role": "system", "content": "You work in a shell."}
TASK: JsonObject = {"role": "user", "content": "Mend the build."}
START: list[JsonObject] = [SYSTEM, TASK]


@dataclass
class Provider:
    """Answers by a script and remembers what it was sent; an exception in the script is raised."""

    script: list[JsonObject | BaseException] = field(default_factory=list)
    received: list[list[object]] = field(default_factory=list)

    def __call__(self, messages: Sequence[object]) -> JsonObject:
        self.received.append(copy.deepcopy(list(messages)))
        answer = self.script.pop(0) if self.script else says(f"answer {len(self.received)}")
        if isinstance(answer, BaseException):
            raise answer
        return answer


def says(text: str, *calls: tuple[str, str, str]) -> JsonObject:
    """An answer with tool calls, each an id, a name and its arguments as text."""
    named: list[Json] = [
        {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}
        for call_id, name, arguments in calls
    ]
    return {"content": text, "tool_calls": named}


def call_of(
    messages: Sequence[object], *, parameters: dict[str, object] | None = None, tools: object = None
) -> Call[JsonObject]:
    return Call(
        client="plain",
        model="m",
        messages=messages,
        tools=tools,
        parameters=parameters or {},
        encode=lambda answer: {**answer, "encoded": True},
        decode=lambda output: {name: value for name, value in output.items() if name != "encoded"},
    )


def ask(layer: Layer, provider: Provider, messages: Sequence[object], **parameters: object) -> JsonObject:
    """One call of a harness."""
    return layer.gate.run(call_of(messages, parameters=parameters), provider)


def grown(messages: Sequence[JsonObject], answer: JsonObject, *results: str) -> list[JsonObject]:
    """The history after an answer and the results of its calls."""
    calls = answer.get("tool_calls")
    ids = [str(call["id"]) for call in calls if isinstance(call, dict)] if isinstance(calls, list) else []
    answered: JsonObject = {"role": "assistant", **answer}
    heard: list[JsonObject] = [
        {"role": "tool", "tool_call_id": call_id, "content": result}
        for call_id, result in zip(ids, results, strict=True)
    ]
    return [*messages, answered, *heard]
