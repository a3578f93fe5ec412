"""The loop in which recorders are compared, and the peer that runs in an environment of its own.

    python peer_loop.py STEPS

Only the standard library is used here, and `rewind` (of PyPI's agent-rewind) where it is run as a program.
"""

from __future__ import annotations

import importlib
import json
import random
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ANSWER_BYTES, RESULT_BYTES = 600, 2500
Ask = Callable[[list[Any]], dict[str, Any]]
Act = Callable[[dict[str, Any]], dict[str, Any]]


def words(number: int, length: int) -> str:
    """Text of that length that no other number has."""
    rng = random.Random(number)
    text = " ".join(f"{rng.randrange(16**6):06x}" for _ in range(length // 7 + 1))
    return text[:length]


def answer(number: int) -> dict[str, Any]:
    """What the model says in a step, with one tool call."""
    function = {"name": "bash", "arguments": json.dumps({"command": f"make step-{number}"})}
    call = {"id": f"call_{number}", "type": "function", "function": function}
    return {"role": "assistant", "content": words(number, ANSWER_BYTES), "tool_calls": [call]}


def output(number: int) -> dict[str, Any]:
    """What the tool of a step gives."""
    return {"output": words(-number, RESULT_BYTES), "returncode": 0}


def loop(steps: int, ask: Ask, act: Act) -> list[float]:
    """Milliseconds of this thread's CPU for each step: an LLM call with a growing list, and a tool call."""
    messages: list[Any] = [
        {"role": "system", "content": "You work."},
        {"role": "user", "content": "Mend it."},
    ]
    costs: list[float] = []
    for _ in range(steps):
        began = time.thread_time()
        said = ask(messages)
        call = said["tool_calls"][0]
        done = act(call)
        costs.append((time.thread_time() - began) * 1e3)
        messages += [said, {"role": "tool", "tool_call_id": call["id"], "content": done["output"]}]
    return costs


def made(steps: int) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Answers and outputs of all steps, made beforehand."""
    return [answer(number) for number in range(steps)], [output(number) for number in range(steps)]


def number_of(call: dict[str, Any]) -> int:
    return int(call["id"].removeprefix("call_"))


def main(steps: int) -> None:
    """Record and replay with agent-rewind; prints `{"costs", "bytes", "replayed"}` (costs of the replay)."""
    rewind = importlib.import_module("rewind")
    answers, outputs = made(steps)

    @rewind.llm  # type: ignore[untyped-decorator]
    def model(messages: list[Any]) -> dict[str, Any]:
        return answers[(len(messages) - 2) // 2]

    @rewind.tool  # type: ignore[untyped-decorator]
    def bash(call: dict[str, Any]) -> dict[str, Any]:
        return outputs[number_of(call)]

    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder) / "run.rewind"
        with rewind.record(str(trace)):
            costs = loop(steps, model, bash)
        with rewind.replay(str(trace)):
            replayed = loop(steps, model, bash)
        print(json.dumps({"costs": costs, "bytes": trace.stat().st_size, "replayed": replayed}))


if __name__ == "__main__":
    main(int(sys.argv[1]))
