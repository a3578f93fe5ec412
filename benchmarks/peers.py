"""Compares what recording and replaying cost with another recorder of PyPI, in one run on one machine.

The peer is installed in an environment that is thrown away afterwards. Both record the same loop of plain
functions, no client and no server: what is measured is the recorder alone, ours with its snapshots' share in
the calling thread.

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
import venv
from pathlib import Path
from typing import Any

import peer_loop
from capture import CLOCK, TOOLS, create_run, opened, scratch, size_of
from workspace import machine

from agentrewind.capture.call import Call
from agentrewind.current import set_layer
from agentrewind.layer import Layer
from agentrewind.opening import replay_layer
from agentrewind.replayer import OnDivergence

PEER = "agent-rewind==0.8.0"
LOOP = Path(__file__).with_name("peer_loop.py")


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


def peers(base: Path, sizes: list[int]) -> dict[int, dict[str, Any]] | str:
    """The same loop under the peer; a text where it cannot be installed."""
    place = base / "peer"
    venv.create(place, with_pip=True)
    python = str(place / "bin" / "python")
    command = [python, "-m", "pip", "install", "--quiet", "--no-deps", PEER]
    installed = subprocess.run(command, capture_output=True, text=True, check=False)
    if installed.returncode != 0:
        last = installed.stderr.strip().splitlines()[-1:]
        return f"{PEER} could not be installed: {''.join(last)}"
    environment = {"PATH": os.environ["PATH"], "HOME": str(base)}
    found: dict[int, dict[str, Any]] = {}
    for steps in sizes:
        done = subprocess.run(
            [python, str(LOOP), str(steps)], env=environment, capture_output=True, text=True, check=True
        )
        found[steps] = json.loads(done.stdout.splitlines()[-1])
    return found


def row(name: str, steps: int, found: dict[str, Any]) -> str:
    costs, replayed = found["costs"], found["replayed"]
    speed = 2 * steps / (sum(replayed) / 1e3)
    return (
        f"| {name} | {steps} | {statistics.median(costs[:20]):.2f} | {statistics.median(costs[-20:]):.2f} "
        f"| {found['bytes'] / 1e6:.2f} MB | {speed:,.0f} |"
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
        other = peers(base, sizes)
        for steps in sizes:
            lines.append(row("agentrewind", steps, ours(base, steps)))
            if not isinstance(other, str):
                lines.append(row(PEER.replace("==", " "), steps, other[steps]))
    if isinstance(other, str):
        lines += ["", other]
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
