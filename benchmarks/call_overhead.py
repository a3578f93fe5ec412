"""Measures what the layer adds to an agent's calls, and what its log weighs, against the bare loop."""

from __future__ import annotations

import importlib
import json
import os
import random
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from conversation import (
    ANSWER_BYTES,
    TOOLS,
    Talk,
    create_run,
    opened,
    outcome,
    size_of,
    words,
)
from meter import Meter
from rewinds import KEY, MODEL
from workspace import Cost, grow

from agentrewind.capture.install import install_all
from agentrewind.current import current_gate, set_layer
from harness_adapters.scripted import ScriptedAnswer, ScriptedRequest

AROUND = 10
"""Calls to either side of the one that is reported."""


def worker() -> Callable[[ScriptedRequest], ScriptedAnswer]:
    """The policy of the overhead's agent: always one more command."""
    return lambda request: ScriptedAnswer(
        words(len(request.messages), ANSWER_BYTES), [("bash", {"command": f"make step-{request.number}"})]
    )


@contextmanager
def server() -> Iterator[str]:
    """The scripted model in a process of its own; its base URL."""
    here = Path(__file__).resolve().parent
    environment = {**os.environ, "PYTHONPATH": f"{here}{os.pathsep}{here.parent}"}
    command = [sys.executable, "-m", "harness_adapters.scripted", "--policy", "call_overhead:worker"]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.terminate()


@dataclass(frozen=True)
class Overhead:
    """Costs by step of a loop without and with the layer, and the log's growth."""

    bare_llm: list[Cost]
    llm: list[Cost]
    bare_tool: list[Cost]
    tool: list[Cost]
    camera: list[float]
    log_bytes: list[int]
    full_bytes: list[int]


def overhead(base: Path, files: int, steps: int) -> Overhead:
    """Every step twice, bare and under the layer, in turns; `base` is on a disk."""
    litellm = importlib.import_module("litellm")
    bare_completion = litellm.completion
    install_all(current_gate)
    root = base / "ws"
    paths = grow(root, files, random.Random(1))
    place = create_run(base, "live", root)
    found = Overhead([], [], [], [], [], [], [])
    bare, joined, meter = Talk(), Talk(), Meter()
    outcomes = [outcome(number) for number in range(steps)]
    full, elsewhere = 0, base / "elsewhere.py"
    with server() as url, opened(place) as layer:
        asked: dict[str, Any] = {"model": MODEL, "tools": TOOLS, "api_base": url, "api_key": KEY}
        original = getattr(litellm.completion, "__agentrewind__", bare_completion)

        def work(number: int, place: Path) -> dict[str, Any]:
            place.write_text(f"written in step {number}")
            return outcomes[number]

        def bare_step(number: int) -> None:
            set_layer(None)  # what litellm calls in its turn is wrapped as well
            cost, response = meter.measure(lambda: original(messages=bare.messages, **asked))
            found.bare_llm.append(cost)
            call = bare.heard(response)
            cost, output = meter.measure(lambda: work(number, elsewhere))
            found.bare_tool.append(cost)
            bare.did(call, output)

        def joined_step(number: int) -> None:
            set_layer(layer)
            cost, response = meter.measure(lambda: litellm.completion(messages=joined.messages, **asked))
            found.llm.append(cost)
            found.camera.append(meter.camera)
            call = joined.heard(response)
            arguments = json.loads(call["function"]["arguments"])
            performed = partial(work, number, paths[number % files])
            cost, result = meter.measure(
                partial(layer.run_tool, "bash", arguments, performed, tool_call_id=call["id"])
            )
            found.tool.append(cost)
            joined.did(call, result.value)

        for number in range(steps):
            full += len(json.dumps(joined.messages))
            for step in (bare_step, joined_step) if number % 2 else (joined_step, bare_step):
                step(number)
            found.log_bytes.append(size_of(place.run))
            found.full_bytes.append(full)
    return found


def added(bare: list[Cost], ours: list[Cost], step: int) -> Cost:
    """Mean over the calls around one, each pair's difference; the dearest and the cheapest pairs left out."""
    around = range(max(0, step - AROUND), min(len(ours), step + AROUND + 1))
    pairs = [(ours[index].wall - bare[index].wall, ours[index].cpu - bare[index].cpu) for index in around]
    return Cost(trimmed([wall for wall, _ in pairs]), trimmed([cpu for _, cpu in pairs]))


def trimmed(values: list[float]) -> float:
    cut = len(values) // 5
    return statistics.fmean(sorted(values)[cut : len(values) - cut or None])


def overhead_lines(found: Overhead) -> list[str]:
    last = len(found.llm) - 1
    lines = [
        "| added by the layer, ms of CPU (wall) | step 10 | step "
        f"{last + 1} | without the layer, step 10 / {last + 1} | ask (CPU) |",
        "| --- | --- | --- | --- | --- |",
    ]
    for what, bare, ours in (
        ("an LLM call", found.bare_llm, found.llm),
        ("a tool call", found.bare_tool, found.tool),
    ):
        early, late = added(bare, ours, AROUND), added(bare, ours, last)
        plain = [trimmed([c.cpu for c in bare[i : i + 21]]) for i in (0, max(0, last - AROUND))]
        good = "✓" if max(early.cpu, late.cpu) <= 2 else "✗"
        lines.append(
            f"| {what} | {early.cpu:.2f} ({early.wall:.1f}) | {late.cpu:.2f} ({late.wall:.1f}) "
            f"| {plain[0]:.2f} / {plain[1]:.2f} | ≤ 2 {good} |"
        )
    early_snapshot, late_snapshot = trimmed(found.camera[:21]), trimmed(found.camera[-11:])
    lines.append(f"| its snapshot, apart | {early_snapshot:.2f} | {late_snapshot:.2f} | – |  |")
    return lines


def journal_lines(found: Overhead) -> list[str]:
    lines = [
        "| bytes of the log, everything included | ours | full message lists alone | ratio | ask |",
        "| --- | --- | --- | --- | --- |",
    ]
    for step in (100, 200, 400):
        if step <= len(found.log_bytes):
            ours, full = found.log_bytes[step - 1], found.full_bytes[step - 1]
            ask = "" if step != 400 else f"≥ 50× {'✓' if full >= 50 * ours else '✗'}"
            lines.append(
                f"| {step} steps ({2 * step} nodes) | {ours / 1e6:.2f} MB | {full / 1e6:.1f} MB "
                f"| {full / ours:.0f}× | {ask} |"
            )
    return lines
