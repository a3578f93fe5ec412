"""What the backup hook adds to a tool call: whole processes, beside a bare Python in the same round.

`python benchmarks/backup_hook.py [--rounds N]` prints one table. A round runs every row once, in turn, so
that all rows see the same machine; medians over the rounds are shown, and their ratio to a bare Python.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from agentrewind.backup.hosts import client

BARE = [sys.executable, "-c", "pass"]
CLIENT = [sys.executable, "-I", "-S", str(Path(client.__file__)), "claude-code"]
ALONE = [sys.executable, "-I", "-m", "agentrewind.backup.hosts.entry", "claude-code"]


@dataclass
class Row:
    """One thing that is measured: a process with what it is given."""

    name: str
    argv: list[str]
    document: Callable[[], bytes] = lambda: b""
    helper: bool = True
    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=21)
    rounds = parser.parse_args().rounds
    base = Path(tempfile.mkdtemp(prefix="ar-"))
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(base),
        "XDG_RUNTIME_DIR": str(base),
        "AGENTREWIND_HOME": str(base / "store"),
    }
    try:
        _measure(_rows(base), rounds, environment)
    finally:
        # the helper ends when its socket is gone
        shutil.rmtree(base)


def _rows(base: Path) -> list[Row]:
    (base / "one.txt").write_text("keep me\n" * 100)
    tree = base / "tree"
    tree.mkdir()
    for number in range(14):
        (tree / f"{number}.txt").write_text("keep me\n" * 100)
    return [
        Row("bare Python", BARE),
        Row("a read, bare words", CLIENT, lambda: _call("git status")),
        Row("a read, with a pipe", CLIENT, lambda: _call("ls -la | grep x")),
        Row("a rule: rm of one file", CLIENT, lambda: _call(f"rm {base}/one.txt")),
        Row("a rule: rm -rf of 14 files", CLIENT, lambda: _call(f"rm -rf {tree}")),
        Row("nobody can tell: make", CLIENT, lambda: _call("make")),
        Row("a read, without a helper", ALONE, lambda: _call("ls -la | grep x"), helper=False),
        Row("a rule, without a helper", ALONE, lambda: _call(f"rm {base}/one.txt"), helper=False),
    ]


def _call(command: str) -> bytes:
    document = {
        "hook_event_name": "PreToolUse",
        "session_id": "s",
        "tool_use_id": "t",
        "cwd": "/",
        "tool_name": "Bash",
        "tool_input": {"command": command},
    }
    return json.dumps(document).encode()


def _measure(rows: list[Row], rounds: int, environment: dict[str, str]) -> None:
    for row in rows:
        _run(row, environment)
    time.sleep(2)  # the helper that the first call started is up
    for row in rows:
        row.wall.clear()
        row.cpu.clear()
    for _ in range(rounds):
        for row in rows:
            _run(row, environment)
    bare = statistics.median(rows[0].wall)
    bare_cpu = statistics.median(rows[0].cpu)
    print(f"{rounds} rounds, load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    print("| process | median, ms | ratio to bare Python | CPU of the process itself, ms | ratio |")
    print("| --- | --- | --- | --- | --- |")
    for row in rows:
        wall, cpu = statistics.median(row.wall), statistics.median(row.cpu)
        print(f"| {row.name} | {wall:.0f} | {wall / bare:.2f} | {cpu:.0f} | {cpu / bare_cpu:.2f} |")


def _run(row: Row, environment: dict[str, str]) -> None:
    given = {**environment, "AGENTREWIND_HOOK_HELPER": "1" if row.helper else "0"}
    document = row.document()
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began = time.perf_counter()
    done = subprocess.run(row.argv, input=document, env=given, cwd="/", capture_output=True, check=False)
    row.wall.append((time.perf_counter() - began) * 1e3)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    row.cpu.append((after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1e3)
    assert done.returncode == 0, done.stderr
    assert not done.stdout, done.stdout


if __name__ == "__main__":
    main()
