"""A harness that imports nothing heavy, so that many cells can be run: a shell, the two tools, real HTTP."""

from __future__ import annotations

import json
import os
import urllib.request
from typing import Any

from agentrewind.adapters import AgentOutcome, Assignment
from agentrewind.capture.call import Call
from agentrewind.layer import Layer
from agentrewind.records import JsonObject
from harness_adapters.shell import Shell, open_shell

NAME = "tests.runner.small:Small"
SUBMIT = "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"

_BASH: JsonObject = {
    "type": "function",
    "function": {"name": "bash", "parameters": {"type": "object", "properties": {}}},
}


class Small:
    """One command an answer; `echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT` submits."""

    def run(self, layer: Layer, assignment: Assignment) -> AgentOutcome:
        messages: list[JsonObject] = [
            {"role": "system", "content": f"You are small. {layer.guidance}"},
            {"role": "user", "content": assignment.task},
        ]
        with open_shell(assignment) as shell:
            while True:
                answer = self._ask(layer, assignment.model, messages)
                messages.append({"role": "assistant", **answer})
                calls: Any = answer.get("tool_calls") or []
                if not calls:
                    return AgentOutcome(state="stopped", detail="the agent had nothing more to do")
                for call in calls:
                    ended = self._carry_out(layer, shell, messages, call)
                    if ended is not None:
                        return ended

    def _ask(self, layer: Layer, model: str, messages: list[JsonObject]) -> JsonObject:
        call: Call[JsonObject] = Call(
            client="small",
            model=model,
            messages=messages,
            tools=[_BASH, *layer.rewind_tools],
            parameters={},
            encode=lambda answer: answer,
            decode=lambda output: output,
        )
        return layer.gate.run(call, lambda sent: _post(model, sent, [_BASH, *layer.rewind_tools]))

    def _carry_out(
        self, layer: Layer, shell: Shell, messages: list[JsonObject], call: dict[str, Any]
    ) -> AgentOutcome | None:
        name, arguments = call["function"]["name"], json.loads(call["function"]["arguments"])

        def perform() -> JsonObject:
            ended = shell.run(str(arguments.get("command", "")), None)
            return {"output": ended.output, "returncode": ended.exit_code}

        result = layer.run_tool(name, arguments, perform, tool_call_id=call["id"])
        text = result.value if isinstance(result.value, str) else json.dumps(result.value)
        messages.append({"role": "tool", "tool_call_id": call["id"], "content": text})
        if arguments.get("command") == SUBMIT:
            verdict = layer.submit(result.record_uid)
            if verdict.final:
                state = "accepted" if verdict.accepted else "rejected"
                return AgentOutcome(state=state, detail=f"the submission was {state}")
            messages.append({"role": "user", "content": verdict.feedback})
        return None


def _post(model: str, messages: list[Any], tools: list[JsonObject]) -> JsonObject:
    body = json.dumps({"model": model.removeprefix("openai/"), "messages": messages, "tools": tools})
    request = urllib.request.Request(
        os.environ["OPENAI_BASE_URL"] + "/chat/completions",
        data=body.encode(),
        headers={"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=60) as response:
        document = json.load(response)
    message: JsonObject = document["choices"][0]["message"]
    return {**message, "usage": document["usage"]}
