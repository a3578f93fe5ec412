"""Compares what recording and replaying cost with what PyPI has instead, in one run on one machine.

The peers are installed into a folder that is thrown away afterwards: a recorder, and LangGraph's checkpoints
in SQLite beside the LangGraph of this environment. All keep the same loop of plain functions, no client
and no server: what is measured is the recorder alone, ours with its snapshots' share in the calling thread.

    python benchmarks/peers.py --write docs/benchmarks.md
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import peer_loop
from conversation import CLOCK, TOOLS, create_run, opened, scratch, size_of
from workspace import machine

from agentrewind.capture.call import Call
from agentrewind.current import set_layer
from agentrewind.layer import Layer
from agentrewind.opening import replay_layer
from agentrewind.replayer import OnDivergence

HERE = Path(__file__).resolve().parent


def ours(base: Path, steps: int) -> dict[str, Any]:
    """The loop under the layer, recorded and replayed."""
    answers, outputs = peer_loop.made(steps)
    root = base / f"ws-{steps}"
    root.mkdir()
    place = create_run(base, f"ours-{steps}", root)

    def through(layer: Layer) -> list[float]:
        def ask(messages: list[Any]) -> dict[str, Any]:
            call: Call[dict[str, Any]] = Call(
                client="plain",
                model="m",
                messages=messages,
                tools=TOOLS,
                parameters={},
                encode=lambda said: {**said, "usage": None, "response": None},
                decode=lambda kept: {name: kept[name] for name in ("role", "content", "tool_calls")},
            )
            return layer.gate.run(call, lambda sent: answers[(len(sent) - 2) // 2])

        def act(call: dict[str, Any]) -> dict[str, Any]:
            number = peer_loop.number_of(call)
            arguments = json.loads(call["function"]["arguments"])
            found = layer.run_tool("bash", arguments, lambda: outputs[number], tool_call_id=call["id"])
            assert isinstance(found.value, dict)
            return found.value

        return peer_loop.loop(steps, ask, act)

    with opened(place) as layer:
        costs = through(layer)
    replaying = replay_layer(place.run, clock=CLOCK, warn=print, on_divergence=OnDivergence.STOP)
    set_layer(replaying)
    try:
        replayed = through(replaying)
    finally:
        set_layer(None)
    assert replaying.remaining == 0
    return {"costs": costs, "bytes": size_of(place.run), "replayed": replayed}


@dataclass(frozen=True, slots=True)
class Peer:
    """What runs the loop instead of us, and the packages that it needs."""

    name: str
    packages: tuple[str, ...]
    program: Path


PEERS = (
    Peer("agent-rewind 0.8.0", ("agent-rewind==0.8.0",), HERE / "peer_loop.py"),
    Peer(
        "LangGraph, SQLite checkpoints 3.1.2",
        ("langgraph-checkpoint-sqlite==3.1.2", "aiosqlite==0.22.1", "sqlite-vec==0.1.9"),
        HERE / "peer_graph.py",
    ),
)


def measured(peer: Peer, place: Path, sizes: list[int]) -> dict[int, dict[str, Any]] | str:
    """The same loop under a peer, by its length; a text where it cannot be installed or run."""
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(place)]
    installed = subprocess.run([*command, *peer.packages], capture_output=True, text=True, check=False)
    if installed.returncode != 0:
        return f"{peer.name} could not be installed: {_last_line(installed.stderr)}"
    environment = {"PATH": os.environ["PATH"], "HOME": str(place), "PYTHONPATH": str(place)}
    found: dict[int, dict[str, Any]] = {}
    for steps in sizes:
        done = subprocess.run(
            [sys.executable, str(peer.program), str(steps)],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            return f"{peer.name} could not be run: {_last_line(done.stderr)}"
        found[steps] = json.loads(done.stdout.splitlines()[-1])
    return found


def _last_line(text: str) -> str:
    return "".join(text.strip().splitlines()[-1:])


def row(name: str, steps: int, found: dict[str, Any]) -> str:
    costs, replayed = found["costs"], found.get("replayed")
    speed = f"{2 * steps / (sum(replayed) / 1e3):,.0f}" if replayed else "makes the calls again"
    return (
        f"| {name} | {steps} | {statistics.median(costs[:20]):.2f} | {statistics.median(costs[-20:]):.2f} "
        f"| {found['bytes'] / 1e6:.2f} MB | {speed} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", default="100,400", help="lengths of the loop, by commas")
    parser.add_argument("--write", type=Path, help="the document whose part on peers is replaced")
    arguments = parser.parse_args()
    sizes = [int(part) for part in arguments.steps.split(",")]
    described = machine()
    lines = [
        "| recorder | steps | CPU a step, first 20, ms | last 20, ms | bytes | replay, nodes/s of CPU |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    with scratch(Path(tempfile.gettempdir())) as base:
        others = {
            peer.name: measured(peer, base / f"peer-{place}", sizes) for place, peer in enumerate(PEERS)
        }
        for steps in sizes:
            lines.append(row("agentrewind", steps, ours(base, steps)))
            lines += [
                row(name, steps, each[steps]) for name, each in others.items() if not isinstance(each, str)
            ]
    for missing in (each for each in others.values() if isinstance(each, str)):
        lines += ["", missing]
    print("\n".join(lines))
    if arguments.write is not None:
        text = arguments.write.read_text()
        before, begin, rest = text.partition("<!-- measured: peers -->\n")
        _, end, after = rest.partition("<!-- end: peers -->")
        if not end:
            sys.exit(
                f"{arguments.write} has no part between <!-- measured: peers --> and <!-- end: peers -->"
            )
        body = f"Measured on {described}.\n\n" + "\n".join(lines) + "\n\n"
        arguments.write.write_text(before + begin + "\n" + body + end + after)


if __name__ == "__main__":
    main()
