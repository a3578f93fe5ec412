"""A small agent with the shape of a real one, so that a run can be killed hundreds of times in a minute.

It talks chat completions over HTTP, runs its commands with a shell, submits, and rewinds, all through the
layer's own seams. It imports no client, so a fresh process is there in half a second.
"""

from __future__ import annotations

import json
import os
import subprocess
import urllib.request
from typing import Any

from agentrewind.adapters import AgentOutcome, Assignment
from agentrewind.capture.call import Call
from agentrewind.layer import Layer, ToolResult

SUBMIT = "submit"


class SmallAgent:
    def run(self, layer: Layer, assignment: Assignment) -> AgentOutcome:
        messages: list[dict[str, Any]] = [
            {"role": "system", "content": f"You are small.\n{layer.guidance}"},
            {"role": "user", "content": assignment.task},
        ]
        while True:
            answer = _ask(layer, assignment.model, messages)
            messages.append(answer)
            for call in answer.get("tool_calls") or ():
                result = _carry_out(layer, assignment, call)
                messages.append({"role": "tool", "tool_call_id": call["id"], "content": _text(result.value)})
                if isinstance(result.value, dict) and result.value.get("output") == f"{SUBMIT}\n":
                    verdict = layer.submit(result.record_uid)
                    if verdict.final:
                        state = "accepted" if verdict.accepted else "rejected"
                        return AgentOutcome(state=state, detail="")
                    messages.append({"role": "user", "content": verdict.feedback})


def _ask(layer: Layer, model: str, messages: list[dict[str, Any]]) -> dict[str, Any]:
    tools = [{"type": "function", "function": {"name": "sh", "parameters": {}}}, *layer.rewind_tools]
    call: Call[dict[str, Any]] = Call(
        client="small",
        model=model,
        messages=messages,
        tools=tools,
        parameters={},
        encode=lambda body: {**body["choices"][0]["message"], "response": {"id": body["id"]}},
        decode=lambda output: {
            "choices": [{"message": {k: v for k, v in output.items() if k != "response"}}]
        },
    )

    def perform(sent: list[Any]) -> dict[str, Any]:
        body = json.dumps({"model": model, "messages": sent, "tools": tools}).encode()
        url = os.environ["OPENAI_BASE_URL"] + "/chat/completions"
        request = urllib.request.Request(url, body, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request) as answer:
            found: dict[str, Any] = json.load(answer)
        return found

    message: dict[str, Any] = layer.gate.run(call, perform)["choices"][0]["message"]
    return message


def _carry_out(layer: Layer, assignment: Assignment, call: dict[str, Any]) -> ToolResult:
    name, arguments = call["function"]["name"], json.loads(call["function"]["arguments"])

    def perform() -> dict[str, Any]:
        done = subprocess.run(
            ["sh", "-c", arguments["command"]], cwd=assignment.workspace, capture_output=True, text=True
        )
        return {"output": done.stdout, "returncode": done.returncode}

    return layer.run_tool(name, arguments, perform, tool_call_id=call["id"])


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)
