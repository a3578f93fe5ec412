"""A harness as small as one can be, for tests of the command line: its answers stand in its task.

The task is JSON: `plan` holds the moves of an agent that was never here before, `back` those of one that was.
Which move is next it reads from the conversation. Every live answer appends a line to the file `counter`.
"""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from agentrewind.adapters import AgentOutcome, Assignment
from agentrewind.capture.call import Call
from agentrewind.layer import Layer
from agentrewind.records import JsonObject


class Tiny:
    """Moves: `sh COMMAND`, `submit`, `candidates`, `commit STEP NOTE`, `say TEXT`, which ends the run.

    `fail FILE` is a provider that is down while the file exists, `touch FILE RUNS` one that writes to a
    file once the call before it has its snapshot in a log below RUNS.
    """

    def run(self, layer: Layer, assignment: Assignment) -> AgentOutcome:
        plans: dict[str, Any] = json.loads(assignment.task)
        messages: list[JsonObject] = [
            {"role": "system", "content": plans.get("system", "You are tiny.")},
            {"role": "user", "content": "go"},
        ]
        return converse(layer, assignment, messages, partial(provide, plans), parameters={})


def converse(
    layer: Layer,
    assignment: Assignment,
    messages: list[JsonObject],
    provider: Callable[[list[JsonObject]], JsonObject],
    *,
    parameters: dict[str, object],
) -> AgentOutcome:
    """The loop of a harness: ask the provider, carry out what it calls, until the end."""
    while True:
        call: Call[JsonObject] = Call(
            client="tiny",
            model=assignment.model,
            messages=messages,
            tools=layer.rewind_tools,
            parameters=parameters,
            encode=lambda answer: answer,
            decode=lambda output: output,
        )
        answer = layer.gate.run(call, provider)
        messages.append({"role": "assistant", **answer})
        calls: Any = answer["tool_calls"]
        if not calls:
            return AgentOutcome(state="stopped", detail="the agent had nothing more to do")
        for each in calls:
            ended = _carry_out(layer, assignment.workspace, messages, each)
            if ended is not None:
                return ended


def _carry_out(
    layer: Layer, workspace: Path, messages: list[JsonObject], call: dict[str, Any]
) -> AgentOutcome | None:
    name, arguments = call["function"]["name"], json.loads(call["function"]["arguments"])
    result = layer.run_tool(
        name,
        arguments,
        lambda: shell(arguments.get("command", "true"), workspace),
        tool_call_id=call["id"],
    )
    messages.append({"role": "tool", "tool_call_id": call["id"], "content": json.dumps(result.value)})
    if name == "submit":
        verdict = layer.submit(result.record_uid)
        if verdict.final:
            state = "accepted" if verdict.accepted else "rejected"
            return AgentOutcome(state=state, detail=f"the submission was {state}")
        messages.append({"role": "user", "content": verdict.feedback})
    return None


def shell(command: str, workspace: Path) -> dict[str, Any]:
    finished = subprocess.run(
        command, shell=True, cwd=workspace, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
    )
    return {"output": finished.stdout.decode("utf-8", "replace"), "returncode": finished.returncode}


def provide(plans: dict[str, Any], sent: list[JsonObject]) -> JsonObject:
    """The provider: an answer by what was sent, and a line in the file that counts."""
    with Path(plans["counter"]).open("a", encoding="utf-8") as counter:
        counter.write(f"{len(sent)}\n")
    words = ("You have been here before", "A person took you back")
    been_here = any(each in str(message["content"]) for message in sent for each in words)
    moves = plans["back" if been_here else "plan"]
    step = sum(1 for message in sent if message["role"] == "assistant")
    move = moves[step] if step < len(moves) else "say I am done."
    return answer_of(move, sent, number=step)


def answer_of(move: str, sent: list[JsonObject], *, number: int) -> JsonObject:
    word, _, rest = move.partition(" ")
    match word:
        case "sh":
            return calling(f"I run {rest}", number, "bash", {"command": rest})
        case "submit":
            return calling("I submit.", number, "submit", {})
        case "candidates":
            return calling("Where was I?", number, "backtrack_candidates", {"reason": "it is broken"})
        case "commit":
            step, _, note = rest.partition(" ")
            given = {"record_uid": candidate(sent, int(step)), "memory_summary": note}
            return calling("I go back.", number, "backtrack_commit", given)
        case "touch":
            path, _, runs = rest.partition(" ")
            _wait_for_snapshot(Path(runs), after=f"rec_{2 * number:06}")
            Path(path).write_text("from outside")
            return calling("I do nothing.", number, "bash", {"command": "true"})
        case "fail" if Path(rest).exists():
            raise ConnectionError("the provider is down")
        case _:
            return {"content": rest, "tool_calls": []}


def _wait_for_snapshot(runs: Path, *, after: str) -> None:
    """The state after the call before this one is captured while the provider thinks."""
    wanted = f'"event":"snapshot","record_uid":"{after}"'
    for _ in range(2000):
        if any(wanted in path.read_text() for path in runs.glob("*/segment-*.jsonl")):
            return
        time.sleep(0.01)
    raise TimeoutError(f"no snapshot after {after}")


def candidate(sent: list[JsonObject], step: int) -> str:
    """The id of a step in the list of candidates that was heard last."""
    listing = json.loads(json.loads(str(sent[-1]["content"])))
    found = [str(each["record_uid"]) for each in listing["candidates"] if each["step"] == step]
    return found[0]


def calling(text: str, number: int, name: str, arguments: dict[str, Any]) -> JsonObject:
    """An answer that calls one tool."""
    function: JsonObject = {"name": name, "arguments": json.dumps(arguments)}
    return {
        "content": text,
        "tool_calls": [{"id": f"call_{number}", "type": "function", "function": function}],
    }
