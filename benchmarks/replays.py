"""Measures how fast a recorded run is replayed, through litellm and through the layer alone."""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from conversation import (
    ANSWER_BYTES,
    CLOCK,
    TOOLS,
    Talk,
    create_run,
    opened,
    outcome,
    words,
)
from meter import Meter
from rewinds import KEY, MODEL
from workspace import Cost, median

from agentrewind.capture.call import Call
from agentrewind.capture.install import install_all
from agentrewind.capture.litellm_calls import CHAT, LitellmCall
from agentrewind.current import current_gate, set_layer
from agentrewind.layer import Layer
from agentrewind.opening import Place, replay_layer
from agentrewind.replayer import OnDivergence


def record_offline(place: Place, steps: int) -> list[Any]:
    """A run recorded through the layer without a server; the message list at its end."""
    litellm = importlib.import_module("litellm")
    talk = Talk()
    with opened(place) as layer:
        for number in range(steps):
            answer = litellm.ModelResponse(
                id=f"chatcmpl-{number}",
                model="scripted",
                created=1_700_000_000,
                usage={"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
                choices=[
                    {
                        "index": 0,
                        "finish_reason": "tool_calls",
                        "message": {
                            "role": "assistant",
                            "content": words(number, ANSWER_BYTES),
                            "tool_calls": [tool_call(number)],
                        },
                    }
                ],
            )
            asked = LitellmCall(
                gate=layer.gate,
                route=CHAT,
                package=litellm,
                bound={"model": MODEL, "messages": talk.messages, "tools": TOOLS},
            )
            call = talk.heard(layer.gate.run(asked.for_gate(), partial(given, answer)))
            arguments = json.loads(call["function"]["arguments"])
            result = layer.run_tool("bash", arguments, partial(outcome, number), tool_call_id=call["id"])
            talk.did(call, result.value)
    return talk.messages


def tool_call(number: int) -> dict[str, Any]:
    arguments = json.dumps({"command": f"make step-{number}"})
    return {"id": f"call_{number}", "type": "function", "function": {"name": "bash", "arguments": arguments}}


def given(answer: Any, _sent: list[Any]) -> Any:
    return answer


def never() -> Any:
    raise AssertionError("a replay called something")


def replay_litellm(layer: Layer, steps: int) -> None:
    """The loop with litellm, its responses rebuilt from the log."""
    litellm = importlib.import_module("litellm")
    set_layer(layer)
    talk = Talk()
    try:
        for _ in range(steps):
            call = talk.heard(
                litellm.completion(model=MODEL, messages=talk.messages, tools=TOOLS, api_key=KEY)
            )
            arguments = json.loads(call["function"]["arguments"])
            talk.did(call, layer.run_tool("bash", arguments, never, tool_call_id=call["id"]).value)
    finally:
        set_layer(None)


def replay_bare(layer: Layer, whole: list[Any]) -> None:
    """The same requests through the gate alone: no client's objects."""
    messages = whole[:2]
    for place in range(2, len(whole), 2):
        asked: Call[Any] = Call(
            client="litellm.completion",
            model=MODEL,
            messages=messages,
            tools=TOOLS,
            parameters={},
            encode=lambda answer: answer,
            decode=lambda output: output,
        )
        layer.gate.run(asked, lambda _sent: never())
        call = whole[place]["tool_calls"][0]
        arguments = json.loads(call["function"]["arguments"])
        layer.run_tool("bash", arguments, never, tool_call_id=call["id"])
        messages += whole[place : place + 2]


def replay_lines(base: Path, sizes: list[int]) -> list[str]:
    lines = [
        "| replay of | nodes | nodes/s of CPU (of wall) | reading the log first, ms | ask |",
        "| --- | --- | --- | --- | --- |",
    ]
    install_all(current_gate)
    for nodes in sizes:
        root = base / f"ws-{nodes}"
        root.mkdir()
        place = create_run(base, f"replay-{nodes}", root)
        whole = record_offline(place, nodes // 2)
        ways: dict[str, Callable[[Layer], None]] = {
            "the loop through litellm": partial(replay_litellm, steps=nodes // 2),
            "the gate and the layer alone": partial(replay_bare, whole=whole),
        }
        reading = partial(replay_layer, place.run, clock=CLOCK, warn=print, on_divergence=OnDivergence.STOP)
        for what, way in ways.items():
            readings: list[Cost] = []
            costs: list[Cost] = []
            for _ in range(5 if nodes <= 200 else 3):
                read, layer = Meter().measure(reading)
                readings.append(read)
                costs.append(Meter().measure(partial(way, layer))[0])
                assert layer.served == nodes
                assert layer.remaining == 0
            cost = median(costs)
            speed = nodes / cost.cpu * 1e3
            lines.append(
                f"| {what} | {nodes:,} | {speed:,.0f} ({nodes / cost.wall * 1e3:,.0f}) "
                f"| {median(readings).cpu:.1f} | ≥ 1,000 {'✓' if speed >= 1000 else '✗'} |"
            )
    return lines
