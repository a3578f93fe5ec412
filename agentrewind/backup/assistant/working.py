"""A loop around a model with a shell that writes into one directory alone, until it finishes or must stop."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from agentrewind.backup.assistant.model import Message, Model, first_object
from agentrewind.backup.enclosure import Enclosure
from agentrewind.records import JsonObject

_SHELL: JsonObject = {
    "type": "function",
    "function": {
        "name": "shell",
        "description": "Run a command with bash; everything but $BACKUP_DIR is read-only.",
        "parameters": {
            "type": "object",
            "properties": {"command": {"type": "string"}},
            "required": ["command"],
        },
    },
}


def finish_tool(description: str, properties: JsonObject, required: list[str]) -> JsonObject:
    """The tool `finish`, by which the model ends its work."""
    return {
        "type": "function",
        "function": {
            "name": "finish",
            "description": description,
            "parameters": {"type": "object", "properties": properties, "required": [*required]},
        },
    }


def finishes(
    model: Model,
    messages: list[Message],
    enclosure: Enclosure,
    *,
    finish: JsonObject,
    steps: int,
    seconds: Callable[[], float],
) -> Iterator[dict[str, Any]]:
    """The arguments of each call of `finish`; who takes one asks for no more, and the model works no longer.

    Ends after so many answers, or once `seconds`, asked before each of them for what its commands may take,
    says none. Raises CaptureError where the model gives no answer.
    """
    for _ in range(steps):
        left = seconds()
        if left <= 0:
            return
        answer = model.ask(messages, (_SHELL, finish))
        messages.append(answer.message)
        if not answer.calls:
            messages.append({"role": "user", "content": "Use `shell`, or end with `finish`."})
        for uid, name, given in answer.calls:
            arguments = first_object(given)
            if name == "finish" and arguments is not None:
                yield arguments
            command = (arguments or {}).get("command")
            if name == "shell" and isinstance(command, str):
                ran = enclosure.run(command, seconds=left)
                result = f"exit code {ran.code}\n{ran.shown}"
            else:
                result = "There are two tools: shell with a command, and finish with what it requires."
            messages.append({"role": "tool", "tool_call_id": uid, "content": result})
