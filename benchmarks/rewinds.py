"""Measures a rewind: a real run of mini-SWE-agent that goes back several times, up to the live request."""

from __future__ import annotations

import os
import random
import statistics
import subprocess
import sys
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from workspace import grow

from agentrewind.records import RewindAsked, RewindDone, SafetySnapshot, Started
from agentrewind.run_store import Run, RunStore
from harness_adapters.scripted import ScriptedAnswer, ScriptedModel, ScriptedRequest

KEY = "sk-scripted-benchmark"
MODEL = "openai/scripted"
REWINDS, STEPS_BEFORE, EDITS = 7, 12, 10
SUBMIT = "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"


@dataclass
class Rewinder:
    """A policy: steps with edits, then back by one step more each time, then the end.

    `arrivals` holds when the first request of each attempt came: the one live call at its checkpoint.
    """

    arrivals: list[float] = field(default_factory=list)

    def __call__(self, request: ScriptedRequest) -> ScriptedAnswer:
        told = "\n".join(str(each.get("content")) for each in request.messages if each["role"] != "tool")
        turn = sum(each["role"] == "assistant" for each in request.messages)
        notes = sum(f"NOTE-{number}." in told for number in range(REWINDS))
        if notes == len(self.arrivals):
            self.arrivals.append(datetime.now(UTC).timestamp())
        if notes == 0 and turn < STEPS_BEFORE:
            edits = " ".join(f"part000/module0{number % 8}/file{turn % 12}.py" for number in range(EDITS))
            return ScriptedAnswer(
                "edit", [("bash", {"command": f"for f in {edits}; do echo more >> $f; done"})]
            )
        if notes == REWINDS:
            return ScriptedAnswer("done", [("bash", {"command": SUBMIT})])
        target = f"rec_{2 * (STEPS_BEFORE - 1 - notes) + 1:06d}"
        arguments = {"record_uid": target, "memory_summary": f"NOTE-{notes}.", "reason": "a benchmark"}
        return ScriptedAnswer("back", [("backtrack_commit", arguments)])


def rewind_lines(base: Path, files: int) -> list[str]:
    """A real run with mini-SWE-agent that goes back several times."""
    root, home = base / "ws", base / "home"
    grow(root, files, random.Random(1))
    policy = Rewinder()
    with ScriptedModel(policy) as model:
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(base),
            "AGENTREWIND_HOME": str(home),
            "OPENAI_API_KEY": KEY,
            "OPENAI_BASE_URL": model.base_url,
            "OPENAI_API_BASE": model.base_url,
            "MSWEA_COST_TRACKING": "ignore_errors",
        }
        command = ["-m", "agentrewind.cli", "run", "--harness", "mini-swe-agent", "--model", MODEL]
        command += ["--workspace", str(root), "--task", "mend", "--start", "warm", "--json"]
        done = subprocess.run(
            [sys.executable, *command], env=environment, capture_output=True, text=True, check=False
        )
    if done.returncode != 0:
        sys.exit(f"the run for the rewinds failed: {done.stdout}{done.stderr}")
    (run,) = RunStore(home).runs()
    return rewind_table(run, files, policy.arrivals)


def rewind_table(run: Run, files: int, arrivals: list[float]) -> list[str]:
    timeline = run.timeline()
    parts: dict[str, list[float]] = {}
    for number in timeline.segments[1:]:
        before, after = timeline.events(number - 1), timeline.events(number)
        asked = at(next(event for event in before if isinstance(event, RewindAsked)))
        safe = at(next(event for event in before if isinstance(event, SafetySnapshot)))
        restored = at(next(event for event in after if isinstance(event, RewindDone)))
        live = at(next(event for event in after if isinstance(event, Started)))
        for name, span in (
            ("the old process ends, the present state is snapshotted", safe - asked),
            ("files restored and verified", restored - safe),
            ("fork, prefix from the log, files verified again", live - restored),
            ("from the commit until the layer lets the first live call out", live - asked),
            ("from the commit until that call's request arrives", arrivals[number] - asked),
        ):
            parts.setdefault(name, []).append(span * 1e3)
    lines = [
        f"| rewind with `--start warm`, {files:,} files, {REWINDS} times | ms of wall, median "
        "| fastest to slowest | ask |",
        "| --- | --- | --- | --- |",
    ]
    for name, spans in parts.items():
        middle = statistics.median(spans)
        ask = f"≤ 250 {'✓' if middle <= 250 else '✗'}" if name.startswith("from") else ""
        lines.append(f"| {name} | {middle:.0f} | {min(spans):.0f} to {max(spans):.0f} | {ask} |")
    return lines


def at(event: RewindAsked | SafetySnapshot | RewindDone | Started) -> float:
    return datetime.fromisoformat(event.at).timestamp()
