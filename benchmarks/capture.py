"""Measures what the layer adds to an agent's calls, how fast it replays, what its log weighs, and a rewind.

The agent is a plain loop over litellm with a message list that grows: an answer of 0.6 KB with one tool call,
a tool result of 2.5 KB. The scripted model serves it over HTTP from a process of its own. Every step is made
twice in turns, bare and under a live layer, and what the layer adds is the difference of the two.

    python benchmarks/capture.py --write docs/benchmarks.md
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from rewinds import KEY, MODEL, rewind_lines
from workspace import Cost, grow, machine, median

from agentrewind.capture.call import Call
from agentrewind.capture.install import install_all
from agentrewind.capture.litellm_calls import CHAT, LitellmCall
from agentrewind.clock import SystemClock
from agentrewind.current import current_gate, set_layer
from agentrewind.layer import Layer
from agentrewind.opening import Place, live_layer, replay_layer
from agentrewind.options import RunOptions
from agentrewind.records import (
    FORMAT,
    MAIN_WORKSPACE,
    Header,
    RunId,
    WorkspaceDeclaration,
)
from agentrewind.replayer import OnDivergence
from agentrewind.rewind.tools import openai_tools
from agentrewind.run_store import Run, RunStore
from agentrewind.workspace.policy import Policy
from harness_adapters.scripted import ScriptedAnswer, ScriptedRequest

CLOCK = SystemClock()
ANSWER_BYTES, RESULT_BYTES = 600, 2500
AROUND = 10
"""Calls to either side of the one that is reported."""

BASH = {
    "type": "function",
    "function": {
        "name": "bash",
        "description": "Run a command.",
        "parameters": {"type": "object", "properties": {"command": {"type": "string"}}},
    },
}
TOOLS: list[Any] = [BASH, *openai_tools()]


def words(number: int, length: int) -> str:
    """Text of that length that no other number has."""
    rng = random.Random(number)
    text = " ".join(f"{rng.randrange(16**6):06x}" for _ in range(length // 7 + 1))
    return text[:length]


def worker() -> Callable[[ScriptedRequest], ScriptedAnswer]:
    """The policy of the overhead's agent: always one more command."""
    return lambda request: ScriptedAnswer(
        words(len(request.messages), ANSWER_BYTES), [("bash", {"command": f"make step-{request.number}"})]
    )


@dataclass
class Meter:
    """Cost of an action to the thread that does it; that of the thread that takes snapshots is apart."""

    camera: float = 0.0

    def measure(self, action: Callable[[], Any]) -> tuple[Cost, Any]:
        calm()  # litellm goes on in threads of its own after an answer
        before = camera_cpu()
        wall, cpu = time.perf_counter(), time.thread_time()
        value = action()
        cpu, wall = time.thread_time() - cpu, time.perf_counter() - wall
        self.camera = (camera_cpu() - before) * 1e3
        return Cost(wall * 1e3, cpu * 1e3), value


def calm() -> None:
    """Wait until this process does nothing more in the background."""
    before, now = -1.0, time.process_time()
    while now - before > 0.0005:
        time.sleep(0.002)
        before, now = now, time.process_time()


def camera_cpu() -> float:
    """CPU seconds of the thread that takes snapshots while the model thinks."""
    return sum(
        time.clock_gettime(time.pthread_getcpuclockid(thread.ident))
        for thread in threading.enumerate()
        if thread.name.startswith("snapshot") and thread.ident is not None
    )


@dataclass
class Talk:
    """One agent's side of the conversation."""

    messages: list[Any] = field(
        default_factory=lambda: [
            {"role": "system", "content": "You work in a shell."},
            {"role": "user", "content": "Mend it."},
        ]
    )

    def heard(self, response: Any) -> Any:
        """Take an answer in, as harnesses do; its tool call."""
        message = response.choices[0].message.model_dump()
        self.messages.append(message)
        return message["tool_calls"][0]

    def did(self, call: Any, output: Any) -> None:
        self.messages.append({"role": "tool", "tool_call_id": call["id"], "content": output["output"]})


def outcome(number: int) -> dict[str, Any]:
    return {"output": words(-number, RESULT_BYTES), "returncode": 0}


def create_run(base: Path, name: str, root: Path) -> Place:
    run = RunStore(base / f"home-{name}").create(
        Header(
            format=FORMAT,
            run_id=RunId("20260131-080000-1f3a9c"),
            segment=0,
            forked_from=None,
            created_at=CLOCK.now(),
            workspaces={
                MAIN_WORKSPACE: WorkspaceDeclaration(root=str(root), policy=Policy.default().to_json())
            },
            harness="benchmark",
            model=MODEL,
            versions={},
            options=RunOptions(task="mend").to_json(),
        )
    )
    return Place(run=run, root=root, store=base / f"snapshots-{name}.git")


@contextmanager
def opened(place: Place) -> Iterator[Layer]:
    with live_layer(place, supervisor=os.getpid(), clock=CLOCK, secrets=(), warn=print) as layer:
        set_layer(layer)
        try:
            yield layer
        finally:
            set_layer(None)


@contextmanager
def server() -> Iterator[str]:
    """The scripted model in a process of its own; its base URL."""
    here = Path(__file__).resolve().parent
    environment = {**os.environ, "PYTHONPATH": f"{here}{os.pathsep}{here.parent}"}
    command = [sys.executable, "-m", "harness_adapters.scripted", "--policy", "capture:worker"]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.terminate()


# --- what the layer adds ---


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


def size_of(run: Run) -> int:
    return sum(path.stat().st_size for path in run.directory.rglob("*") if path.is_file())


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


# --- replay ---


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


# --- all of it ---


@contextmanager
def scratch(parent: Path) -> Iterator[Path]:
    base = Path(tempfile.mkdtemp(prefix="agentrewind-bench-", dir=parent))
    try:
        yield base
    finally:
        shutil.rmtree(base)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--nodes", default="100,2000", help="lengths of the replayed runs, by commas")
    parser.add_argument("--only", choices=["calls", "replay", "rewind"], help="one part instead of all")
    parser.add_argument("--disk", type=Path, default=Path(tempfile.gettempdir()))
    parser.add_argument("--write", type=Path, help="the document whose part on calls is replaced")
    arguments = parser.parse_args()
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # no look-up on the network
    described = machine()
    print(described, flush=True)
    tables: list[list[str]] = []

    def told(lines: list[str]) -> None:
        tables.append(lines)
        print("\n".join(lines) + "\n", flush=True)

    with scratch(arguments.disk) as base:
        if arguments.only in (None, "calls"):
            found = overhead(base, arguments.files, arguments.steps)
            told(overhead_lines(found))
            told(journal_lines(found))
    with scratch(arguments.disk) as base:
        if arguments.only in (None, "replay"):
            told(replay_lines(base, [int(part) for part in arguments.nodes.split(",")]))
    with scratch(arguments.disk) as base:
        if arguments.only in (None, "rewind"):
            told(rewind_lines(base, arguments.files))
    if arguments.write is not None:
        text = arguments.write.read_text()
        before, begin, rest = text.partition("<!-- measured: calls -->\n")
        _, end, after = rest.partition("<!-- end: calls -->")
        if not end:
            sys.exit(
                f"{arguments.write} has no part between <!-- measured: calls --> and <!-- end: calls -->"
            )
        body = f"Measured on {described}.\n\n" + "\n\n".join("\n".join(lines) for lines in tables) + "\n\n"
        arguments.write.write_text(before + begin + "\n" + body + end + after)


if __name__ == "__main__":
    main()
